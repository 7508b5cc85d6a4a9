//! Rows with their scores and gradients, in this process: all of a training, or the share of one executor of a cluster.

use super::gradients::Gradients;
use super::whole_scores::WholeScores;
use crate::bins::BinnedData;
use crate::config::Parameters;
use crate::driver::{Crew, GradientSummary, TreeStart};
use crate::driver::{Metrics, Scores, draw_rows};
use crate::tree::{
    Cell, CodedTree, HeldHere, Holder, NodeHistogram, NodeId, NodeSplit, RowSets, Scale, WantedNode,
};
use planetree_base::error::Result;
use planetree_metric::Mean;
use std::sync::Arc;

/// See the module.
pub struct Share<C: Cell> {
    parameters: Parameters,
    data: Arc<BinnedData>,
    state: ShareState,
    sets: RowSets<C>,
    /// The rows of the tree, if not all of them are.
    drawn: Option<Vec<Vec<u32>>>,
    count_bits: u32,
    /// The largest magnitude of a label or score so far.
    farthest: f64,
    /// Not known before the first tree.
    whole: Option<WholeScores>,
}

/// What is known of rows beside their codes.
pub struct ShareState {
    /// Their scores so far.
    pub scores: Scores,
    /// Their gradients.
    pub gradients: Gradients,
    /// Their metrics; `None` for the squared error, which is known anyway.
    pub metrics: Option<Metrics>,
}

impl<C: Cell> Share<C> {
    /// Rows at the start of a training.
    pub fn new(parameters: &Parameters, data: Arc<BinnedData>, state: ShareState) -> Self {
        let sets = RowSets::new(data.partitions());
        Share {
            parameters: parameters.clone(),
            data,
            state,
            sets,
            drawn: None,
            count_bits: 0,
            farthest: 0.0,
            whole: None,
        }
    }

    /// The same as [`Crew::update_gradients`], by partition where that makes a difference.
    pub fn gradients_by_partition(&mut self, round: u32) -> Vec<GradientSummary> {
        self.state.gradients.update(&self.data.rows, &self.state.scores, round)
    }

    /// What the rows of a node add up to.
    pub fn total(&mut self, node: NodeId) -> C {
        self.held().total(node)
    }

    /// Starts a tree; see [`TreeStart`].
    pub fn start(&mut self, tree: u64, scale: &Scale, limit: Option<u64>) {
        self.count_bits = scale.count_bits;
        self.drawn = draw_rows(&self.parameters, &self.data.rows, tree, limit);
        let ShareState { scores, gradients, .. } = &self.state;
        gradients.start_tree(&self.data.rows, scores, scale, self.drawn.as_deref(), &mut self.sets);
    }

    fn held(&mut self) -> HeldHere<'_, C> {
        HeldHere { data: &self.data, sets: &mut self.sets, count_bits: self.count_bits }
    }
}

impl<C: Cell> Holder<C> for Share<C> {
    fn root(&mut self) -> Result<C> {
        self.held().root()
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<[C; 2]>> {
        self.held().split(splits)
    }

    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>> {
        self.held().histograms(groups, nodes)
    }

    fn moved(&mut self, groups: &[usize], moves: &[(NodeId, i32)]) -> Result<Option<NodeHistogram<C>>> {
        self.held().moved(groups, moves)
    }

    fn here(&self) -> Result<&RowSets<C>> {
        Ok(&self.sets)
    }
}

impl<C: Cell> Crew<C> for Share<C> {
    fn update_gradients(&mut self, round: u32) -> Result<GradientSummary> {
        let summary = GradientSummary::of_parts(&self.gradients_by_partition(round));
        self.farthest = self.farthest.max(summary.farthest);
        Ok(summary)
    }

    fn start_tree(&mut self, start: &TreeStart) -> Result<()> {
        self.start(start.tree, &start.scale, start.limit);
        Ok(())
    }

    fn moves_by_leaves(&mut self) -> bool {
        if self.drawn.is_some() || !self.state.gradients.are_plain_residuals() {
            return false;
        }
        let check = || WholeScores::check(&self.data.rows, &self.state.scores);
        self.whole.get_or_insert_with(check).hold(self.farthest)
    }

    fn add_grown(&mut self, tree: &CodedTree) -> Result<()> {
        let scores = &mut self.state.scores;
        scores.add_grown(tree, &self.sets);
        match &self.drawn {
            Some(drawn) => scores.add_routed(tree, &self.data, Some(drawn)),
            None => Ok(()),
        }
    }

    fn add_earlier(&mut self, round: u32, tree: &CodedTree) -> Result<()> {
        if self.state.gradients.remember() {
            self.update_gradients(round)?;
        }
        self.state.scores.add_routed(tree, &self.data, None)
    }

    fn metrics(&mut self) -> Result<Vec<Mean>> {
        let ShareState { scores, metrics, .. } = &self.state;
        Ok(metrics.as_ref().map(|metrics| metrics.evaluate(&self.data.rows, scores)).unwrap_or_default())
    }
}
