//! Defines the interface for evaluating predictions in other processes, which run the same code one row group at a time.

use super::predictions::Predictions;
use super::text_predictions::format_of;
use super::worker::{EvaluationSettings, PartialEvaluation};
use super::{EvaluateRequest, Ranking};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::fmt;

/// Predictions to evaluate, and the settings of the evaluation.
pub struct EvaluationInput<'a> {
    /// The predictions. All their row groups are evaluated.
    pub predictions: &'a Predictions,
    /// Metrics and options of the evaluation.
    pub settings: &'a EvaluationSettings,
    /// Column by which queries are grouped into segments.
    pub by: Option<&'a str>,
}

/// Evaluates row groups of predictions in other processes.
pub trait RemoteEvaluator: fmt::Debug + Send + Sync {
    /// Checks that the other processes can read a location.
    fn check(&self, location: &Location) -> Result<()>;

    /// Evaluates all row groups and passes their results to `sink` in order, until `sink` returns `false`.
    fn judge(
        &self,
        input: &EvaluationInput<'_>,
        sink: &mut dyn FnMut(PartialEvaluation) -> Result<bool>,
    ) -> Result<()>;
}

/// Checks that a ranking can be evaluated in other processes.
pub fn check(remote: &dyn RemoteEvaluator, ranking: &Ranking, request: &EvaluateRequest) -> Result<()> {
    let refuse = |what: &str| {
        Err(Error::usage(
            format_args!("--cluster: {what} cannot be evaluated on a cluster"),
            "remove --cluster; clusters support only predictions in Parquet that include labels",
        ))
    };
    match (ranking, &request.judgments) {
        (Ranking::Scores { .. }, _) => refuse("text scores"),
        (Ranking::Run(_), _) => refuse("TREC runs"),
        (Ranking::Baseline { .. }, _) => refuse("features and random orders"),
        (_, Some(_)) => refuse("rankings with separate labels"),
        (_, None) if request.label_map.is_some() => refuse("rankings with a label map"),
        (Ranking::Predictions(location), None) if format_of(location)?.is_some() => {
            refuse("text predictions")
        }
        (Ranking::Predictions(location), None) => remote.check(location),
    }
}
