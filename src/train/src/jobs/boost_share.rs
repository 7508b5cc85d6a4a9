//! A share of a boosting run: the rows of the row groups that one executor works on, with their scores and gradients.
//! Each request brings this state up to date. The state is only a cache: if it is lost, it is rebuilt from the
//! dataset and the trees grown so far.

use super::cells::{NodeSums, WireCell, write_blocks};
use super::map_labels;
use super::snapshot::TrainingSnapshot;
use super::streaming::StreamLevel;
use super::worker_shares::OwnWorkers;
use crate::bins::BinnedData;
use crate::boost::{LocalWorker, RowGradients, WorkerState};
use crate::config::Parameters;
use crate::driver::{BoostWorker, GradientSummary, Metrics, Scores, TreeStart};
use crate::objective::objective;
use crate::tree::{
    Cell, CodedTree, GradientSums, MergeTree, NodeHistogram, NodeHistograms, NodeId, NodePart, NodeSplit,
    RowStore, WantedNode,
};
use planetree_base::error::Result;
use planetree_base::job::Shard;
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use planetree_metric::Mean;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// A finished tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grown {
    /// The inputs that the tree was started with.
    pub start: TreeStart,
    /// All splits of the tree, in the order in which they were applied.
    pub splits: Vec<NodeSplit>,
    /// The tree, whose splits compare bin numbers instead of feature values.
    pub tree: CodedTree,
}

/// The rows that one executor works on, and how far their state has progressed.
pub struct BoostShare {
    worker: AnyWorker,
    /// The workers of streaming histograms that this share has, if they build histograms of their own.
    workers: Option<OwnWorkers>,
    bytes: u64,
    /// Number of trees that the scores include.
    trees: usize,
    /// The round that the gradients were computed for. `None` before the first round.
    round: Option<u32>,
    /// The number of the tree being grown, and how many of its splits have been applied.
    tree: Option<(u64, usize)>,
}

/// A worker with plain or weighted cells.
pub(super) enum AnyWorker {
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

impl BoostShare {
    /// Creates a share that has not processed any tree.
    pub(super) fn new(worker: AnyWorker, bytes: u64) -> Self {
        BoostShare { worker, workers: None, bytes, trees: 0, round: None, tree: None }
    }

    /// Builds the share for a shard (some row groups of the dataset) from a snapshot. Returns `None` if no snapshot
    /// was sent.
    pub fn prepare(
        snapshot: Option<TrainingSnapshot>,
        shard: &Shard<'_, LabelledData>,
    ) -> Result<Option<Mutex<Self>>> {
        let Some(snapshot) = snapshot else { return Ok(None) };
        let parameters = Parameters::from_toml(&snapshot.parameters)?;
        let binning = snapshot.binning(&parameters);
        let mut data = BinnedData::of_partitions(shard.data, shard.parts, binning)?;
        map_labels(&mut data.rows, &parameters, shard.data)?;
        let data = Arc::new(data);
        let parameters = parameters.with(parameters.boost().ok_or_else(malformed)?.clone());
        let objective = objective(&parameters.learner.objective, parameters.seed);
        let state = WorkerState {
            scores: Scores::constant(&data.rows, snapshot.base_score),
            metrics: match objective {
                None => None,
                Some(_) => Some(Metrics::new(&parameters, &data.rows)?),
            },
            gradients: RowGradients::new(objective, &data.rows),
        };
        let bytes = data.bytes()?;
        let workers = match &snapshot.workers {
            None => None,
            Some(shares) => Some(OwnWorkers::find(shares, shard.parts, &data.rows).ok_or_else(malformed)?),
        };
        let mut share = BoostShare::new(
            match snapshot.weighted {
                false => AnyWorker::Plain(LocalWorker::new(&parameters, data, state)),
                true => AnyWorker::Weighted(LocalWorker::new(&parameters, data, state)),
            },
            bytes,
        );
        share.workers = workers;
        for (round, tree) in (1..).zip(&snapshot.trees) {
            either!(&mut share.worker, worker => worker.add_earlier(round, tree))?;
        }
        share.trees = snapshot.trees.len();
        Ok(Some(Mutex::new(share)))
    }

    /// Returns the approximate memory of a share in bytes.
    pub fn bytes_of(share: &Mutex<Self>) -> u64 {
        share.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Returns whether cells have weights.
    pub fn is_weighted(&self) -> bool {
        matches!(self.worker, AnyWorker::Weighted(_))
    }

    /// Adds the last tree if it is the only missing one. Returns `false` if the scores do not include exactly `trees`
    /// trees afterwards.
    pub fn catch_up(&mut self, trees: usize, last: Option<&Grown>) -> Result<bool> {
        if self.trees + 1 == trees
            && let Some(last) = last
        {
            self.add(last)?;
        }
        Ok(self.trees == trees)
    }

    /// Computes the gradients of a round and the metrics of the current scores.
    pub fn gradients(&mut self, round: u32) -> Result<(Vec<GradientSummary>, Vec<Mean>)> {
        let mut parts = either!(&mut self.worker, worker => worker.gradients_by_partition(round));
        self.round = Some(round);
        let partitions = either!(&self.worker, worker => worker.data().partitions());
        let own = self.workers.as_ref().map_or(partitions, |workers| workers.partitions);
        if parts.len() == partitions {
            parts.truncate(own); // a single summary of several partitions consists of maxima only
        }
        Ok((parts, either!(&self.worker, worker => worker.metrics_of(own))))
    }

    /// Applies the splits of the current tree that have not been applied yet. If the number of trees in the
    /// scores differs from `trees`, applies nothing and returns `false`.
    pub fn follow(&mut self, trees: usize, start: &TreeStart, splits: &[NodeSplit]) -> Result<bool> {
        if self.trees != trees {
            return Ok(false);
        }
        self.apply(start, splits)?;
        Ok(true)
    }

    /// Computes the totals and histograms of nodes and encodes them as blocks.
    pub fn level(
        &mut self,
        wanted: &[NodeId],
        groups: &[usize],
        count_bits: u32,
        blocks: usize,
    ) -> Result<Vec<Vec<u8>>> {
        either!(&mut self.worker, worker => level(worker, wanted, groups, count_bits, blocks))
    }

    /// Computes the streaming histograms of a level's nodes for each feature group, merged over the share's workers as
    /// far as possible.
    pub fn worker_histograms(&self, level: &StreamLevel) -> Result<Vec<MergeTree<NodeHistograms>>> {
        let OwnWorkers { bounds, workers, .. } = self.workers.as_ref().ok_or_else(malformed)?;
        let (groups, nodes) = (&level.groups, &level.wanted);
        let (own, scale, centroids) = (workers.clone(), level.start.scale, level.centroids);
        either!(&self.worker, worker => worker.rows_of(bounds, own, scale, centroids).histograms(groups, nodes))
    }

    /// Sums parts of nodes over the rows of the share's workers.
    pub fn part_sums(&mut self, parts: &[NodePart], count_bits: u32) -> Result<Vec<GradientSums>> {
        let OwnWorkers { pieces, .. } = self.workers.as_ref().ok_or_else(malformed)?;
        either!(&mut self.worker, worker => {
            let sums = worker.part_sums_within(parts, pieces)?;
            Ok(sums.into_iter().map(|cell| cell.sums(count_bits)).collect())
        })
    }

    /// Adds a finished tree to the scores. If its splits were applied to these rows, their leaves are already known;
    /// otherwise the tree routes the rows.
    fn add(&mut self, last: &Grown) -> Result<()> {
        match self.tree {
            Some((tree, _)) if tree == last.start.tree => {
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
        let made = match self.tree {
            Some((tree, made)) if tree == start.tree => made,
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
        self.tree = Some((start.tree, made.max(splits.len())));
        Ok(())
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
