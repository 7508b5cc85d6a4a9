//! Job that sums parts of nodes exactly, for candidate splits whose counts are known only approximately.

use super::boost_share::BoostShare;
use super::snapshot::TrainingSnapshot;
use crate::driver::TreeStart;
use crate::tree::{GradientSums, NodePart, NodeSplit};
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// Applies the splits of a tree and sums parts of nodes over the rows of all workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SumParts {
    /// Number of trees that the scores must include.
    pub trees: usize,
    /// The inputs that the tree was started with.
    pub start: TreeStart,
    /// All splits of the tree so far.
    pub splits: Vec<NodeSplit>,
    /// The parts that are summed.
    pub parts: Vec<NodePart>,
}

/// The sums of each part over some of the rows.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct PartSums(pub Vec<GradientSums>);

impl Job for SumParts {
    const NAME: &'static str = "part_sums";
    type Data = LabelledData;
    type State = Mutex<BoostShare>;
    type Snapshot = TrainingSnapshot;
    type Partial = PartSums;

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

    fn map(&self, state: &Mutex<BoostShare>, _: &Shard<'_, LabelledData>) -> Result<Option<PartSums>> {
        let Ok(mut share) = state.lock() else { return Ok(None) }; // an earlier request panicked
        if !share.follow(self.trees, &self.start, &self.splits)? {
            return Ok(None);
        }
        Ok(Some(PartSums(share.part_sums(&self.parts, self.start.scale.count_bits)?)))
    }
}

impl Partial for PartSums {
    fn merge(&mut self, other: Self) -> Result<()> {
        if self.0.len() != other.0.len() {
            return Err(malformed());
        }
        self.0.iter_mut().zip(other.0).for_each(|(sum, other)| *sum = *sum + other);
        Ok(())
    }
}
