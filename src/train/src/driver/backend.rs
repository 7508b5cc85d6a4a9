//! The interface to a cluster, whose processes hold the rows, bin them and compute histograms.

use super::TrainRequest;
use super::boost_worker::BoostWorker;
use super::grower::TreeGrower;
use crate::bins::BinnedData;
use crate::config::{BoostSettings, ForestSettings, Parameters};
use crate::tree::Cell;
use planetree_base::error::Result;
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
