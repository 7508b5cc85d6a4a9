//! What learners that optimise a ranking metric by a linear function share.

use super::prepare::BYTES_PER_ROW;
use super::ranking::RankingTarget;
use super::runner::LinearJobs;
use super::validation::LinearValidation;
use super::{jobs, plan};
use crate::config::{LearnerParameters, Parameters};
use crate::driver::{MemberInput, Observer, StageContext, StartScores};
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledRows;
use planetree_metric::{Mean, Metric};
use planetree_model::model::{FeatureNormalisation, LinearFunction};

/// Memory per row of the rankings, besides that of the values.
pub(crate) const RANKING_BYTES_PER_ROW: u64 = BYTES_PER_ROW + 24;

/// A metric to optimise on some rows.
pub(crate) struct RankingProblem<'a> {
    /// The metric and the features.
    pub target: RankingTarget,
    /// Runs jobs on the rows.
    pub jobs: LinearJobs<'a>,
    /// The metrics to log, without values.
    pub metrics: Vec<Mean>,
}

/// The name of a learner with the metric that it optimises.
pub(crate) struct RankerKind {
    /// Name of the learner, for messages.
    pub name: &'static str,
    /// The metric to optimise.
    pub metric: Metric,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
}

impl RankingProblem<'_> {
    /// Returns the linear function with these weights.
    pub(crate) fn function(&self, weights: &[f64]) -> LinearFunction {
        self.target.plan.weighted(0.0, weights)
    }

    /// Returns the number of features that have weights.
    pub(crate) fn features(&self) -> usize {
        self.target.plan.features.len()
    }
}

/// Reads the rows and finds the constants of the features. Returns an error if there is nothing to rank.
pub(crate) fn problem<'a, L: Sync + Clone>(
    kind: &RankerKind,
    context: &StageContext<'a>,
    settings: &'a Parameters<L>,
    learner: LearnerParameters,
    (input, start): (&'a MemberInput, Option<StartScores>),
    observer: &mut dyn Observer,
) -> Result<(RankingProblem<'a>, LinearValidation)> {
    check(context, input)?;
    let rows = &input.data.rows;
    if rows.iter().any(|rows| rows.weights.is_some()) {
        observer.note(&format!("{} uses the weights of rows only to normalise features", kind.name));
    }
    let snapshot = || settings.with(learner).to_toml();
    let (training, validation) = StartScores::divided(start);
    let (jobs, offset) = jobs(context, settings, snapshot, input, training)?;
    let target = RankingTarget {
        plan: plan(context, kind.normalisation, input, offset, &jobs, observer)?,
        metric: kind.metric.to_string(),
        convention: settings.convention.to_string(),
        queries: rows.iter().map(|rows| rows.queries().count() as u64).sum(),
    };
    let metrics = settings.metrics.iter().map(|metric| Mean::new(*metric)).collect();
    Ok((RankingProblem { target, jobs, metrics }, LinearValidation::new(context, validation)))
}

/// Returns an error if all documents of every query have the same label.
fn check(context: &StageContext<'_>, input: &MemberInput) -> Result<()> {
    let has_pair = |rows: &LabelledRows| {
        rows.queries().any(|query| {
            let labels = &rows.labels[query];
            labels.iter().any(|label| *label != labels[0])
        })
    };
    if !input.data.rows.iter().any(has_pair) {
        return Err(Error::place(
            context.request.place(),
            "no query has documents with different labels: there is nothing to rank",
            "train on queries with documents of different labels",
        ));
    }
    Ok(())
}

/// Returns the error for a metric that no query has a value of.
pub(crate) fn undefined(target: &RankingTarget, place: impl std::fmt::Display) -> Error {
    Error::place(
        place,
        format_args!(
            "{} is undefined for all queries under the convention {}",
            target.metric, target.convention
        ),
        "choose another train_metric, or train on queries with relevant documents",
    )
}
