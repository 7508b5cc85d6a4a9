//! Replaces `remote.rs` in builds without cluster support. There is no cluster, and requesting one is an error.

use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;
use planetree_judge::evaluate::RemoteEvaluator;
use planetree_model::model::Model;
use planetree_model::predict::{PredictReport, PredictedGroup};
#[cfg(feature = "sql")]
use planetree_sql::SqlCluster;
use planetree_train::Backend;
use serde_json::Value;
use std::sync::Arc;

/// Security options of a cluster, which do not exist in this build.
#[derive(Debug, Args)]
pub(crate) struct SecurityOptions {}

/// A cluster, which cannot exist in this build.
pub(crate) enum RemoteCluster {}

impl RemoteCluster {
    pub(crate) fn new(_: &str, _: &SecurityOptions, _: usize, _: bool) -> Result<Self> {
        Err(Error::usage(
            "--cluster: this planetree was built without cluster support",
            "build it with the feature `cluster`: cargo install planetree --features cluster",
        ))
    }

    pub(crate) fn backend(&self) -> Arc<dyn Backend> {
        match *self {}
    }

    pub(crate) fn evaluator(&self) -> Arc<dyn RemoteEvaluator> {
        match *self {}
    }

    pub(crate) fn predict(
        &self,
        _: &DatasetReader,
        _: &Model,
        _: &[u8],
        _: bool,
        _: &mut dyn FnMut(PredictedGroup) -> Result<()>,
    ) -> Result<PredictReport> {
        match *self {}
    }

    #[cfg(feature = "sql")]
    pub(crate) fn queries(&self) -> Result<SqlCluster> {
        match *self {}
    }

    pub(crate) fn traffic(&self) -> Value {
        match *self {}
    }

    pub(crate) fn level_traffic(&self) -> Value {
        match *self {}
    }
}
