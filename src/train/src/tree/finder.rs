//! The seam between growing a tree and where candidate splits come from.

use super::cell::Cell;
use super::holder::Holder;
use super::kept::KeptHistograms;
use super::rows::NodeId;
use super::split::{FoundSplit, SplitRules};
use crate::bins::BinnedData;
use planetree_base::error::Result;

/// A node that may be split.
#[derive(Debug, Clone, Copy)]
pub struct OpenNode<C> {
    /// Which node.
    pub node: NodeId,
    /// Of all its rows.
    pub total: C,
    /// Whether it may be split; if not, it is here because its sums help its sibling.
    pub wanted: bool,
}

/// Nodes that appeared together: the root, or the two children of a node.
#[derive(Debug, Clone, Copy)]
pub struct Family<C> {
    /// The node they come from.
    pub parent: Option<NodeId>,
    /// The left child, or the root.
    pub first: OpenNode<C>,
    /// The right child.
    pub second: Option<OpenNode<C>>,
}

impl<C: Copy> Family<C> {
    /// Its nodes.
    pub fn nodes(&self) -> impl Iterator<Item = OpenNode<C>> + use<C> {
        [Some(self.first), self.second].into_iter().flatten()
    }
}

/// What does not change while a tree grows.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The data.
    pub data: &'a BinnedData,
    /// What splits must respect.
    pub rules: SplitRules,
    /// Which features a node may use.
    pub choice: &'a super::features::FeatureChoice,
    /// Bytes that kept histograms may take.
    pub histogram_bytes: usize,
}

/// Finds the best split of each node.
pub trait SplitFinder<C: Cell> {
    /// The best split of every node of the families, in their order.
    fn find(
        &mut self,
        ground: &Ground<'_>,
        rows: &mut dyn Holder<C>,
        families: &[Family<C>],
    ) -> Result<Vec<Option<FoundSplit>>>;

    /// The histograms that are left when the tree is complete.
    fn kept(self: Box<Self>) -> KeptHistograms<C> {
        KeptHistograms::default()
    }
}

/// The better of two splits; of equal ones the one of the earlier feature, so that no order of
/// finding them matters.
pub fn better(one: Option<FoundSplit>, other: Option<FoundSplit>) -> Option<FoundSplit> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let wins = other.gain > one.gain || (other.gain == one.gain && other.feature < one.feature);
            Some(if wins { other } else { one })
        }
        (one, other) => one.or(other),
    }
}
