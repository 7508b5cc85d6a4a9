//! The interface to a cluster, whose processes hold the rows, bin them and compute histograms.

use super::TrainRequest;
use super::boost_worker::BoostWorker;
use super::grower::TreeGrower;
use crate::bins::BinnedData;
use crate::config::{BoostSettings, ForestSettings, Parameters};
use crate::tree::Cell;
use planetree_base::compact::{from_bytes, to_bytes};
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use std::sync::Arc;

/// A backend that holds the rows of a training run in other processes.
pub trait Backend: Send + Sync {
    /// Rejects requests that the backend does not support.
    fn check(&self, request: &TrainRequest) -> Result<()>;

    /// Bins a dataset on the backend for a stage. The result has bins and row counts, but no codes.
    fn bin(
        &self,
        request: &TrainRequest,
        parameters: &Parameters,
        source: &LabelledData,
    ) -> Result<BinnedData>;

    /// Creates the grower of a forest's trees.
    fn grower(&self, parameters: &ForestSettings, data: &BinnedData) -> Result<Box<dyn TreeGrower>>;

    /// Creates the boosting worker for rows that have neither weights nor hessians.
    fn plain_worker(
        &self,
        parameters: &BoostSettings,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn BoostWorker<i64>>;

    /// Creates the boosting worker for rows that have weights or hessians.
    fn weighted_worker(
        &self,
        parameters: &BoostSettings,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn BoostWorker<[i64; 2]>>;

    /// Runs a job on all rows. Returns its encoded result, merged over the shares of the data in order. Learners call
    /// [`run_job`] instead.
    fn run_job(&self, job: &EncodedJob<'_>) -> Result<Vec<u8>>;

    /// Frees the states that executors keep for this training run.
    fn forget(&self);
}

/// A histogram cell that backends support.
pub trait BackendCell: Cell {
    /// Creates the boosting worker of a backend for this cell type.
    fn worker(
        backend: &dyn Backend,
        parameters: &BoostSettings,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn BoostWorker<Self>>;
}

impl BackendCell for i64 {
    fn worker(
        backend: &dyn Backend,
        parameters: &BoostSettings,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn BoostWorker<Self>> {
        backend.plain_worker(parameters, data, base_score)
    }
}

impl BackendCell for [i64; 2] {
    fn worker(
        backend: &dyn Backend,
        parameters: &BoostSettings,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn BoostWorker<Self>> {
        backend.weighted_worker(parameters, data, base_score)
    }
}

/// A job to run on a backend, with its messages encoded.
pub struct EncodedJob<'a> {
    /// The name of the job.
    pub name: &'static str,
    /// The encoded job.
    pub job: &'a [u8],
    /// The encoded snapshot from which executors rebuild a lost state.
    pub snapshot: &'a [u8],
    /// Whether the snapshot is sent with the first request, because no executor can have a state yet.
    pub is_first: bool,
}

/// Runs a job on all rows of a training run that a backend holds. The data must have been binned on the backend before.
pub fn run_job<J: Job>(
    backend: &dyn Backend,
    job: &J,
    snapshot: &J::Snapshot,
    is_first: bool,
) -> Result<J::Partial> {
    let (job, snapshot) = (to_bytes(job), to_bytes(snapshot));
    let answer = backend.run_job(&EncodedJob { name: J::NAME, job: &job, snapshot: &snapshot, is_first })?;
    let partial: J::Partial = from_bytes(&answer)?;
    if partial.is_valid() { Ok(partial) } else { Err(malformed()) }
}
