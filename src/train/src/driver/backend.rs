//! The interface to a cluster, whose processes hold the rows, bin them and compute histograms.

use super::TrainRequest;
use super::boost_worker::BoostWorker;
use super::coupling::{CoupledClass, SoftmaxGroup};
use super::grower::TreeGrower;
use crate::bins::BinnedData;
use crate::config::{BoostSettings, ForestSettings, Parameters};
use crate::tree::Cell;
use planetree_base::compact::{from_bytes, to_bytes};
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use planetree_metric::Mean;
use planetree_model::model::Model;
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

    /// Begins a stage on the rows that were binned last. The parts that are created afterwards belong to it.
    fn begin_stage(&self, parameters: &Parameters, data: &BinnedData);

    /// Creates the grower of a forest's trees.
    fn grower(&self, part: &RemotePart<'_, ForestSettings>) -> Result<Box<dyn TreeGrower>>;

    /// Creates the boosting worker for rows that have neither weights nor hessians.
    fn plain_worker(&self, part: &RemotePart<'_, BoostSettings>) -> Result<Box<dyn BoostWorker<i64>>>;

    /// Creates the boosting worker for rows that have weights or hessians.
    fn weighted_worker(&self, part: &RemotePart<'_, BoostSettings>)
    -> Result<Box<dyn BoostWorker<[i64; 2]>>>;

    /// Evaluates the training rows by the combined scores of all boosted parts of the stage. Returns `None` if the stage
    /// has other parts.
    fn evaluate(&self, combination: &Combination) -> Result<Option<Vec<Mean>>>;

    /// Runs a job on all rows. Returns its encoded result, merged over the shares of the data in order. Learners call
    /// [`run_job`] instead.
    fn run_job(&self, job: &EncodedJob<'_>) -> Result<Vec<u8>>;
}

/// A part that a backend trains.
pub struct RemotePart<'a, S> {
    /// The parameters.
    pub parameters: &'a S,
    /// Bins, and the rows with the labels that the part learns.
    pub data: &'a Arc<BinnedData>,
    /// The grade up to which labels become 1 and above which they become 0. `None` if the labels are learned.
    pub at_most: Option<i32>,
    /// The class that the part learns, if it is coupled with others by a softmax.
    pub coupled: Option<&'a CoupledClass>,
    /// The scores before the first round.
    pub start: RemoteStart,
}

/// The scores of rows in other processes before the first round.
#[derive(Debug, Clone)]
pub enum RemoteStart {
    /// The same score for all rows.
    Constant(f64),
    /// A score for every row.
    Scores(RemoteScores),
}

/// What other processes compute the scores of their rows from, before the first round.
#[derive(Debug, Clone)]
pub struct RemoteScores {
    /// A model that scores the rows.
    pub model: Option<Box<Model>>,
    /// The scores of all rows, which are added to those of the model.
    pub given: Option<Vec<f64>>,
}

/// How the scores of parts are combined and evaluated.
#[derive(Debug, Clone)]
pub struct Combination {
    /// The metrics and their convention.
    pub parameters: Parameters,
    /// The grade up to which labels become 1, if labels are those of `target=at_most`.
    pub at_most: Option<i32>,
    /// The constant to which the weighted scores are added.
    pub intercept: f64,
    /// The weight of each part.
    pub weights: Vec<f64>,
    /// The parts that are coupled by a softmax.
    pub groups: Vec<SoftmaxGroup>,
}

/// A cell that knows how backends create workers for it, because a trait object such as [`Backend`] has no generic
/// methods.
pub(crate) trait BackendCell: Cell {
    /// Creates the boosting worker of a backend for this cell type.
    fn worker(
        backend: &dyn Backend,
        part: &RemotePart<'_, BoostSettings>,
    ) -> Result<Box<dyn BoostWorker<Self>>>;
}

impl BackendCell for i64 {
    fn worker(
        backend: &dyn Backend,
        part: &RemotePart<'_, BoostSettings>,
    ) -> Result<Box<dyn BoostWorker<Self>>> {
        backend.plain_worker(part)
    }
}

impl BackendCell for [i64; 2] {
    fn worker(
        backend: &dyn Backend,
        part: &RemotePart<'_, BoostSettings>,
    ) -> Result<Box<dyn BoostWorker<Self>>> {
        backend.weighted_worker(part)
    }
}

/// A job to run on a backend, with its messages encoded.
pub struct EncodedJob<'a> {
    /// The name of the job.
    pub name: &'static str,
    /// The index of the part in its stage. Every part has a state of its own.
    pub member: usize,
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
    member: usize,
    job: &J,
    snapshot: &J::Snapshot,
    is_first: bool,
) -> Result<J::Partial> {
    let (job, snapshot) = (to_bytes(job), to_bytes(snapshot));
    let job = EncodedJob { name: J::NAME, member, job: &job, snapshot: &snapshot, is_first };
    let partial: J::Partial = from_bytes(&backend.run_job(&job)?)?;
    if partial.is_valid() { Ok(partial) } else { Err(malformed()) }
}
