//! Trains forests on a cluster. Trees are independent of each other, so each executor grows some of them from all
//! rows of the dataset, whose bin numbers it holds in memory. The trees are distributed, not the rows.

use super::call::JobCall;
use super::session::TrainingSession;
use super::share::file_groups;
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use planetree_train::jobs::{GrowTrees, GrownTrees, TrainingSnapshot};
use planetree_train::{Draw, ForestTree, TreeGrower};
use std::ops::Range;
use std::sync::Arc;

/// Grows trees on the executors of a cluster.
pub(crate) struct ClusterGrower {
    session: Arc<TrainingSession>,
    workers: usize,
    snapshot: TrainingSnapshot,
    first: std::sync::atomic::AtomicBool,
}

impl ClusterGrower {
    /// Creates a grower that uses all executors of the session.
    pub(crate) fn new(session: Arc<TrainingSession>, snapshot: TrainingSnapshot) -> Self {
        let workers = session.executors.max(1);
        ClusterGrower { session, workers, snapshot, first: true.into() }
    }

    /// Returns one file group per worker, which identifies the worker and names no file that is read.
    fn groups(&self) -> Vec<FileGroup> {
        let workers: Vec<Range<usize>> = (0..self.workers).map(|worker| worker..worker + 1).collect();
        file_groups(&format!("{}/trees", self.session.command.data), &workers)
    }
}

impl TreeGrower for ClusterGrower {
    fn grow(&self, tree: u32, _rows: Vec<u32>) -> Result<ForestTree> {
        self.grow_batch(tree..tree + 1, &|_| Vec::new())?.pop().ok_or_else(malformed)
    }

    fn grow_batch(&self, trees: Range<u32>, _draw: &Draw<'_>) -> Result<Vec<ForestTree>> {
        let wanted = trees.len();
        let is_first = self.first.swap(false, std::sync::atomic::Ordering::Relaxed);
        let partials = self.session.client.run(&JobCall {
            command: &self.session.command,
            job: &GrowTrees { trees, workers: self.workers },
            snapshot: &self.snapshot,
            is_first,
            groups: &self.groups(),
            merge_plan: None,
        })?;
        let GrownTrees(all) = Partial::merge_all(partials)?.ok_or_else(malformed)?;
        if all.len() == wanted { Ok(all) } else { Err(malformed()) }
    }

    fn batch_size(&self) -> Option<u32> {
        // Grow several trees per thread, so that few threads are idle while the last trees grow.
        Some(4 * self.session.threads.max(1) as u32)
    }
}

impl Drop for ClusterGrower {
    fn drop(&mut self) {
        if !*self.first.get_mut() {
            self.session.client.forget(&self.session.command, &self.groups());
        }
    }
}
