//! The seam to a cluster: row groups of predictions that other processes judge, with the code of this one.

use super::predictions::Predictions;
use super::worker::{Settings, Stretch};
use super::{Ranking, Request};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::fmt;

/// Predictions and what is to be found out about them.
pub struct EvaluationJob<'a> {
    /// The predictions, which are whole.
    pub predictions: &'a Predictions,
    /// What is wanted.
    pub settings: &'a Settings,
    /// The column that queries are counted under.
    pub by: Option<&'a str>,
}

/// Processes that judge row groups.
pub trait RemoteEvaluator: fmt::Debug + Send + Sync {
    /// Refuses a place that they do not have.
    fn check(&self, location: &Location) -> Result<()>;

    /// Hands on the stretches of all row groups in their order, until the sink says `false`.
    fn judge(&self, judged: &EvaluationJob<'_>, sink: &mut dyn FnMut(Stretch) -> Result<bool>) -> Result<()>;
}

/// Refuses what is not judged on a cluster.
pub fn check(remote: &dyn RemoteEvaluator, ranking: &Ranking, request: &Request) -> Result<()> {
    let refuse = |what: &str| {
        Err(Error::usage(
            format_args!("--cluster: {what} are not judged on a cluster"),
            "leave --cluster out; predictions with labels of their own are",
        ))
    };
    match (ranking, &request.judgments) {
        (Ranking::Scores { .. }, _) => refuse("scores as text"),
        (Ranking::Run(_), _) => refuse("runs"),
        (_, Some(_)) => refuse("rankings with labels of elsewhere"),
        (Ranking::Predictions(location), None) => remote.check(location),
    }
}

/// Judges one row group, on its own.
pub fn judge_groups(predictions: &Predictions, settings: &Settings, group: usize) -> Result<Stretch> {
    let reader = predictions.group_reader(group);
    super::worker::Worker::new(settings).judge_stretch(reader()?)
}
