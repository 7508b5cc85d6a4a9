//! Step that computes the histograms of a tree level.

use super::boost_job::BoostStep;
use super::cells::merge_blocks;
use super::member_share::MemberShare;
use crate::tree::NodeId;
use planetree_base::compact::Bytes;
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use serde::{Deserialize, Serialize};

/// Computes the histograms of some nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
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

impl BoostStep for Level {
    const NAME: &'static str = "level";
    type Partial = LevelBlock;

    fn run(&self, share: &mut MemberShare, blocks: usize) -> Result<Vec<LevelBlock>> {
        let cells = share.level(&self.wanted, &self.groups, blocks)?;
        let weighted = share.is_weighted();
        Ok(cells.into_iter().map(|cells| LevelBlock { weighted, cells: Bytes(cells) }).collect())
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
