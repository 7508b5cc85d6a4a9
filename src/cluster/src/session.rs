//! Runs the jobs of one training run on a cluster. A [`TrainingSession`] runs any job on the shares of the data; a
//! [`StageSession`] also has what executors rebuild their states from while a stage is trained.

use super::address::Usage;
use super::call::JobCall;
use super::client::{ClusterRequest, MESSAGE_BYTES, SchedulerClient, run_name};
use super::merge::MergePlan;
use super::registry::RegisteredJob;
use super::task::{ClusterCommand, Reply, Step, compress};
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::compact::Bytes;
use planetree_base::error::{Error, Result};
use planetree_base::job::{Job, Partial};
use planetree_base::wire::malformed;
use planetree_train::EncodedJob;
use planetree_train::jobs::{BoostJob, BoostStep, MemberSnapshot, StartSnapshot, TrainingSnapshot};
use planetree_train::tree::CodedTree;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The connection of one training run, and its shares, which are ranges of row groups.
#[derive(Clone)]
pub(crate) struct TrainingSession {
    /// Client of the scheduler.
    pub client: Arc<SchedulerClient>,
    /// The command that all jobs belong to.
    pub command: ClusterCommand,
    /// One file group per share, which identifies the share.
    pub groups: Vec<FileGroup>,
    /// Number of executors when the training run began.
    pub executors: usize,
    /// Total threads of those executors.
    pub threads: usize,
    /// Tuning options from the cluster address.
    pub usage: Usage,
}

impl TrainingSession {
    /// Runs a job on all shares and merges their results in order.
    pub(crate) fn run<J: Job>(&self, job: &J, snapshot: &J::Snapshot, is_first: bool) -> Result<J::Partial> {
        let partials = self.run_blocks(job, snapshot, is_first, None)?;
        Partial::merge_all(partials)?.ok_or_else(malformed)
    }

    /// Runs a job on all shares. Returns one result per share. If executors merge the shares, returns one per block
    /// instead.
    fn run_blocks<J: Job>(
        &self,
        job: &J,
        snapshot: &J::Snapshot,
        is_first: bool,
        merge_plan: Option<MergePlan>,
    ) -> Result<Vec<J::Partial>> {
        let (command, groups) = (&self.command, &self.groups);
        self.client.run(&JobCall { command, job, snapshot, is_first, groups, merge_plan })
    }
}

/// A stage of a training run. Its parts share the states of executors.
pub(crate) struct StageSession {
    /// The connection. The stage is a command of its own, so it never meets the states of another stage.
    pub session: TrainingSession,
    /// What executors rebuild their states from.
    snapshot: RwLock<TrainingSnapshot>,
    /// Whether executors may have states.
    was_asked: AtomicBool,
}

impl StageSession {
    /// Begins a stage on shares that are ranges of row groups.
    pub(crate) fn new(session: &TrainingSession, groups: Vec<FileGroup>, snapshot: TrainingSnapshot) -> Self {
        let command = ClusterCommand { run: run_name(), ..session.command.clone() };
        let session = TrainingSession { command, groups, ..session.clone() };
        StageSession { session, snapshot: RwLock::new(snapshot), was_asked: AtomicBool::new(false) }
    }

    /// Returns what executors rebuild their states from.
    pub(crate) fn snapshot(&self) -> RwLockReadGuard<'_, TrainingSnapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshot_mut(&self) -> RwLockWriteGuard<'_, TrainingSnapshot> {
        self.snapshot.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a boosted part, and returns its index. All parts are added before the first job.
    pub(crate) fn add_member(&self, member: MemberSnapshot) -> Result<usize> {
        let mut snapshot = self.snapshot_mut();
        snapshot.members.push(member);
        let starts = snapshot.members.iter().filter_map(|member| member.start.as_ref());
        let bytes: usize = starts.map(StartSnapshot::bytes).sum();
        if bytes > MESSAGE_BYTES / 2 {
            return Err(Error::usage(
                format_args!(
                    "--cluster: the models or scores to start from are too large to send: {bytes} bytes"
                ),
                "remove --cluster, or start from fewer trees or without --start-scores",
            ));
        }
        Ok(snapshot.members.len() - 1)
    }

    /// Adds a finished tree to a part. Returns the number of its trees.
    pub(crate) fn add_tree(&self, member: usize, tree: CodedTree) -> usize {
        let trees = &mut self.snapshot_mut().members[member].trees;
        trees.push(tree);
        trees.len()
    }

    /// Runs a job of boosting on all shares and merges their results in order.
    pub(crate) fn run<J: Job<Snapshot = TrainingSnapshot>>(&self, job: &J) -> Result<J::Partial> {
        self.session.run(job, &self.snapshot(), self.is_first())
    }

    /// Runs a job of boosting on all shares. Returns one result per share. If executors merge the shares, returns one
    /// per block instead.
    pub(crate) fn run_blocks<S: BoostStep>(
        &self,
        job: &BoostJob<S>,
        merge_plan: Option<MergePlan>,
    ) -> Result<Vec<S::Partial>> {
        self.session.run_blocks(job, &self.snapshot(), self.is_first(), merge_plan)
    }

    /// Returns whether no job has run yet. From now on, executors have states.
    pub(crate) fn is_first(&self) -> bool {
        !self.was_asked.swap(true, Ordering::Relaxed)
    }

    /// Runs an encoded job on all shares. Returns the encoded result, merged over the shares in order.
    pub(crate) fn run_encoded(&self, job: &EncodedJob<'_>) -> Result<Vec<u8>> {
        self.was_asked.store(true, Ordering::Relaxed);
        let TrainingSession { client, command, groups, .. } = &self.session;
        let step = Step::Run { job: job.name.to_owned(), blocks: 1, member: job.member };
        let replies = client.ask(&ClusterRequest {
            task: &command.task(step),
            job: compress(job.job),
            snapshot: &|| compress(job.snapshot),
            is_first: job.is_first,
            groups,
            merge: None,
        })?;
        let partials = replies.into_iter().map(|reply| match reply {
            Reply::Block { partial, .. } | Reply::Merged { partial, .. } => Ok(partial),
            _ => Err(client.unexpected_answer()),
        });
        let partials = partials.collect::<Result<Vec<Bytes>>>()?;
        Ok((RegisteredJob::find(job.name)?.merge)(&partials)?.0)
    }

    /// Returns how executors merge histograms by static bins, or `None` if only the driver merges them.
    pub(crate) fn merge_plan(&self) -> Option<MergePlan> {
        let mergers = self.session.usage.mergers(self.session.groups.len());
        (mergers > 0).then_some(MergePlan { mergers })
    }

    /// Returns how executors merge streaming histograms, or `None` if only the driver merges them.
    pub(crate) fn streaming_merge_plan(&self) -> Option<MergePlan> {
        let mergers = self.session.usage.streaming_mergers(self.session.groups.len());
        (mergers > 0).then_some(MergePlan { mergers })
    }
}

impl Drop for StageSession {
    /// Tells executors to release the states of the stage. If the message is lost, they release them after a timeout.
    fn drop(&mut self) {
        if *self.was_asked.get_mut() {
            self.session.client.forget(&self.session.command, &self.session.groups);
        }
    }
}
