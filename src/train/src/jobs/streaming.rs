//! Job that builds streaming histograms, as in pGBRT (Tyree et al. 2011). Each worker builds histograms from its own
//! rows. They are merged pairwise, on executors as far as possible, so that the amount of data that the driver receives
//! depends neither on the number of rows nor on the number of workers.

use super::boost_share::BoostShare;
use super::snapshot::TrainingSnapshot;
use crate::driver::TreeStart;
use crate::tree::{MergeTree, NodeHistograms, NodeId, NodeSplit, merge_histograms};
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// Applies the splits of a tree and computes the streaming histograms of nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamLevel {
    /// Number of trees that the scores must include.
    pub trees: usize,
    /// The inputs that the tree was started with.
    pub start: TreeStart,
    /// All splits of the tree so far.
    pub splits: Vec<NodeSplit>,
    /// The nodes whose histograms are computed.
    pub wanted: Vec<NodeId>,
    /// The feature groups whose histograms are computed.
    pub groups: Vec<usize>,
    /// b: maximum number of bins per histogram.
    pub centroids: usize,
}

/// The histograms of some feature groups, merged over some of the workers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerLevels {
    /// b: maximum number of bins per histogram.
    centroids: usize,
    /// The histograms of each feature group.
    groups: Vec<MergeTree<NodeHistograms>>,
}

impl WorkerLevels {
    /// Returns the histograms of each feature group, merged over all workers.
    pub fn finish(self) -> Result<Vec<NodeHistograms>> {
        self.groups.into_iter().map(|tree| tree.finish().ok_or_else(malformed)).collect()
    }
}

impl Job for StreamLevel {
    const NAME: &'static str = "streaming";
    type Data = LabelledData;
    type State = Mutex<BoostShare>;
    type Snapshot = TrainingSnapshot;
    type Partial = WorkerLevels;

    fn prepare(
        &self,
        snapshot: Option<TrainingSnapshot>,
        shard: &Shard<'_, LabelledData>,
    ) -> Result<Option<Mutex<BoostShare>>> {
        BoostShare::prepare(snapshot, shard)
    }

    fn state_bytes(state: &Mutex<BoostShare>) -> u64 {
        BoostShare::bytes_of(state)
    }

    fn map(
        &self,
        state: &Mutex<BoostShare>,
        shard: &Shard<'_, LabelledData>,
    ) -> Result<Option<WorkerLevels>> {
        Ok(self.map_blocks(state, shard, 1)?.and_then(|mut blocks| blocks.pop()))
    }

    /// Each block has some of the feature groups.
    fn map_blocks(
        &self,
        state: &Mutex<BoostShare>,
        _: &Shard<'_, LabelledData>,
        blocks: usize,
    ) -> Result<Option<Vec<WorkerLevels>>> {
        let Ok(mut share) = state.lock() else { return Ok(None) }; // an earlier request panicked
        if !share.follow(self.trees, &self.start, &self.splits)? {
            return Ok(None);
        }
        let mut groups = share.worker_histograms(self)?.into_iter();
        let (count, blocks) = (self.groups.len(), blocks.clamp(1, self.groups.len().max(1)));
        let block = |block: usize| {
            let own = count * (block + 1) / blocks - count * block / blocks;
            WorkerLevels { centroids: self.centroids, groups: groups.by_ref().take(own).collect() }
        };
        Ok(Some((0..blocks).map(block).collect()))
    }
}

impl Partial for WorkerLevels {
    fn merge(&mut self, other: Self) -> Result<()> {
        if (self.centroids, self.groups.len()) != (other.centroids, other.groups.len()) {
            return Err(malformed());
        }
        let mut merge = merge_histograms(self.centroids);
        for (tree, other) in self.groups.iter_mut().zip(other.groups) {
            if tree.workers() != other.workers() {
                return Err(malformed());
            }
            tree.append(other, &mut merge)?;
        }
        Ok(())
    }
}
