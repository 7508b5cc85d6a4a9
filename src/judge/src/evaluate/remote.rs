//! Evaluation on other processes: row groups of predictions are judged remotely by the same code.

use super::predictions::Predictions;
use super::text_predictions::format_of;
use super::worker::{Settings, Stretch};
use super::{Ranking, Request};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::fmt;

/// Predictions to evaluate and the settings to use.
pub struct EvaluationJob<'a> {
    /// The predictions, with all their row groups.
    pub predictions: &'a Predictions,
    /// Metrics and their rules.
    pub settings: &'a Settings,
    /// The column that queries are grouped by.
    pub by: Option<&'a str>,
}

/// Evaluates row groups on other processes.
pub trait RemoteEvaluator: fmt::Debug + Send + Sync {
    /// Fails if the other processes cannot read a location.
    fn check(&self, location: &Location) -> Result<()>;

    /// Passes the results of all row groups to the sink in order, until it returns `false`.
    fn judge(&self, judged: &EvaluationJob<'_>, sink: &mut dyn FnMut(Stretch) -> Result<bool>) -> Result<()>;
}

/// Fails for rankings that cannot be evaluated remotely.
pub fn check(remote: &dyn RemoteEvaluator, ranking: &Ranking, request: &Request) -> Result<()> {
    let refuse = |what: &str| {
        Err(Error::usage(
            format_args!("--cluster: {what} cannot be evaluated on a cluster"),
            "leave --cluster out; only predictions in Parquet that include labels are supported",
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

/// Judges a single row group.
pub fn judge_groups(predictions: &Predictions, settings: &Settings, group: usize) -> Result<Stretch> {
    let reader = predictions.group_reader(group);
    super::worker::Worker::new(settings).judge_stretch(reader()?)
}
