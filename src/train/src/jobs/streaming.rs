//! Job that builds streaming histograms, as in pGBRT (Tyree et al. 2011). Each worker builds histograms from its own
//! rows. The driver merges the histograms of all workers in order and finds the best splits.

use super::boost_share::BoostShare;
use super::snapshot::TrainingSnapshot;
use crate::driver::TreeStart;
use crate::tree::{NodeHistograms, NodeId, NodeSplit, StreamingRules, worker_partitions};
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Mutex;

/// Applies the splits of a tree and computes the streaming histograms of nodes. A shard, which is the set of
/// partitions that one executor works on, must contain all partitions of its workers.
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
    /// The parameters of the histograms.
    pub rules: StreamingRules,
}

/// The histograms of one or more workers, in order. Each worker has one entry per feature group.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerLevels(pub Vec<Vec<NodeHistograms>>);

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
        let Ok(mut share) = state.lock() else { return Ok(None) }; // an earlier request panicked
        if !share.follow(self.trees, &self.start, &self.splits)? {
            return Ok(None);
        }
        let workers = workers_of(shard.parts, shard.data.partitions(), self.rules.workers)?;
        let levels = workers.into_iter().map(|own| share.worker_histograms(own, self));
        Ok(Some(WorkerLevels(levels.collect::<Result<_>>()?)))
    }
}

/// Returns the partitions of each worker of a shard, relative to the shard's first partition.
fn workers_of(parts: &[usize], partitions: usize, workers: usize) -> Result<Vec<Range<usize>>> {
    let first = parts.first().copied().ok_or_else(malformed)?;
    let shard = first..first + parts.len();
    let all = worker_partitions(partitions, workers).into_iter();
    let own: Vec<Range<usize>> = all.filter(|own| shard.contains(&own.start)).collect();
    let covers = own.first().map(|own| own.start) == Some(shard.start)
        && own.last().map(|own| own.end) == Some(shard.end);
    let local = |own: Range<usize>| own.start - first..own.end - first;
    if covers { Ok(own.into_iter().map(local).collect()) } else { Err(malformed()) }
}

impl Partial for WorkerLevels {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.0.extend(other.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_has_whole_workers() {
        // Seven partitions are divided among three workers as 0..2, 2..4 and 4..7.
        assert_eq!(workers_of(&[0, 1, 2, 3], 7, 3).unwrap(), [0..2, 2..4]);
        assert_eq!(workers_of(&[2, 3, 4, 5, 6], 7, 3).unwrap(), [0..2, 2..5]);
        assert_eq!(workers_of(&[4, 5, 6], 7, 3).unwrap(), std::slice::from_ref(&(0..3)));
        assert!(workers_of(&[1, 2, 3], 7, 3).is_err() && workers_of(&[2, 3, 4], 7, 3).is_err());
        assert!(workers_of(&[], 7, 3).is_err());
        // There are more workers than partitions.
        assert_eq!(workers_of(&[1], 2, 5).unwrap(), std::slice::from_ref(&(0..1)));
    }
}
