//! Trains forests on a cluster. Trees are independent of each other, so each executor grows some of them from all
//! rows of the dataset, whose bin numbers it holds in memory. The trees are distributed, not the rows.

use super::call::JobCall;
use super::session::StageSession;
use super::share::file_groups;
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use planetree_train::config::{ForestSettings, LearnerParameters};
use planetree_train::jobs::{GrowTrees, GrownTrees};
use planetree_train::{Draw, ForestTree, RemotePart, TreeGrower};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Grows trees on the executors of a cluster.
pub(crate) struct ClusterGrower {
    stage: Arc<StageSession>,
    workers: usize,
    /// The parameters of the forest as TOML.
    parameters: String,
    at_most: Option<i32>,
    /// What features cost the trees that are grown from now on. `None` if they are free.
    penalties: Option<Arc<[f64]>>,
    was_asked: AtomicBool,
}

impl ClusterGrower {
    /// Creates a grower that uses all executors of the session.
    pub(crate) fn new(stage: Arc<StageSession>, part: &RemotePart<'_, ForestSettings>) -> Self {
        let forest = part.parameters.learner.clone();
        ClusterGrower {
            workers: stage.session.executors.max(1),
            stage,
            parameters: part.parameters.with(LearnerParameters::Forest(forest)).to_toml(),
            at_most: part.at_most,
            penalties: None,
            was_asked: AtomicBool::new(false),
        }
    }

    /// Returns one file group per worker, which identifies the worker and names no file that is read.
    fn groups(&self) -> Vec<FileGroup> {
        let workers: Vec<Range<usize>> = (0..self.workers).map(|worker| worker..worker + 1).collect();
        file_groups(&format!("{}/trees", self.stage.session.command.data), &workers)
    }
}

impl TreeGrower for ClusterGrower {
    fn grow(&self, tree: u32, _rows: Vec<u32>) -> Result<ForestTree> {
        self.grow_batch(tree..tree + 1, &|_| Vec::new())?.pop().ok_or_else(malformed)
    }

    fn grow_batch(&self, trees: Range<u32>, _draw: &Draw<'_>) -> Result<Vec<ForestTree>> {
        let wanted = trees.len();
        self.was_asked.store(true, Ordering::Relaxed);
        let (parameters, at_most) = (self.parameters.clone(), self.at_most);
        let penalties = self.penalties.as_ref().map(|penalties| penalties.to_vec());
        let partials = self.stage.session.client.run(&JobCall {
            command: &self.stage.session.command,
            job: &GrowTrees { trees, workers: self.workers, parameters, at_most, penalties },
            snapshot: &self.stage.snapshot(),
            is_first: self.stage.is_first(),
            groups: &self.groups(),
            merge_plan: None,
        })?;
        let GrownTrees(all) = Partial::merge_all(partials)?.ok_or_else(malformed)?;
        if all.len() == wanted { Ok(all) } else { Err(malformed()) }
    }

    fn set_penalties(&mut self, penalties: Arc<[f64]>) -> Result<()> {
        self.penalties = Some(penalties);
        Ok(())
    }

    fn batch_size(&self) -> Option<u32> {
        // Grow several trees per thread, so that few threads are idle while the last trees grow.
        Some(4 * self.stage.session.threads.max(1) as u32)
    }
}

impl Drop for ClusterGrower {
    fn drop(&mut self) {
        if *self.was_asked.get_mut() {
            self.stage.session.client.forget(&self.stage.session.command, &self.groups());
        }
    }
}
