//! Evaluation in other processes, which judge row groups of predictions with the same code.

use super::predictions::Predictions;
use super::text_predictions::format_of;
use super::worker::{EvaluationSettings, PartialEvaluation};
use super::{EvaluateRequest, Ranking};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::fmt;

/// Predictions to evaluate and the settings to use.
pub struct EvaluationInput<'a> {
    /// The predictions, with all their row groups.
    pub predictions: &'a Predictions,
    /// Metrics and their convention.
    pub settings: &'a EvaluationSettings,
    /// The column that queries are grouped by.
    pub by: Option<&'a str>,
}

/// Evaluates row groups in other processes.
pub trait RemoteEvaluator: fmt::Debug + Send + Sync {
    /// Fails if the other processes cannot read a location.
    fn check(&self, location: &Location) -> Result<()>;

    /// Passes the results of all row groups to the sink in order, until it returns `false`.
    fn judge(
        &self,
        input: &EvaluationInput<'_>,
        sink: &mut dyn FnMut(PartialEvaluation) -> Result<bool>,
    ) -> Result<()>;
}

/// Fails for rankings that cannot be evaluated remotely.
pub fn check(remote: &dyn RemoteEvaluator, ranking: &Ranking, request: &EvaluateRequest) -> Result<()> {
    let refuse = |what: &str| {
        Err(Error::usage(
            format_args!("--cluster: {what} cannot be evaluated on a cluster"),
            "omit --cluster; clusters support only predictions in Parquet that include labels",
        ))
    };
    match (ranking, &request.judgments) {
        (Ranking::Scores { .. }, _) => refuse("text scores"),
        (Ranking::Run(_), _) => refuse("TREC runs"),
        (_, Some(_)) => refuse("rankings with separate labels"),
        (Ranking::Predictions(location), None) if format_of(location)?.is_some() => {
            refuse("text predictions")
        }
        (Ranking::Predictions(location), None) => remote.check(location),
    }
}
