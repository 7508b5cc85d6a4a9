//! Connects the driver to a cluster, and implements the backend that trains models on the cluster.

use super::address::Address;
use super::client::{MESSAGE_BYTES, SchedulerClient, Traffic, run_name};
use super::local::LocalCluster;
use super::remote_rows::{RemoteRows, worker_rules};
use super::security::Security;
use super::session::{StageSession, TrainingSession};
use super::share::{check_place, divide, file_groups};
use super::task::{ClusterCommand, ExecutorIdentity};
use super::trees::ClusterGrower;
use planetree_base::error::{Error, Result};
use planetree_base::job::JobData;
use planetree_base::storage::Location;
use planetree_base::wire::malformed;
use planetree_data::dataset::Manifest;
use planetree_data::source::LabelledData;
use planetree_metric::Mean;
use planetree_train::bins::{BinOptions, BinnedData, FeatureBins, SAMPLED_ROWS};
use planetree_train::config::{
    BoostSettings, ForestSettings, LeastSquaresData, Parameters, StageStart, Target,
};
use planetree_train::jobs::{CombinedMetrics, Survey, TrainingSnapshot, WireCell, WorkerShares};
use planetree_train::tree::WorkerBounds;
use planetree_train::{Backend, BoostWorker, Combination, EncodedJob, RemotePart, TrainRequest, TreeGrower};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A cluster, either already running or started on first use. Its executors hold the rows of a training run, score
/// rows or evaluate rankings.
pub struct Cluster {
    address: Address,
    security: Security,
    /// Number of threads that are divided among the executors if they are started on this machine.
    threads: usize,
    instance_credentials: bool,
    training: Mutex<Option<ActiveTraining>>,
    /// Traffic of the last connection that was closed.
    traffic: Mutex<Traffic>,
}

/// A connection to a running cluster.
pub(crate) struct Connection {
    /// The client of the cluster's scheduler.
    pub client: Arc<SchedulerClient>,
    /// All executors of the cluster.
    pub executors: Vec<ExecutorIdentity>,
    /// The scheduler and executors that were started for this command, if any. They are stopped when the connection is
    /// dropped.
    _local: Option<LocalCluster>,
}

impl Connection {
    /// Returns the total number of threads of all executors.
    pub(crate) fn threads(&self) -> usize {
        self.executors.iter().map(|executor| executor.threads as usize).sum::<usize>().max(1)
    }
}

/// The training run in progress. It owns the connection, so that the cluster lives as long as the training run.
struct ActiveTraining {
    /// The stage in progress. It is declared before the connection, because it sends a message when it is dropped.
    stage: Option<Arc<StageSession>>,
    session: TrainingSession,
    /// Number of rows of each row group.
    rows: Vec<u64>,
    /// The row groups of each share.
    shares: Vec<Range<usize>>,
    connection: Arc<Connection>,
}

impl Cluster {
    /// Creates a cluster that is connected to on first use. If the address is local, the cluster is started on first
    /// use, and its executors share the given number of threads.
    pub fn new(address: Address, security: Security, threads: usize, instance_credentials: bool) -> Self {
        Cluster {
            address,
            security,
            threads,
            instance_credentials,
            training: Mutex::default(),
            traffic: Mutex::default(),
        }
    }

    /// Returns the traffic of the current training run, or of the last closed connection if no training run is in
    /// progress.
    pub fn traffic(&self) -> Traffic {
        match &*self.active() {
            Some(training) => training.session.client.traffic(),
            None => self.traffic.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Saves the traffic of a connection, because its client is about to be dropped.
    pub(super) fn keep_traffic(&self, connection: &Connection) {
        *self.traffic.lock().unwrap_or_else(PoisonError::into_inner) = connection.client.traffic();
    }

    /// Returns the address given by the user.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the certificates and the token.
    pub(super) fn security(&self) -> &Security {
        &self.security
    }

    /// Creates a command on the given data. The fingerprint identifies the content of the data.
    pub(super) fn command(&self, data: String, fingerprint: String) -> ClusterCommand {
        let (run, instance_credentials) = (run_name(), self.instance_credentials);
        ClusterCommand { run, data, more_data: Vec::new(), instance_credentials, fingerprint }
    }

    /// Connects to the cluster and lists its executors.
    pub(super) fn reach(&self) -> Result<Connection> {
        let (mut local, client) = match &self.address {
            Address::Scheduler { host, port, .. } => {
                (None, SchedulerClient::new(host, *port, self.security.clone()))
            }
            Address::Local { executors, .. } => {
                let local = LocalCluster::start(*executors, self.threads)?;
                // A local cluster needs no certificates or token: it is reachable only from this machine and stops when
                // the command ends.
                let client = SchedulerClient::new("127.0.0.1", local.port(), Security::default());
                (Some(local), client)
            }
        };
        let executors = match &mut local {
            Some(local) => local.wait_for_executors(&client)?,
            None => client.executors()?,
        };
        for executor in &executors {
            tracing::info!("executor {}: {} threads", executor.name, executor.threads);
        }
        Ok(Connection { client: Arc::new(client), executors, _local: local })
    }

    /// Returns the number of shares, which is one per executor unless the address sets `shares=N`.
    pub(super) fn share_count(&self, executors: usize) -> usize {
        self.address.usage().shares.unwrap_or(executors)
    }

    fn active(&self) -> MutexGuard<'_, Option<ActiveTraining>> {
        self.training.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stage(&self) -> Arc<StageSession> {
        let stage = self.active().as_ref().and_then(|training| training.stage.clone());
        stage.expect("training begins a stage before its first round")
    }

    fn remote_rows<C: WireCell>(
        &self,
        part: &RemotePart<'_, BoostSettings>,
    ) -> Result<Box<dyn BoostWorker<C>>> {
        Ok(Box::new(RemoteRows::<C>::new(self.stage(), part)?))
    }
}

/// Assigns the workers of streaming histograms to the shares of a dataset. Returns `None` if workers build no
/// histograms of their own.
fn worker_shares(
    parameters: &Parameters,
    data: &BinnedData,
    rows: &[u64],
    shares: &[Range<usize>],
) -> Option<WorkerShares> {
    let candidates = parameters.boost().map(|boost| boost.candidates);
    let rules = candidates.and_then(worker_rules)?;
    Some(WorkerShares::assign(WorkerBounds::divide(&data.rows, rules.workers), rows, shares))
}

/// Checks that the bins are small enough to be sent to executors in one message.
fn check_bins(source: &LabelledData, data: &BinnedData) -> Result<()> {
    /// Maximum serialised size of a distinct value, which is sent both as a boundary of a bin and as the centre of a
    /// bin.
    const BYTES: usize = 10;
    let values: usize = data.binning.features.iter().map(FeatureBins::codes).sum();
    if values > MESSAGE_BYTES / BYTES {
        return Err(Error::place(
            source.place(),
            format_args!("too many distinct values for a cluster: {values}"),
            "remove --cluster, or group values: candidates=static for boosting, value_groups=255 for streaming candidates, \
             max_bin=255 for a forest",
        ));
    }
    Ok(())
}

/// Checks that a dataset has the features of the training run, in the same order. Executors open it without knowing those
/// of a start model.
fn check_features(places: &[Location], source: &LabelledData) -> Result<()> {
    match LabelledData::open_all(places, None)?.content_key()? == source.content_key()? {
        true => Ok(()),
        false => Err(Error::place(
            source.place(),
            "--cluster: the start model has other features than the data, or other categories",
            "remove --cluster, or start from a model that was trained on all features of these data",
        )),
    }
}

/// Returns the location of a dataset in the form sent to executors. Local paths become absolute.
pub(crate) fn place_of(location: &Location) -> Result<String> {
    match location {
        Location::Local(path) => {
            let path = std::fs::canonicalize(path).map_err(|error| Error::io(location, "open", error))?;
            Ok(path.to_string_lossy().into_owned())
        }
        Location::Remote(_) => Ok(location.to_string()),
    }
}

impl Backend for Cluster {
    fn check(&self, request: &TrainRequest) -> Result<()> {
        let refuse = |what: &str| {
            Err(Error::usage(
                format_args!("--cluster: {what} cannot be trained on a cluster"),
                "remove --cluster, or see docs/cluster.md for what is supported",
            ))
        };
        for stage in &request.plan.stages {
            let has_extras = request.out_of_bag || request.strength;
            if let Some(what) = stage.learner.config().refuses_cluster(has_extras) {
                return refuse(what);
            }
        }
        if request.plan.stage_start == StageStart::OutOfBag {
            return refuse("a stage that starts from out-of-bag scores (start_scores = oob)");
        }
        if let Target::Ordinal(ordinal) = &request.plan.target
            && ordinal.weights.data().is_some_and(|data| data != LeastSquaresData::Valid)
        {
            return refuse("a model of classes whose weights are fitted on the training data");
        }
        if request.objective.is_some() {
            return refuse("a custom objective");
        }
        if request.common_features {
            return refuse("a subset of the features (--common-features)");
        }
        request.data.iter().try_for_each(|data| check_place(data, &self.address))
    }

    fn bin(
        &self,
        request: &TrainRequest,
        parameters: &Parameters,
        source: &LabelledData,
    ) -> Result<BinnedData> {
        let mut places = request.data.iter().map(place_of).collect::<Result<Vec<_>>>()?.into_iter();
        let place = places.next().ok_or_else(malformed)?;
        check_features(&request.data, source)?;
        let rows: Vec<u64> = source.manifests().flat_map(Manifest::rows_of_groups).collect();
        // A later stage uses the connection of the first one, whose own states are no longer needed.
        let active = self.active().take().map(|training| training.connection);
        let connection = match active {
            Some(connection) => connection,
            None => Arc::new(self.reach()?),
        };
        let shares = divide(&rows, self.share_count(connection.executors.len()));
        tracing::info!("{} shares of {} partitions", shares.len(), rows.len());
        let session = TrainingSession {
            client: connection.client.clone(),
            groups: file_groups(&place, &shares),
            executors: connection.executors.len(),
            threads: connection.threads(),
            usage: self.address.usage(),
            command: ClusterCommand {
                more_data: places.collect(),
                ..self.command(place.clone(), source.content_key()?)
            },
        };
        let data = survey(&session, parameters, source)?;
        check_bins(source, &data)?;
        *self.active() = Some(ActiveTraining { stage: None, session, rows, shares, connection });
        Ok(data)
    }

    fn begin_stage(&self, parameters: &Parameters, data: &BinnedData) {
        let mut active = self.active();
        let Some(training) = &mut *active else { return };
        let mut snapshot = TrainingSnapshot::new(parameters, &data.binning);
        let mut groups = training.session.groups.clone();
        if let Some(workers) = worker_shares(parameters, data, &training.rows, &training.shares) {
            let read: Vec<Range<usize>> = workers.shares.iter().map(|share| share.read.clone()).collect();
            tracing::info!("the rows of each streaming worker are in one of {} shares", read.len());
            groups = file_groups(&training.session.command.data, &read);
            snapshot.workers = Some(workers);
        }
        training.stage = Some(Arc::new(StageSession::new(&training.session, groups, snapshot)));
    }

    fn grower(&self, part: &RemotePart<'_, ForestSettings>) -> Result<Box<dyn TreeGrower>> {
        Ok(Box::new(ClusterGrower::new(self.stage(), part)))
    }

    fn plain_worker(&self, part: &RemotePart<'_, BoostSettings>) -> Result<Box<dyn BoostWorker<i64>>> {
        self.remote_rows(part)
    }

    fn weighted_worker(
        &self,
        part: &RemotePart<'_, BoostSettings>,
    ) -> Result<Box<dyn BoostWorker<[i64; 2]>>> {
        self.remote_rows(part)
    }

    fn evaluate(&self, combination: &Combination) -> Result<Option<Vec<Mean>>> {
        let Combination { parameters, at_most, intercept, weights, groups } = combination;
        let stage = self.stage();
        let trees: Vec<usize> = stage.snapshot().members.iter().map(|member| member.trees.len()).collect();
        if trees.len() != weights.len() {
            return Ok(None);
        }
        let means = stage.run(&CombinedMetrics {
            parameters: parameters.to_toml(),
            at_most: *at_most,
            intercept: *intercept,
            members: weights.iter().copied().zip(trees).collect(),
            groups: groups.clone(),
        })?;
        means.total(&parameters.metrics).map(Some)
    }

    fn run_job(&self, job: &EncodedJob<'_>) -> Result<Vec<u8>> {
        self.stage().run_encoded(job)
    }
}

/// Bins the features. To limit memory, the executors summarise one batch of features at a time.
fn survey(session: &TrainingSession, parameters: &Parameters, source: &LabelledData) -> Result<BinnedData> {
    /// Maximum size of the summaries of a batch. Each row contributes at most 8 bytes per feature.
    const BYTES: u64 = 256 << 20;
    let options = BinOptions::of(parameters);
    let kept =
        if options.max_bin.is_some() { source.row_count().min(SAMPLED_ROWS) } else { source.row_count() };
    let at_a_time = (BYTES / (8 * kept.max(1))).clamp(1, source.features().max(1) as u64) as usize;
    let mut features = Vec::with_capacity(source.features());
    let mut rows = Vec::new();
    for start in (0..source.features()).step_by(at_a_time) {
        let these = start..(start + at_a_time).min(source.features());
        let job = Survey { features: these.clone(), rows: start == 0, parameters: parameters.to_toml() };
        let surveyed = session.run(&job, &(), false)?;
        if surveyed.summaries.len() != these.len() {
            return Err(malformed());
        }
        rows.extend(surveyed.rows);
        let bins = |(feature, summary)| options.of_feature(source, feature).bins(summary);
        features.extend(these.zip(&surveyed.summaries).map(bins));
    }
    rows.sort_by_key(|rows| rows.first);
    Ok(BinnedData::remote(options.binning(features), rows))
}
