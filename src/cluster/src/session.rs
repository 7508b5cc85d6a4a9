//! Runs the jobs of one training run on a cluster.

use super::address::Usage;
use super::call::JobCall;
use super::client::{ClusterRequest, SchedulerClient};
use super::merge::MergePlan;
use super::registry::RegisteredJob;
use super::task::{ClusterCommand, Reply, Step, compress};
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::compact::Bytes;
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial};
use planetree_base::wire::malformed;
use planetree_train::EncodedJob;
use planetree_train::jobs::WorkerShares;
use std::sync::Arc;

/// The connection of one training run, and its shares, which are ranges of row groups.
pub(crate) struct TrainingSession {
    /// Client of the scheduler.
    pub client: Arc<SchedulerClient>,
    /// The command that all jobs of the training run belong to.
    pub command: ClusterCommand,
    /// One file group per share, which identifies the share.
    pub groups: Vec<FileGroup>,
    /// Number of executors when the training run began.
    pub executors: usize,
    /// Total threads of those executors.
    pub threads: usize,
    /// Tuning options from the cluster address.
    pub usage: Usage,
    /// The workers of each share, if workers build streaming histograms of their own.
    pub workers: Option<WorkerShares>,
}

impl TrainingSession {
    /// Runs a job on all shares and merges their results in order.
    pub(crate) fn run<J: Job>(&self, job: &J, snapshot: &J::Snapshot, is_first: bool) -> Result<J::Partial> {
        let partials = self.run_blocks(job, snapshot, is_first, None)?;
        Partial::merge_all(partials)?.ok_or_else(malformed)
    }

    /// Runs a job on all shares. Returns one result per share. If executors merge the shares, returns one per block
    /// instead.
    pub(crate) fn run_blocks<J: Job>(
        &self,
        job: &J,
        snapshot: &J::Snapshot,
        is_first: bool,
        merge_plan: Option<MergePlan>,
    ) -> Result<Vec<J::Partial>> {
        let (command, groups) = (&self.command, &self.groups);
        self.client.run(&JobCall { command, job, snapshot, is_first, groups, merge_plan })
    }

    /// Runs an encoded job on all shares. Returns the encoded result, merged over the shares in order.
    pub(crate) fn run_encoded(&self, job: &EncodedJob<'_>) -> Result<Vec<u8>> {
        let replies = self.client.ask(&ClusterRequest {
            task: &self.command.task(Step::Run { job: job.name.to_owned(), blocks: 1 }),
            job: compress(job.job),
            snapshot: &|| compress(job.snapshot),
            is_first: job.is_first,
            groups: &self.groups,
            merge: None,
        })?;
        let partials = replies.into_iter().map(|reply| match reply {
            Reply::Block { partial, .. } | Reply::Merged { partial, .. } => Ok(partial),
            _ => Err(self.client.unexpected_answer()),
        });
        let partials = partials.collect::<Result<Vec<Bytes>>>()?;
        Ok((RegisteredJob::find(job.name)?.merge)(&partials)?.0)
    }

    /// Returns how executors merge the results of shares, or `None` if only the driver merges them.
    pub(crate) fn merge_plan(&self) -> Option<MergePlan> {
        let mergers = self.usage.mergers(self.groups.len());
        (mergers > 0).then_some(MergePlan { mergers })
    }
}
