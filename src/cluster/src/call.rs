//! Runs a job on all shares of a dataset, which are ranges of row groups.

use super::client::{ClusterRequest, SchedulerClient};
use super::merge::MergePlan;
use super::registry::read_partial;
use super::task::{ClusterCommand, Reply, Step, pack};
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::Result;
use planetree_base::job::Job;

/// A job to run on all shares.
pub(crate) struct JobCall<'a, J: Job> {
    /// The command that the job belongs to.
    pub command: &'a ClusterCommand,
    /// The job.
    pub job: &'a J,
    /// The data that executors build their state from if they do not have it.
    pub snapshot: &'a J::Snapshot,
    /// Whether to send the snapshot with the first attempt.
    pub is_first: bool,
    /// One file group per share, which identifies the share.
    pub groups: &'a [FileGroup],
    /// How executors merge the partials, which are the results of the shares. `None` means that they do not.
    pub merge_plan: Option<MergePlan>,
}

impl SchedulerClient {
    /// Runs a job and returns its partials in order. There is one partial per share. If executors merge the shares,
    /// there is one partial per block instead, merged over all shares.
    pub(crate) fn run<J: Job>(&self, call: &JobCall<'_, J>) -> Result<Vec<J::Partial>> {
        let blocks = call.merge_plan.map_or(1, |plan| plan.blocks());
        let replies = self.ask(&ClusterRequest {
            task: &call.command.task(Step::Run { job: J::NAME.to_owned(), blocks, member: 0 }),
            job: pack(call.job),
            snapshot: &|| pack(call.snapshot),
            is_first: call.is_first,
            groups: call.groups,
            merge: call.merge_plan.map(|plan| (plan, J::NAME)),
        })?;
        let partial = |reply: &Reply| match reply {
            Reply::Block { partial, .. } | Reply::Merged { partial, .. } => read_partial(partial),
            _ => Err(self.unexpected_answer()),
        };
        replies.iter().map(partial).collect()
    }
}
