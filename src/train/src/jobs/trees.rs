//! Job that grows trees of a forest. Trees are independent of each other, so they are divided among executors, each of
//! which holds all rows as codes.

use super::snapshot::TrainingSnapshot;
use super::{learned_labels, map_labels};
use crate::bins::BinnedData;
use crate::config::{ForestSettings, Parameters};
use crate::driver::ForestTree;
use crate::forest::grow_trees;
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Scope, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// Grows some trees of a forest, divided among workers. Each worker has its own shard, which contains only the
/// worker's number, because every worker needs all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrowTrees {
    /// The numbers of the trees.
    pub trees: Range<u32>,
    /// Number of workers.
    pub workers: usize,
    /// The parameters of the forest as TOML.
    pub parameters: String,
    /// The grade up to which labels become 1 and above which they become 0. `None` if the labels are learned.
    pub at_most: Option<i32>,
    /// How much a split on each feature must gain more than a split on a free feature. `None` if all are free.
    pub penalties: Option<Vec<f64>>,
}

/// Grown trees of a forest, in the order of their numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct GrownTrees(pub Vec<ForestTree>);

/// All rows of a training run as codes (bin numbers), with the labels of the dataset.
pub struct ForestData {
    data: Arc<BinnedData>,
    bytes: u64,
}

impl GrowTrees {
    /// Returns the numbers of the trees that a worker grows.
    fn of_worker(&self, worker: usize) -> Range<u32> {
        let count = u64::from(self.trees.end - self.trees.start);
        let bound =
            |worker: usize| self.trees.start + (count * worker as u64 / self.workers.max(1) as u64) as u32;
        bound(worker)..bound(worker + 1)
    }
}

impl Job for GrowTrees {
    const NAME: &'static str = "trees";
    const SCOPE: Scope = Scope::Data;
    type Data = LabelledData;
    type State = ForestData;
    type Snapshot = TrainingSnapshot;
    type Partial = GrownTrees;

    fn prepare(
        &self,
        snapshot: Option<TrainingSnapshot>,
        shard: &Shard<'_, LabelledData>,
    ) -> Result<Option<ForestData>> {
        let Some(snapshot) = snapshot else { return Ok(None) };
        let parameters = Parameters::from_toml(&snapshot.parameters)?;
        let all: Vec<usize> = (0..shard.data.partitions()).collect();
        let mut data = BinnedData::of_partitions(shard.data, &all, snapshot.binning(&parameters))?;
        map_labels(&mut data.rows, &parameters, shard.data)?;
        let bytes = data.bytes()?;
        Ok(Some(ForestData { data: Arc::new(data), bytes }))
    }

    fn state_bytes(state: &ForestData) -> u64 {
        state.bytes
    }

    fn map(&self, state: &ForestData, shard: &Shard<'_, LabelledData>) -> Result<Option<GrownTrees>> {
        let [worker] = shard.parts else { return Err(malformed()) };
        let trees = self.of_worker(*worker);
        if trees.is_empty() {
            return Ok(Some(GrownTrees(Vec::new())));
        }
        let parameters = Parameters::from_toml(&self.parameters)?;
        let settings: ForestSettings = parameters.with(parameters.forest().ok_or_else(malformed)?.clone());
        let data = learned_labels(&state.data, self.at_most);
        let fits = |penalties: &Vec<f64>| penalties.len() == data.binning.features.len();
        if !self.penalties.as_ref().is_none_or(fits) {
            return Err(malformed());
        }
        Ok(Some(GrownTrees(grow_trees(&settings, &data, trees, self.penalties.as_deref())?)))
    }
}

impl Partial for GrownTrees {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.0.extend(other.0);
        Ok(())
    }

    fn is_valid(&self) -> bool {
        self.0.iter().all(ForestTree::is_valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{ForestNode, ForestSplit};
    use planetree_base::compact::{from_bytes, to_bytes};

    #[test]
    fn every_tree_is_dealt_once() {
        for (trees, workers) in [(1..9, 3), (5..6, 4), (1..101, 7)] {
            let (parameters, trees_of_all) = (String::new(), trees.clone());
            let job = GrowTrees { trees: trees_of_all, workers, parameters, at_most: None, penalties: None };
            let dealt: Vec<u32> = (0..workers).flat_map(|worker| job.of_worker(worker)).collect();
            assert_eq!(dealt, trees.collect::<Vec<_>>());
        }
    }

    #[test]
    fn trees_come_back() {
        let split = ForestSplit {
            feature: 7,
            code: 300,
            threshold: -1.5,
            missing: crate::bins::MissingBranch::Left,
            left: 1,
            gain: 0.1,
        };
        let node = |split| ForestNode { depth: 1, value: 1.0 / 3.0, cover: 17.0, split };
        let trees = |left| {
            let split = ForestSplit { left, ..split };
            let tree = ForestTree { nodes: vec![node(Some(split)), node(None), node(None)] };
            GrownTrees(vec![tree, ForestTree::default()])
        };
        let bytes = to_bytes(&trees(1));
        let back: GrownTrees = from_bytes(&bytes).unwrap();
        assert!(back.is_valid() && back == trees(1));
        for cut in 0..bytes.len() {
            assert!(from_bytes::<GrownTrees>(&bytes[..cut]).is_err());
        }
        // In the first tree a child precedes its parent; in the second one a child does not exist.
        assert!(!trees(0).is_valid() && !trees(2).is_valid());
    }
}
