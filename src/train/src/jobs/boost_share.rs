//! A share of the rows of a boosted training on an executor, which follows the training as requests arrive. It is a
//! cache: a share that was lost is rebuilt from the dataset and the trees so far.

use super::cells::{NodeSums, WireCell, write_blocks};
use super::snapshot::TrainingSnapshot;
use super::streaming::StreamLevel;
use crate::bins::BinnedData;
use crate::boost::{LocalWorker, RowGradients, WorkerState};
use crate::config::Parameters;
use crate::driver::{BoostWorker, GradientSummary, Metrics, Scores, TreeStart};
use crate::objective::objective;
use crate::tree::{CodedTree, NodeHistogram, NodeHistograms, NodeId, NodeSplit, RowStore, WantedNode};
use planetree_base::error::Result;
use planetree_base::job::Shard;
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use planetree_metric::Mean;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// A finished tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grown {
    /// State at its root.
    pub start: TreeStart,
    /// All its splits.
    pub splits: Vec<NodeSplit>,
    /// The tree.
    pub tree: CodedTree,
}

/// Some rows of a training and how far they have followed it.
pub struct BoostShare {
    worker: AnyWorker,
    bytes: u64,
    /// Number of trees included in the scores.
    trees: usize,
    /// The round of the current gradients.
    round: Option<u32>,
    /// The tree being grown and the number of its splits applied so far.
    tree: Option<(u64, usize)>,
}

/// A worker of either cell type.
pub(super) enum AnyWorker {
    Plain(LocalWorker<i64>),
    Weighted(LocalWorker<[i64; 2]>),
}

/// Runs an expression on a worker of either cell type.
macro_rules! either {
    ($worker:expr, $name:ident => $what:expr) => {
        match $worker {
            AnyWorker::Plain($name) => $what,
            AnyWorker::Weighted($name) => $what,
        }
    };
}

impl BoostShare {
    /// A share before the first tree.
    pub(super) fn new(worker: AnyWorker, bytes: u64) -> Self {
        BoostShare { worker, bytes, trees: 0, round: None, tree: None }
    }

    /// Builds the share of a shard from a snapshot; `None` without one.
    pub fn prepare(
        snapshot: Option<TrainingSnapshot>,
        shard: &Shard<'_, LabelledData>,
    ) -> Result<Option<Mutex<Self>>> {
        let Some(snapshot) = snapshot else { return Ok(None) };
        let parameters = Parameters::from_toml(&snapshot.parameters)?;
        let binning = snapshot.binning(&parameters);
        let data = Arc::new(BinnedData::of_partitions(shard.data, shard.parts, binning)?);
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
        let mut share = BoostShare::new(
            match snapshot.weighted {
                false => AnyWorker::Plain(LocalWorker::new(&parameters, data, state)),
                true => AnyWorker::Weighted(LocalWorker::new(&parameters, data, state)),
            },
            bytes,
        );
        for (round, tree) in (1..).zip(&snapshot.trees) {
            either!(&mut share.worker, worker => worker.add_earlier(round, tree))?;
        }
        share.trees = snapshot.trees.len();
        Ok(Some(Mutex::new(share)))
    }

    /// Approximate memory of a share.
    pub fn bytes_of(share: &Mutex<Self>) -> u64 {
        share.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Whether cells have weights.
    pub fn is_weighted(&self) -> bool {
        matches!(self.worker, AnyWorker::Weighted(_))
    }

    /// Adds the last tree if it is the only one that is missing; `false` if others are missing, too.
    pub fn catch_up(&mut self, trees: usize, last: Option<&Grown>) -> Result<bool> {
        if self.trees + 1 == trees
            && let Some(last) = last
        {
            self.add(last)?;
        }
        Ok(self.trees == trees)
    }

    /// Computes the gradients of a round, and the metrics of the scores.
    pub fn gradients(&mut self, round: u32) -> Result<(Vec<GradientSummary>, Vec<Mean>)> {
        let parts = either!(&mut self.worker, worker => worker.gradients_by_partition(round));
        self.round = Some(round);
        Ok((parts, either!(&mut self.worker, worker => worker.metrics())?))
    }

    /// Applies the splits of a tree that have not been applied here yet; `false` if the share is at another tree.
    pub fn follow(&mut self, trees: usize, start: &TreeStart, splits: &[NodeSplit]) -> Result<bool> {
        if self.trees != trees {
            return Ok(false);
        }
        self.apply(start, splits)?;
        Ok(true)
    }

    /// Encodes the totals and histograms of some nodes as blocks.
    pub fn level(
        &mut self,
        wanted: &[NodeId],
        groups: &[usize],
        count_bits: u32,
        blocks: usize,
    ) -> Result<Vec<Vec<u8>>> {
        either!(&mut self.worker, worker => level(worker, wanted, groups, count_bits, blocks))
    }

    /// The streaming histograms of a level over the rows of a worker, by feature group.
    pub fn worker_histograms(&self, own: Range<usize>, level: &StreamLevel) -> Result<Vec<NodeHistograms>> {
        let (rules, groups, nodes) = (&level.rules, &level.groups, &level.wanted);
        either!(&self.worker, worker => worker.rows_of(own, level.start.scale).histograms(rules, groups, nodes))
    }

    /// Adds a finished tree to the scores, using the node assignment of the rows if its splits were applied here.
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
