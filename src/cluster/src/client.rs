//! Sends the driver's requests to the scheduler. Each request is sent as a physical plan, and the replies of all
//! shares (ranges of row groups) are returned in order. Transient failures are retried. If an executor is lost, the
//! engine itself repeats its tasks.

use super::codec::RoundCodec;
use super::failure::{cause_of, first_line, is_of_executor, no_response, permanent_failure};
use super::merge::{ALL_SHARES, MergePlan};
use super::node::{ReceivedReply, RoundExec, RoundRequest, put_together, schema};
use super::security::Security;
use super::share::file_groups;
use super::task::{BUILD, ClusterCommand, ExecutorIdentity, Reply, Step, Task};
use super::watch::watched;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use ballista_core::execution_plans::execute_physical_plan;
use ballista_core::extension::SessionConfigExt;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};
use planetree_base::compact;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{border, interrupt};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum message size in bytes. The largest messages are plans that carry all trees grown so far, and pieces of
/// replies.
pub(crate) const MESSAGE_BYTES: usize = 256 << 20;

/// How long failed requests are retried.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// How long failed requests are retried before the first reply has arrived. It is shorter, because a wrong
/// configuration is the usual cause of early failures.
const FIRST_RETRY_TIMEOUT: Duration = Duration::from_secs(3);

/// How long executors may take to answer a probe.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(20);

/// Number of tasks of a probe, and therefore the maximum number of executors that can be found.
const PROBES: usize = 64;

/// Client of a cluster's scheduler.
pub(crate) struct SchedulerClient {
    /// The address that messages show: host and port, without the scheme.
    shown: String,
    url: String,
    session: String,
    security: Security,
    traffic: Mutex<Traffic>,
}

/// Network traffic between driver and cluster.
#[derive(Debug, Default, Clone)]
pub struct Traffic {
    /// One entry per tree level: its duration in milliseconds, the bytes received, and the size of the largest reply.
    pub levels: Vec<(f64, u64, u64)>,
    /// Bytes of all requests sent, counted once per share.
    pub sent: u64,
    /// Number of requests that were repeated after a failure.
    pub repeated: u64,
    /// Bytes of all replies received.
    pub received: u64,
    /// Number of requests that were repeated with a snapshot, because an executor had lost its state.
    pub rebuilt: u64,
}

/// A request to all shares.
pub(crate) struct ClusterRequest<'a> {
    /// The task that every share executes.
    pub task: &'a Task,
    /// The serialised job; empty if the task does not run a job.
    pub job: Vec<u8>,
    /// Serialises the snapshot that executors build their state from if they do not have it.
    pub snapshot: &'a dyn Fn() -> Vec<u8>,
    /// Whether to send the snapshot with the first attempt.
    pub is_first: bool,
    /// One file group per share, which identifies the share.
    pub groups: &'a [FileGroup],
    /// How executors merge the results of shares, and the name of the job; `None` if they do not. Each reply to a
    /// merged request contains one block, merged over all shares.
    pub merge: Option<(MergePlan, &'static str)>,
}

impl SchedulerClient {
    /// Creates a client for the scheduler at a host and port. It connects when the first request is sent.
    pub(crate) fn new(host: &str, port: u16, security: Security) -> Self {
        let scheme = if security.uses_tls() { "https" } else { "http" };
        SchedulerClient {
            shown: format!("{host}:{port}"),
            url: format!("{scheme}://{host}:{port}"),
            session: format!("planetree-{}", run_name()),
            security,
            traffic: Mutex::default(),
        }
    }

    /// Returns the URL of the scheduler.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the traffic since the client was created.
    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Finds the executors by sending probes, and checks that they run the same build.
    pub(crate) fn executors(&self) -> Result<Vec<ExecutorIdentity>> {
        let command = ClusterCommand { run: "probe".to_owned(), ..ClusterCommand::default() };
        let probes: Vec<Range<usize>> = (0..PROBES).map(|probe| probe..probe + 1).collect();
        let replies = self.ask(&ClusterRequest {
            task: &command.task(Step::Probe),
            job: Vec::new(),
            snapshot: &Vec::new,
            is_first: false,
            groups: &file_groups("probe", &probes),
            merge: None,
        })?;
        let mut executors = BTreeSet::new();
        for reply in replies {
            let Reply::Identity(identity) = reply else { return Err(self.unexpected_answer()) };
            if identity.build != BUILD {
                return Err(Error::usage(
                    format_args!(
                        "version mismatch: {} runs {}, this is {BUILD}",
                        identity.name, identity.build
                    ),
                    "run the same build of planetree everywhere",
                ));
            }
            executors.insert(identity);
        }
        Ok(executors.into_iter().collect())
    }

    /// Sends a request to all shares and returns their replies in share order.
    pub(crate) fn ask(&self, request: &ClusterRequest<'_>) -> Result<Vec<Reply>> {
        let mut question =
            RoundRequest { task: request.task.to_bytes(), job: request.job.clone(), snapshot: Vec::new() };
        if request.is_first {
            question.snapshot = (request.snapshot)();
        }
        let mut failures = 0;
        let mut first_failure = None;
        let patience = (request.task.step == Step::Probe).then_some(PROBE_TIMEOUT);
        loop {
            interrupt::check()?;
            match self.send(&question, request.groups, request.merge, patience)? {
                Ok(received) => {
                    let bytes: u64 = received.iter().map(|reply| reply.bytes.len() as u64).sum();
                    let sent = question.len() as u64;
                    if let Some(replies) = self.read(&received)? {
                        self.with_traffic(|traffic| {
                            traffic.sent += sent * request.groups.len() as u64;
                            traffic.received += bytes;
                        });
                        return Ok(replies);
                    }
                    let lacking = "an executor has lost the state of the training run";
                    if !question.snapshot.is_empty() {
                        failures += 1;
                        let since = *first_failure.get_or_insert_with(Instant::now);
                        self.give_up_after(since, failures, lacking)?;
                    } else {
                        tracing::info!("{}: {lacking}; rebuilding it", self.shown);
                        self.with_traffic(|traffic| traffic.rebuilt += 1);
                        question.snapshot = (request.snapshot)();
                    }
                }
                Err(problem) => {
                    failures += 1;
                    self.with_traffic(|traffic| traffic.repeated += 1);
                    let since = *first_failure.get_or_insert_with(Instant::now);
                    self.give_up_after(since, failures, &problem)?;
                }
            }
        }
    }

    /// Tells the executors to release the state of a finished command. Failures are ignored.
    pub(crate) fn forget(&self, command: &ClusterCommand, groups: &[FileGroup]) {
        let question =
            RoundRequest { task: command.task(Step::Forget).to_bytes(), ..RoundRequest::default() };
        let _ = self.send(&question, groups, None, Some(Duration::from_secs(2)));
    }

    /// Waits before the next attempt, or returns an error if the time for retries has passed.
    fn give_up_after(&self, first_failure: Instant, failures: u32, problem: &str) -> Result<()> {
        tracing::warn!("{}: {problem}; retrying", self.shown);
        let patience = match self.has_answered() || is_of_executor(&self.shown, problem) {
            true => RETRY_TIMEOUT,
            false => FIRST_RETRY_TIMEOUT,
        };
        if first_failure.elapsed() > patience {
            return Err(self.broken(problem));
        }
        let pause = Duration::from_millis(100 << failures.min(5));
        border::wait_or_interrupt(async move { tokio::time::sleep(pause).await })
    }

    /// Executes a plan on the cluster.
    fn execute(
        &self,
        plan: Arc<dyn ExecutionPlan>,
    ) -> BoxFuture<'static, datafusion::error::Result<Vec<RecordBatch>>> {
        #[cfg(test)]
        if self.shown == crate::tests::THIS_PROCESS {
            return crate::tests::execute(plan).boxed();
        }
        let config = self.security.client(
            SessionConfig::new_with_ballista()
                .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES)
                // The engine would split large files at arbitrary bytes, but a share must consist of whole row groups.
                .with_repartition_file_scans(false),
        );
        let (url, session) = (self.url.clone(), self.session.clone());
        let execution = async move {
            let codec = RoundCodec::default();
            let ballista = config.ballista_config();
            let stream =
                execute_physical_plan::<PhysicalPlanNode>(url, &ballista, plan, &codec, session, config)
                    .await?;
            stream.try_collect::<Vec<RecordBatch>>().await
        };
        execution.boxed()
    }

    /// Asks any executor to identify itself.
    pub(crate) fn probe(&self) -> BoxFuture<'static, datafusion::error::Result<()>> {
        let command = ClusterCommand { run: "probe".to_owned(), ..ClusterCommand::default() };
        let question = RoundRequest { task: command.task(Step::Probe).to_bytes(), ..RoundRequest::default() };
        let plan = RoundExec::new(question, scan_of(file_groups("probe", std::slice::from_ref(&(0..1)))));
        let execution = self.execute(Arc::new(plan));
        async move { execution.await.map(drop) }.boxed()
    }

    /// Sends a request once. The outer error is permanent; the inner error describes a failure that may be retried.
    fn send(
        &self,
        question: &RoundRequest,
        groups: &[FileGroup],
        merge: Option<(MergePlan, &str)>,
        patience: Option<Duration>,
    ) -> Result<std::result::Result<Vec<ReceivedReply>, String>> {
        let mut plan: Arc<dyn ExecutionPlan> =
            Arc::new(RoundExec::new(question.clone(), scan_of(groups.to_vec())));
        if let Some((merge_plan, job)) = merge {
            plan = merge_plan.of(job, plan).map_err(|error| self.broken(&first_line(&error.to_string())))?;
        }
        let execution = self.execute(plan);
        let execution = async {
            match patience {
                Some(patience) => tokio::time::timeout(patience, execution).await,
                // A level of a tree may take hours, so there is no limit as long as executors answer.
                None => Ok(watched(execution, || self.probe()).await),
            }
        };
        let batches = match border::wait_or_interrupt(execution)? {
            Err(_) => return Err(self.no_executors()),
            Ok(Ok(batches)) => batches,
            Ok(Err(error)) => {
                let text = error.find_root().to_string();
                return match permanent_failure(&self.shown, self.has_answered(), &text) {
                    Some(error) => Err(error),
                    None => Ok(Err(first_line(cause_of(&text)))),
                };
            }
        };
        debug_assert!(batches.iter().all(|batch| batch.schema().fields() == schema().fields()));
        let Some(replies) = put_together(&batches) else {
            return Ok(Err("a response was damaged in transit".to_owned()));
        };
        let leaving = compact::to_bytes(&Reply::Stopping);
        if let Some(reply) = replies.values().find(|reply| reply.bytes == leaving) {
            return Ok(Err(format!("executor {} is shutting down", reply.sender)));
        }
        if merge.is_none() {
            let (came, expected) = (replies.len(), groups.len());
            return Ok(match came == expected {
                true => Ok(replies.into_values().collect()),
                false => Err(format!("received {came} of {expected} shares")),
            });
        }
        // Replies that report a failure or a missing state are not merged. If there are any, only these are returned.
        let is_other = |(share, _): &(u64, u64)| *share != ALL_SHARES;
        if replies.keys().any(is_other) {
            let others = replies.into_iter().filter(|(place, _)| is_other(place));
            return Ok(Ok(others.map(|(_, reply)| reply).collect()));
        }
        for reply in replies.values() {
            let Reply::Merged { shares, of, .. } = compact::from_bytes(&reply.bytes)? else {
                return Err(self.unexpected_answer());
            };
            if shares != groups.len() as u64 {
                return Ok(Err(format!("only {shares} of {} shares were merged", groups.len())));
            }
            if of != replies.len() as u64 {
                return Ok(Err(format!("received {} of {of} blocks", replies.len())));
            }
        }
        match replies.is_empty() {
            true => Ok(Err("received no blocks".to_owned())),
            false => Ok(Ok(replies.into_values().collect())),
        }
    }

    /// Returns whether the cluster has answered any request.
    fn has_answered(&self) -> bool {
        self.traffic().sent > 0
    }

    fn read(&self, received: &[ReceivedReply]) -> Result<Option<Vec<Reply>>> {
        let mut replies = Vec::with_capacity(received.len());
        for ReceivedReply { bytes, sender } in received {
            match compact::from_bytes(bytes)? {
                Reply::MissingState => return Ok(None),
                Reply::Failed { problem, remedy } => {
                    return Err(Error::place(format_args!("executor {sender}"), problem, remedy));
                }
                reply => replies.push(reply),
            }
        }
        Ok(Some(replies))
    }

    /// Records the duration and the traffic of a tree level, which may have taken several requests.
    pub(crate) fn note_level(&self, tree: u64, nodes: usize, time: Duration, bytes: u64, most: u64) {
        let milliseconds = time.as_secs_f64() * 1000.0;
        tracing::info!(
            "tree {tree}, {nodes} nodes: {bytes} bytes, largest response {most}, {milliseconds:.1} ms"
        );
        self.with_traffic(|traffic| traffic.levels.push((milliseconds, bytes, most)));
    }

    /// Adds another request of the last recorded level.
    pub(crate) fn extend_level(&self, time: Duration, bytes: u64) {
        self.with_traffic(|traffic| {
            if let Some((milliseconds, of_level, most)) = traffic.levels.last_mut() {
                *milliseconds += time.as_secs_f64() * 1000.0;
                *of_level += bytes;
                *most = (*most).max(bytes);
            }
        });
    }

    fn with_traffic(&self, change: impl FnOnce(&mut Traffic)) {
        change(&mut self.traffic.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn broken(&self, problem: &str) -> Error {
        no_response(&self.shown, self.has_answered(), problem)
    }

    fn no_executors(&self) -> Error {
        Error::place(&self.shown, "the scheduler has no executors", "start one with `planetree executor`")
    }

    /// Returns the error for a reply that does not fit the request.
    pub(crate) fn unexpected_answer(&self) -> Error {
        Error::place(
            &self.shown,
            "unexpected response from an executor",
            "run the same build of planetree everywhere",
        )
    }
}

/// Returns a name for a command. The name is unique across machines and processes.
pub(crate) fn run_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", now.as_nanos(), std::process::id())
}

/// Creates a scan that tells the engine which shares exist, and is never executed. All files are declared local, so
/// that the scheduler needs no access to object stores.
pub(crate) fn scan_of(groups: Vec<FileGroup>) -> Arc<dyn ExecutionPlan> {
    let schema = Arc::new(Schema::new(vec![Field::new("query_id", DataType::Utf8, false)]));
    let config =
        FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(ParquetSource::new(schema)))
            .with_file_groups(groups)
            .build();
    DataSourceExec::from_data_source(config)
}
