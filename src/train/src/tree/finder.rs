//! The interface between the tree grower and the sources of candidate splits.

use super::cell::Cell;
use super::kept::KeptHistograms;
use super::row_store::RowStore;
use super::rows::NodeId;
use super::split::{FoundSplit, SplitRules};
use crate::bins::BinnedData;
use planetree_base::error::Result;

/// A node that may be split.
#[derive(Debug, Clone, Copy)]
pub struct OpenNode<C> {
    /// The node.
    pub node: NodeId,
    /// The sum over its rows.
    pub total: C,
    /// Whether it may be split; otherwise it is listed because its sums help its sibling.
    pub wanted: bool,
}

/// Sibling nodes: the two children of a node, or the root alone.
#[derive(Debug, Clone, Copy)]
pub struct Siblings<C> {
    /// Their parent.
    pub parent: Option<NodeId>,
    /// The left child, or the root.
    pub first: OpenNode<C>,
    /// The right child.
    pub second: Option<OpenNode<C>>,
}

impl<C: Copy> Siblings<C> {
    /// The nodes.
    pub fn nodes(&self) -> impl Iterator<Item = OpenNode<C>> + use<C> {
        [Some(self.first), self.second].into_iter().flatten()
    }
}

/// The constants of growing one tree.
#[derive(Clone, Copy)]
pub struct GrowContext<'a> {
    /// The data.
    pub data: &'a BinnedData,
    /// Constraints and scoring of splits.
    pub rules: SplitRules,
    /// Sampled features.
    pub choice: &'a super::features::FeatureChoice,
    /// Maximum bytes of kept histograms.
    pub histogram_bytes: usize,
}

/// Finds the best split of each node.
pub trait SplitFinder<C: Cell> {
    /// The best split of every node, in order.
    fn find(
        &mut self,
        context: &GrowContext<'_>,
        rows: &mut dyn RowStore<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>>;

    /// The histograms kept when the tree is complete.
    fn kept(self: Box<Self>) -> KeptHistograms<C> {
        KeptHistograms::default()
    }
}

/// The better of two splits; ties go to the lower feature, so that the order of finding them does not matter.
pub fn better(one: Option<FoundSplit>, other: Option<FoundSplit>) -> Option<FoundSplit> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let wins = other.gain > one.gain || (other.gain == one.gain && other.feature < one.feature);
            Some(if wins { other } else { one })
        }
        (one, other) => one.or(other),
    }
}
