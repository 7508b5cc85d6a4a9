//! Job that computes the histograms of a tree level.

use super::boost_share::BoostShare;
use super::cells::merge_blocks;
use super::snapshot::TrainingSnapshot;
use crate::driver::TreeStart;
use crate::tree::{NodeId, NodeSplit};
use planetree_base::compact::Bytes;
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// Applies the splits of a tree and computes the histograms of some nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Number of trees that the scores must include.
    pub trees: usize,
    /// The inputs that the tree was started with.
    pub start: TreeStart,
    /// All splits of the tree so far.
    pub splits: Vec<NodeSplit>,
    /// The nodes whose histograms are computed.
    pub wanted: Vec<NodeId>,
    /// The feature groups whose histograms are computed. Without any, only the totals of the nodes are computed.
    pub groups: Vec<usize>,
}

/// A block with the totals and histograms of nodes, summed over the rows of one or more executors; see
/// [`add_block`](super::add_block).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelBlock {
    /// Whether cells have weights.
    pub weighted: bool,
    /// The encoded cells.
    pub cells: Bytes,
}

impl Job for Level {
    const NAME: &'static str = "level";
    type Data = LabelledData;
    type State = Mutex<BoostShare>;
    type Snapshot = TrainingSnapshot;
    type Partial = LevelBlock;

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

    fn map(&self, state: &Mutex<BoostShare>, shard: &Shard<'_, LabelledData>) -> Result<Option<LevelBlock>> {
        Ok(self.map_blocks(state, shard, 1)?.and_then(|mut blocks| blocks.pop()))
    }

    fn map_blocks(
        &self,
        state: &Mutex<BoostShare>,
        _: &Shard<'_, LabelledData>,
        blocks: usize,
    ) -> Result<Option<Vec<LevelBlock>>> {
        let Ok(mut share) = state.lock() else { return Ok(None) }; // an earlier request panicked
        if !share.follow(self.trees, &self.start, &self.splits)? {
            return Ok(None);
        }
        let cells = share.level(&self.wanted, &self.groups, self.start.scale.count_bits, blocks)?;
        let weighted = share.is_weighted();
        Ok(Some(cells.into_iter().map(|cells| LevelBlock { weighted, cells: Bytes(cells) }).collect()))
    }
}

impl Partial for LevelBlock {
    fn merge(&mut self, other: Self) -> Result<()> {
        let own = std::mem::take(&mut self.cells);
        let all = vec![LevelBlock { weighted: self.weighted, cells: own }, other];
        self.cells = Self::merge_all(all)?.ok_or_else(malformed)?.cells;
        Ok(())
    }

    /// Merges all blocks in one step, so that each is decoded only once.
    fn merge_all(blocks: Vec<Self>) -> Result<Option<Self>> {
        let Some(weighted) = blocks.first().map(|block| block.weighted) else { return Ok(None) };
        if blocks.iter().any(|block| block.weighted != weighted) {
            return Err(malformed());
        }
        let cells: Vec<&[u8]> = blocks.iter().map(|block| block.cells.0.as_slice()).collect();
        Ok(Some(LevelBlock { weighted, cells: Bytes(merge_blocks(&cells, weighted)?) }))
    }
}
