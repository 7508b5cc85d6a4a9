//! A boosting worker whose rows are in this process. Without a cluster, it holds all rows of a training run; in a
//! cluster executor, it holds the rows of that executor.

use super::gradients::RowGradients;
use super::whole_scores::WholeScores;
use crate::bins::BinnedData;
use crate::config::BoostSettings;
use crate::driver::{BoostWorker, GradientSummary, TreeStart};
use crate::driver::{Metrics, Scores, draw_rows};
use crate::tree::{
    Cell, CodedTree, LocalRows, LocalSums, NodeHistogram, NodeId, NodePart, NodeSplit, RowSets, RowStore,
    Scale, WantedNode, WorkerBounds, WorkerPiece, WorkerRows,
};
use planetree_base::error::Result;
use planetree_metric::Mean;
use std::ops::Range;
use std::sync::Arc;

/// Rows of this process, with their scores and gradients.
pub struct LocalWorker<C: Cell> {
    parameters: BoostSettings,
    data: Arc<BinnedData>,
    state: WorkerState,
    sets: RowSets<C>,
    /// The rows sampled for the current tree, by partition. `None` means all rows.
    drawn: Option<Vec<Vec<u32>>>,
    count_bits: u32,
    /// The largest magnitude of a label or score so far.
    farthest: f64,
    /// Tracks whether all scores are integer multiples of one step size, so that histograms can be updated exactly.
    /// `None` before the first tree.
    whole: Option<WholeScores>,
}

/// The state of the rows besides their codes.
pub struct WorkerState {
    /// The current scores.
    pub scores: Scores,
    /// The scores that gradients are computed from, if they are not the current scores: log odds against other classes.
    pub odds: Option<Scores>,
    /// The current gradients.
    pub gradients: RowGradients,
    /// The metrics of the training rows. `None` for squared error, whose metric follows from the gradients, and for
    /// one of several parts.
    pub metrics: Option<Metrics>,
}

impl<C: Cell> LocalWorker<C> {
    /// Creates a worker that has not processed any tree.
    pub fn new(parameters: &BoostSettings, data: Arc<BinnedData>, state: WorkerState) -> Self {
        let sets = RowSets::new(data.partitions());
        LocalWorker {
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

    /// Like [`BoostWorker::update_gradients`], but with one summary per partition if the order of merging matters.
    pub fn gradients_by_partition(&mut self, round: u32) -> Vec<GradientSummary> {
        let WorkerState { scores, odds, gradients, .. } = &mut self.state;
        gradients.update(&self.data.rows, odds.as_ref().unwrap_or(scores), round)
    }

    /// Returns the rows of neighbouring workers of streaming candidates. `bounds` are the rows of all workers.
    pub fn rows_of<'a>(
        &'a self,
        bounds: &'a WorkerBounds,
        workers: Range<usize>,
        scale: Scale,
        centroids: usize,
    ) -> WorkerRows<'a, C> {
        WorkerRows { data: &self.data, rows: &self.sets, bounds, workers, scale, centroids }
    }

    /// Returns the rows as sums by code.
    pub fn sums(&self, count_bits: u32) -> LocalSums<'_, C> {
        LocalSums { data: &self.data, rows: &self.sets, count_bits }
    }

    /// Returns the sums of each node part, counting only rows inside the given pieces of partitions.
    pub fn part_sums_within(&mut self, parts: &[NodePart], pieces: &[WorkerPiece]) -> Result<Vec<C>> {
        self.held().part_sums_within(parts, pieces)
    }

    /// Returns the data.
    pub fn data(&self) -> &BinnedData {
        &self.data
    }

    /// Like [`BoostWorker::metrics`], but of the first `partitions` partitions only.
    pub fn metrics_of(&self, partitions: usize) -> Vec<Mean> {
        let WorkerState { scores, metrics, .. } = &self.state;
        let rows = &self.data.rows[..partitions];
        metrics.as_ref().map(|metrics| metrics.evaluate(rows, scores)).unwrap_or_default()
    }

    /// Returns the sum over the rows of a node.
    pub fn total(&mut self, node: NodeId) -> C {
        self.held().total(node)
    }

    /// Starts a tree. See [`TreeStart`] for the arguments.
    pub fn start(&mut self, tree: u64, scale: &Scale, limit: Option<u64>) {
        self.count_bits = scale.count_bits;
        let sampling = self.parameters.learner.tree.sampling;
        self.drawn = draw_rows(&sampling, self.parameters.seed, &self.data.rows, tree, limit);
        let WorkerState { scores, gradients, .. } = &self.state;
        gradients.start_tree(&self.data.rows, scores, scale, self.drawn.as_deref(), &mut self.sets);
    }

    fn held(&mut self) -> LocalRows<'_, C> {
        LocalRows { data: &self.data, sets: &mut self.sets, count_bits: self.count_bits }
    }
}

impl<C: Cell> RowStore<C> for LocalWorker<C> {
    fn root(&mut self) -> Result<C> {
        self.held().root()
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<Vec<C>>> {
        self.held().split(splits)
    }

    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>> {
        self.held().histograms(groups, nodes)
    }

    fn moved(&mut self, groups: &[usize], moves: &[(NodeId, i32)]) -> Result<Option<NodeHistogram<C>>> {
        self.held().moved(groups, moves)
    }

    fn part_sums(&mut self, parts: &[NodePart]) -> Result<Vec<C>> {
        self.held().part_sums(parts)
    }

    fn local(&self) -> Result<&RowSets<C>> {
        Ok(&self.sets)
    }
}

impl<C: Cell> BoostWorker<C> for LocalWorker<C> {
    fn update_gradients(&mut self, round: u32) -> Result<GradientSummary> {
        let summary = GradientSummary::of_parts(&self.gradients_by_partition(round));
        self.farthest = self.farthest.max(summary.farthest);
        Ok(summary)
    }

    fn set_odds(&mut self, odds: Scores) {
        self.state.odds = Some(odds);
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

    fn scores(&self) -> Option<&Scores> {
        Some(&self.state.scores)
    }

    fn metrics(&mut self) -> Result<Vec<Mean>> {
        Ok(self.metrics_of(self.data.partitions()))
    }
}
