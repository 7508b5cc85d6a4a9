//! Execution of the jobs of one training.

use super::address::Usage;
use super::call::JobCall;
use super::client::SchedulerClient;
use super::merge::MergePlan;
use super::task::Command;
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial};
use planetree_base::wire::malformed;
use std::sync::Arc;

/// The connection and the shares of one training.
pub struct TrainingSession {
    /// Client of the scheduler.
    pub client: Arc<SchedulerClient>,
    /// The command that all jobs of the training belong to.
    pub command: Command,
    /// The file group that identifies each share.
    pub groups: Vec<FileGroup>,
    /// Number of executors when the training began.
    pub executors: usize,
    /// Total threads of those executors.
    pub threads: usize,
    /// Tuning options from the cluster address.
    pub usage: Usage,
}

impl TrainingSession {
    /// Runs a job on all shares and merges their partials in order.
    pub fn run<J: Job>(&self, job: &J, snapshot: &J::Snapshot, is_first: bool) -> Result<J::Partial> {
        let partials = self.run_blocks(job, snapshot, is_first, None)?;
        Partial::merge_all(partials)?.ok_or_else(malformed)
    }

    /// Runs a job on all shares. Returns one partial per share, or one per block if executors merge the shares.
    pub fn run_blocks<J: Job>(
        &self,
        job: &J,
        snapshot: &J::Snapshot,
        is_first: bool,
        merge_plan: Option<MergePlan>,
    ) -> Result<Vec<J::Partial>> {
        let (command, groups) = (&self.command, &self.groups);
        self.client.run(&JobCall { command, job, snapshot, is_first, groups, merge_plan })
    }

    /// Returns how executors merge partials, or `None` if only the driver merges them.
    pub fn merge_plan(&self) -> Option<MergePlan> {
        let mergers = self.usage.mergers(self.groups.len());
        (mergers > 0).then_some(MergePlan { mergers })
    }
}
