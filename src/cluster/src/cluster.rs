//! Connects the driver to a cluster, and implements the backend that trains models on the cluster.

use super::address::Address;
use super::client::{MESSAGE_BYTES, SchedulerClient, Traffic, run_name};
use super::local::LocalCluster;
use super::remote_rows::{RemoteRows, worker_rules};
use super::security::Security;
use super::session::TrainingSession;
use super::share::{check_place, divide, file_groups};
use super::task::{ClusterCommand, ExecutorIdentity};
use super::trees::ClusterGrower;
use planetree_base::error::{Error, Result};
use planetree_base::job::JobData;
use planetree_base::storage::Location;
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use planetree_train::BoostWorker;
use planetree_train::TreeGrower;
use planetree_train::bins::{BinOptions, BinnedData, FeatureBins, SAMPLED_ROWS};
use planetree_train::config::{BoostSettings, ForestSettings, LearnerParameters, Parameters, Target};
use planetree_train::jobs::{Survey, TrainingSnapshot, WireCell, WorkerShares};
use planetree_train::tree::WorkerBounds;
use planetree_train::{Backend, EncodedJob, TrainRequest};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

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
    session: Arc<TrainingSession>,
    _connection: Connection,
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
        let training = self.training.lock().unwrap_or_else(PoisonError::into_inner);
        match &*training {
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
        ClusterCommand { run: run_name(), data, instance_credentials: self.instance_credentials, fingerprint }
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

    fn session(&self) -> Arc<TrainingSession> {
        let training = self.training.lock().unwrap_or_else(PoisonError::into_inner);
        let training = training.as_ref().expect("training bins its data before its first round");
        training.session.clone()
    }

    fn remote_rows<C: WireCell>(
        &self,
        parameters: &BoostSettings,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn BoostWorker<C>> {
        Box::new(RemoteRows::<C>::new(self.session(), parameters, data, base_score))
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
            "remove --cluster, or group values: value_groups=255 for streaming candidates, max_bin=255 for a forest",
        ));
    }
    Ok(())
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
        if request.plan.stages.len() > 1 {
            return refuse("a model of several stages");
        }
        if request.plan.only().is_none() || request.plan.target != Target::Labels {
            return refuse("a model of several runs or of classes");
        }
        if request.objective.is_some() {
            return refuse("a custom objective");
        }
        if request.start.is_some() {
            return refuse("a model initialised from another model");
        }
        if request.data.len() > 1 {
            return refuse("a model of several datasets");
        }
        match &request.data[..] {
            [data] => check_place(data, &self.address),
            _ => Ok(()),
        }
    }

    fn bin(
        &self,
        request: &TrainRequest,
        parameters: &Parameters,
        source: &LabelledData,
    ) -> Result<BinnedData> {
        let place = match &request.data[..] {
            [data] => place_of(data)?,
            _ => return Err(malformed()),
        };
        let Some(reader) = source.readers().next() else { return Err(malformed()) };
        let rows: Vec<u64> = reader.manifest().rows_of_groups().collect();
        let connection = self.reach()?;
        let shares = divide(&rows, self.share_count(connection.executors.len()));
        tracing::info!("{} shares of {} partitions", shares.len(), rows.len());
        let mut session = TrainingSession {
            client: connection.client.clone(),
            groups: file_groups(&place, &shares),
            executors: connection.executors.len(),
            threads: connection.threads(),
            usage: self.address.usage(),
            command: self.command(place.clone(), source.content_key()?),
            workers: None,
        };
        let data = survey(&session, parameters, source)?;
        check_bins(source, &data)?;
        if let Some(workers) = worker_shares(parameters, &data, &rows, &shares) {
            // The rows of workers are known only now, because workers have whole queries.
            let read: Vec<Range<usize>> = workers.shares.iter().map(|share| share.read.clone()).collect();
            tracing::info!("{} shares with whole workers", read.len());
            session.groups = file_groups(&place, &read);
            session.workers = Some(workers);
        }
        let training = ActiveTraining { session: Arc::new(session), _connection: connection };
        *self.training.lock().unwrap_or_else(PoisonError::into_inner) = Some(training);
        Ok(data)
    }

    fn grower(&self, parameters: &ForestSettings, data: &BinnedData) -> Result<Box<dyn TreeGrower>> {
        let parameters = parameters.with(LearnerParameters::Forest(parameters.learner.clone()));
        let snapshot = TrainingSnapshot::new(&parameters, false, 0.0, &data.binning);
        Ok(Box::new(ClusterGrower::new(self.session(), snapshot)))
    }

    fn plain_worker(
        &self,
        parameters: &BoostSettings,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn BoostWorker<i64>> {
        self.remote_rows(parameters, data, base_score)
    }

    fn weighted_worker(
        &self,
        parameters: &BoostSettings,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn BoostWorker<[i64; 2]>> {
        self.remote_rows(parameters, data, base_score)
    }

    fn run_job(&self, job: &EncodedJob<'_>) -> Result<Vec<u8>> {
        self.session().run_encoded(job)
    }

    fn forget(&self) {
        let session = self.session();
        session.client.forget(&session.command, &session.groups);
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
