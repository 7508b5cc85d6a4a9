//! Represents the cluster that a command runs on. `no_remote.rs` has the same items for builds without cluster
//! support.

pub(crate) use super::cluster::SecurityOptions;

use planetree_base::error::{Error, Result};
use planetree_cluster::{Address, Cluster};
use planetree_data::dataset::DatasetReader;
use planetree_judge::evaluate::RemoteEvaluator;
use planetree_model::model::Model;
use planetree_model::predict::{PredictReport, PredictedGroup};
use planetree_sql::SqlCluster;
use planetree_train::Backend;
use serde_json::{Value, json};
use std::sync::Arc;

/// A cluster that a command runs on.
pub(crate) struct RemoteCluster(Arc<Cluster>);

impl RemoteCluster {
    /// Creates a cluster from an address. Executors that are started on this machine share `threads` threads.
    pub(crate) fn new(
        address: &str,
        security: &SecurityOptions,
        threads: usize,
        instance_credentials: bool,
    ) -> Result<Self> {
        let parsed = Address::parse(address)?;
        if matches!(parsed, Address::Local { .. }) && security.is_given() {
            return Err(Error::usage(
                format_args!("--cluster {address}: a local cluster uses neither certificates nor a token"),
                "remove the --tls options and --token-file, or pass the address of a scheduler: --cluster df://HOST:PORT",
            ));
        }
        Ok(RemoteCluster(Arc::new(Cluster::new(parsed, security.read()?, threads, instance_credentials))))
    }

    /// Returns the cluster as a backend for training.
    pub(crate) fn backend(&self) -> Arc<dyn Backend> {
        self.0.clone()
    }

    /// Returns the evaluator that computes metrics on the cluster.
    pub(crate) fn evaluator(&self) -> Arc<dyn RemoteEvaluator> {
        self.0.clone()
    }

    /// Scores a dataset; see [`Cluster::predict`].
    pub(crate) fn predict(
        &self,
        reader: &DatasetReader,
        model: &Model,
        model_file: &[u8],
        parts: bool,
        sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
    ) -> Result<PredictReport> {
        self.0.predict(reader, model, model_file, parts, sink)
    }

    /// Returns the cluster in the form that SQL sessions use.
    pub(crate) fn queries(&self) -> Result<SqlCluster> {
        self.0.queries()
    }

    /// Returns the network traffic, for `--stats`.
    pub(crate) fn traffic(&self) -> Value {
        let traffic = self.0.traffic();
        json!({
            "sent_bytes": traffic.sent,
            "received_bytes": traffic.received,
            "repeated": traffic.repeated,
            "rebuilt": traffic.rebuilt,
        })
    }

    /// Returns the network traffic of a training run, with quantiles of the time and size of its tree levels.
    pub(crate) fn level_traffic(&self) -> Value {
        let traffic = self.0.traffic();
        let quantiles = |number: fn(&(f64, u64, u64)) -> f64| {
            let mut sorted: Vec<f64> = traffic.levels.iter().map(number).collect();
            sorted.sort_by(f64::total_cmp);
            move |share: f64| sorted.get((share * sorted.len() as f64) as usize).copied().unwrap_or_default()
        };
        let milliseconds = quantiles(|level| level.0);
        let bytes = quantiles(|level| level.1 as f64);
        let largest_answer = quantiles(|level| level.2 as f64);
        json!({
            "levels": traffic.levels.len(),
            "level_ms_p50": milliseconds(0.5),
            "level_ms_p95": milliseconds(0.95),
            "level_bytes_p50": bytes(0.5),
            "level_bytes_p95": bytes(0.95),
            "level_bytes_at_once_p95": largest_answer(0.95),
            "received_bytes": traffic.levels.iter().map(|level| level.1).sum::<u64>(),
            "sent_bytes": traffic.sent,
            "repeated": traffic.repeated,
            "rebuilt": traffic.rebuilt,
        })
    }
}
