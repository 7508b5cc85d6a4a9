//! Step that builds streaming histograms, as in pGBRT (Tyree et al. 2011). Each worker builds histograms from its own
//! rows. They are merged pairwise, on executors, so that the amount of data that the driver receives depends neither on
//! the number of rows nor on the number of workers.

use super::boost_job::BoostStep;
use super::in_blocks;
use super::member_share::MemberShare;
use crate::tree::{MergeTree, NodeHistograms, NodeId, merge_histograms};
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use serde::{Deserialize, Serialize};

/// Computes the streaming histograms of nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamLevel {
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

impl BoostStep for StreamLevel {
    const NAME: &'static str = "streaming";
    type Partial = WorkerLevels;

    /// Each block has some of the feature groups.
    fn run(&self, share: &mut MemberShare, blocks: usize) -> Result<Vec<WorkerLevels>> {
        let groups = share.worker_histograms(&self.groups, &self.wanted, self.centroids)?;
        let block = |groups| WorkerLevels { centroids: self.centroids, groups };
        Ok(in_blocks(groups, blocks).into_iter().map(block).collect())
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
