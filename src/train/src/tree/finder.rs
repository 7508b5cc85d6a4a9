//! Interface between the tree grower and the different sources of candidate splits.

use super::cell::Cell;
use super::kept::KeptHistograms;
use super::monotone::ValueBounds;
use super::row_store::RowStore;
use super::rows::NodeId;
use super::split::{FoundSplit, SplitRules};
use crate::bins::BinnedData;
use crate::config::Constraint;
use planetree_base::error::Result;

/// A node whose split is being searched.
#[derive(Debug, Clone, Copy)]
pub struct OpenNode<C> {
    /// Index of the node.
    pub node: NodeId,
    /// Sum over the rows of the node.
    pub total: C,
    /// The bounds of the values of its leaves.
    pub bounds: ValueBounds,
    /// Whether the node may be split. If not, it is only listed because its histogram may help to derive the histogram
    /// of its sibling.
    pub wanted: bool,
    /// Whether its children cannot be split, so that its histogram is not needed once its own split is found.
    pub deepest: bool,
}

/// Sibling nodes: the children of a node, or the root alone.
#[derive(Debug, Clone)]
pub struct Siblings<C> {
    /// The parent; `None` for the root.
    pub parent: Option<NodeId>,
    /// The children, or the root.
    pub nodes: Vec<OpenNode<C>>,
}

impl<C: Cell> Siblings<C> {
    /// Returns the root alone.
    pub fn root(root: OpenNode<C>) -> Self {
        Siblings { parent: None, nodes: vec![root] }
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> impl Iterator<Item = OpenNode<C>> + '_ {
        self.nodes.iter().copied()
    }

    /// Returns the place of the node with the most rows; of several, the last.
    pub fn largest(&self, count_bits: u32) -> usize {
        let count = |place: &usize| self.nodes[*place].total.sums(count_bits).count;
        (0..self.nodes.len()).max_by_key(count).unwrap_or(0)
    }
}

/// Data and parameters that stay the same while a tree is grown.
#[derive(Clone, Copy)]
pub struct GrowContext<'a> {
    /// The training data.
    pub data: &'a BinnedData,
    /// Constraints on splits, and how they are scored.
    pub rules: SplitRules,
    /// Features sampled for the tree.
    pub choice: &'a super::features::FeatureChoice,
    /// Maximum memory for kept histograms, in bytes.
    pub histogram_bytes: usize,
    /// How much a split on each feature must gain more than a split on a free feature. `None` if all are free.
    pub penalties: Option<&'a [f64]>,
    /// The monotone constraint of each feature. `None` if no feature is constrained.
    pub monotone: Option<&'a [Constraint]>,
}

impl GrowContext<'_> {
    /// Returns the better of two splits: the one with the higher gain, after the costs of its feature. Ties go to the
    /// feature with the lower index, so that the order of the search does not matter.
    pub fn better(&self, one: Option<FoundSplit>, other: Option<FoundSplit>) -> Option<FoundSplit> {
        match (one, other) {
            (Some(one), Some(other)) => {
                let (worth, others) = (self.worth(&one), self.worth(&other));
                let wins = others > worth || (others == worth && other.feature < one.feature);
                Some(if wins { other } else { one })
            }
            (one, other) => one.or(other),
        }
    }

    /// Returns the gain of a split minus the costs of its feature.
    pub fn worth(&self, split: &FoundSplit) -> f64 {
        split.gain - self.penalties.map_or(0.0, |penalties| penalties[split.feature as usize])
    }
}

/// Finds the best split of each node.
pub trait SplitFinder<C: Cell> {
    /// Returns the best split of every node, in the order of `siblings`; `None` for nodes without a split.
    fn find(
        &mut self,
        context: &GrowContext<'_>,
        rows: &mut dyn RowStore<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>>;

    /// Returns the histograms that are still kept when the tree is complete.
    fn kept(self: Box<Self>) -> KeptHistograms<C> {
        KeptHistograms::default()
    }
}
