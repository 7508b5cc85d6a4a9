//! The state of one part of a boosting run on the rows of one executor: their scores and gradients, and the tree being
//! grown. Each request brings it up to date.

use super::boost_job::{BoostProgress, Grown};
use super::cells::{NodeSums, WireCell, write_blocks};
use super::worker_shares::OwnWorkers;
use crate::boost::LocalWorker;
use crate::driver::{BoostWorker, GradientSummary, Scores, TreeStart};
use crate::tree::{
    Cell, CodedTree, GradientSums, GroupNodes, MergeTree, NodeHistogram, NodeHistograms, NodeId, NodePart,
    NodeSplit, RowStore, Scale, ValueList, WantedNode,
};
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use planetree_metric::Mean;

/// The rows of a part that one executor works on, and how far their state has progressed.
pub struct MemberShare {
    worker: AnyWorker,
    /// The workers of streaming histograms that this share has, if they build histograms of their own.
    pub(super) workers: Option<OwnWorkers>,
    /// Whether gradients are computed from log odds, which depend on other parts.
    pub(super) is_coupled: bool,
    /// Number of trees that the log odds include. `None` before they are computed.
    odds_trees: Option<usize>,
    /// Number of trees that the scores include.
    trees: usize,
    /// The round that the gradients were computed for. `None` before the first round.
    round: Option<u32>,
    /// The tree being grown.
    tree: Option<OpenTree>,
}

/// A tree that is being grown.
struct OpenTree {
    /// The tree number.
    number: u64,
    /// Number of splits that have been applied.
    splits: usize,
    scale: Scale,
}

/// A worker with plain or weighted cells.
enum AnyWorker {
    Plain(LocalWorker<i64>),
    Weighted(LocalWorker<[i64; 2]>),
}

/// Evaluates an expression for a worker with either cell type.
macro_rules! either {
    ($worker:expr, $name:ident => $what:expr) => {
        match $worker {
            AnyWorker::Plain($name) => $what,
            AnyWorker::Weighted($name) => $what,
        }
    };
}

impl MemberShare {
    /// Creates the state of a part whose rows have neither weights nor hessians, before its first tree.
    pub(super) fn plain(worker: LocalWorker<i64>) -> Self {
        Self::new(AnyWorker::Plain(worker))
    }

    /// Creates the state of a part whose rows have weights or hessians, before its first tree.
    pub(super) fn weighted(worker: LocalWorker<[i64; 2]>) -> Self {
        Self::new(AnyWorker::Weighted(worker))
    }

    fn new(worker: AnyWorker) -> Self {
        MemberShare {
            worker,
            workers: None,
            is_coupled: false,
            odds_trees: None,
            trees: 0,
            round: None,
            tree: None,
        }
    }

    /// Sets the log odds against the parts that this one is coupled with, all of whose scores include `trees` trees.
    pub(super) fn couple(&mut self, odds: Scores, trees: usize) {
        either!(&mut self.worker, worker => worker.set_odds(odds));
        self.odds_trees = Some(trees);
        self.round = None;
    }

    /// Adds the trees of earlier rounds, before any that is grown here.
    pub(super) fn add_earlier(&mut self, trees: &[CodedTree]) -> Result<()> {
        for (round, tree) in (self.trees as u32 + 1..).zip(trees) {
            either!(&mut self.worker, worker => worker.add_earlier(round, tree))?;
        }
        self.trees += trees.len();
        Ok(())
    }

    /// Returns the number of trees that the scores include.
    pub(super) fn trees(&self) -> usize {
        self.trees
    }

    /// Returns whether cells have weights.
    pub(super) fn is_weighted(&self) -> bool {
        matches!(self.worker, AnyWorker::Weighted(_))
    }

    /// Returns the scores, if they include exactly `trees` trees.
    pub(super) fn scores(&self, trees: usize) -> Option<&Scores> {
        let scores = either!(&self.worker, worker => worker.scores());
        scores.filter(|_| self.trees == trees)
    }

    /// Brings the state up to date. Returns `false` if it lacks trees and must be rebuilt.
    pub(super) fn reach(&mut self, progress: &BoostProgress) -> Result<bool> {
        match progress {
            BoostProgress::Round { trees, last } => {
                if self.trees + 1 == *trees
                    && let Some(last) = last
                {
                    self.add(last)?;
                }
                Ok(self.trees == *trees)
            }
            BoostProgress::Tree { trees, start, splits } => {
                let has_odds = !self.is_coupled || self.odds_trees == Some(*trees);
                let is_current = self.trees == *trees && has_odds;
                if is_current {
                    self.apply(start, splits)?;
                }
                Ok(is_current)
            }
        }
    }

    /// Computes the gradients of a round and the metrics of the current scores.
    pub(super) fn gradients(&mut self, round: u32) -> Result<(Vec<GradientSummary>, Vec<Mean>)> {
        let mut parts = either!(&mut self.worker, worker => worker.gradients_by_partition(round));
        self.round = Some(round);
        let partitions = either!(&self.worker, worker => worker.data().partitions());
        let own = self.workers.as_ref().map_or(partitions, |workers| workers.partitions);
        if parts.len() == partitions {
            parts.truncate(own); // a single summary of several partitions consists of maxima only
        }
        Ok((parts, either!(&self.worker, worker => worker.metrics_of(own))))
    }

    /// Computes the totals and histograms of nodes and encodes them as blocks.
    pub(super) fn level(
        &mut self,
        wanted: &[NodeId],
        groups: &[usize],
        blocks: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let count_bits = self.scale()?.count_bits;
        either!(&mut self.worker, worker => level(worker, wanted, groups, count_bits, blocks))
    }

    /// Computes the streaming histograms of a level's nodes for each feature group, merged over the share's workers as
    /// far as possible.
    pub(super) fn worker_histograms(
        &self,
        groups: &[usize],
        nodes: &[NodeId],
        centroids: usize,
    ) -> Result<Vec<MergeTree<NodeHistograms>>> {
        let OwnWorkers { bounds, workers, .. } = self.workers.as_ref().ok_or_else(malformed)?;
        let (own, scale) = (workers.clone(), self.scale()?);
        either!(&self.worker, worker => worker.rows_of(bounds, own, scale, centroids).histograms(groups, nodes))
    }

    /// Sums nodes by the codes of features.
    pub(super) fn value_sums(&self, wanted: &[GroupNodes]) -> Result<Vec<Vec<ValueList<GradientSums>>>> {
        let count_bits = self.scale()?.count_bits;
        either!(&self.worker, worker => worker.sums(count_bits).lists(wanted))
    }

    /// Sums parts of nodes over the rows of the share's workers.
    pub(super) fn part_sums(&mut self, parts: &[NodePart]) -> Result<Vec<GradientSums>> {
        let count_bits = self.scale()?.count_bits;
        let OwnWorkers { pieces, .. } = self.workers.as_ref().ok_or_else(malformed)?;
        either!(&mut self.worker, worker => {
            let sums = worker.part_sums_within(parts, pieces)?;
            Ok(sums.into_iter().map(|cell| cell.sums(count_bits)).collect())
        })
    }

    /// Adds a finished tree to the scores. If its splits were applied to these rows, their leaves are already known;
    /// otherwise the tree routes the rows.
    fn add(&mut self, last: &Grown) -> Result<()> {
        match &self.tree {
            Some(open) if open.number == last.start.tree => {
                self.apply(&last.start, &last.splits)?;
                either!(&mut self.worker, worker => worker.add_grown(&last.tree))?;
            }
            _ => either!(&mut self.worker, worker => worker.add_earlier(last.start.tree as u32, &last.tree))?,
        }
        self.trees += 1;
        self.tree = None;
        self.round = None;
        Ok(())
    }

    fn apply(&mut self, start: &TreeStart, splits: &[NodeSplit]) -> Result<()> {
        if self.round != Some(start.tree as u32) {
            either!(&mut self.worker, worker => worker.gradients_by_partition(start.tree as u32));
            self.round = Some(start.tree as u32);
            self.tree = None;
        }
        let made = match &self.tree {
            Some(open) if open.number == start.tree => open.splits,
            _ => {
                either!(&mut self.worker, worker => worker.start_tree(start))?;
                0
            }
        };
        if let Some(rest) = splits.get(made..)
            && !rest.is_empty()
        {
            either!(&mut self.worker, worker => worker.split(rest).map(drop))?;
        }
        let (number, splits) = (start.tree, made.max(splits.len()));
        self.tree = Some(OpenTree { number, splits, scale: start.scale });
        Ok(())
    }

    /// Returns the scale of the tree being grown.
    fn scale(&self) -> Result<Scale> {
        self.tree.as_ref().map(|open| open.scale).ok_or_else(malformed)
    }
}

fn level<C: WireCell>(
    worker: &mut LocalWorker<C>,
    wanted: &[NodeId],
    groups: &[usize],
    count_bits: u32,
    blocks: usize,
) -> Result<Vec<Vec<u8>>> {
    let nodes: Vec<WantedNode<C>> =
        wanted.iter().map(|node| WantedNode { node: *node, total: worker.total(*node) }).collect();
    let histograms = match groups {
        [] => vec![NodeHistogram { groups: Vec::new() }; nodes.len()],
        groups => worker.histograms(groups, &nodes)?,
    };
    let nodes: Vec<NodeSums<C>> = nodes.into_iter().map(|node| node.total).zip(histograms).collect();
    Ok(write_blocks(&nodes, groups, count_bits, blocks.max(1)))
}
