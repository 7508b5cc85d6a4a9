//! What learners that optimise a ranking metric by a linear function share.

use super::learner::{LinearAlgorithm, LinearLearner};
use super::prepare::{BYTES_PER_ROW, LinearInput, PreparedRows, prepare, query_bytes};
use super::ranking::RankingTarget;
use super::runner::LinearJobs;
use super::validation::LinearValidation;
use super::weights::RowWeights;
use crate::config::{LearnerParameters, MetricRanker, Parameters, RankerParameters};
use crate::driver::{
    DataSize, Learner, MemberInput, Observer, PartSettings, StageContext, StartScores, TrainRequest,
};
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledRows;
use planetree_metric::Metric;
use planetree_model::model::{LinearFunction, PartFamily};

/// Memory per row of the rankings, besides that of the values.
const RANKING_BYTES_PER_ROW: u64 = BYTES_PER_ROW + 24;

/// A metric to optimise on some rows.
pub(crate) struct RankingProblem<'a> {
    /// The metric and the features.
    pub target: RankingTarget,
    /// Runs jobs on the rows.
    pub jobs: LinearJobs<'a>,
    /// The metrics to log.
    pub metrics: Vec<Metric>,
}

/// How a learner that optimises a ranking metric is trained.
pub(crate) trait MetricAlgorithm: RankerParameters {
    /// Trains the linear function.
    type Algorithm<'a>: LinearAlgorithm + 'a;

    /// Returns the parameters as those of one of all learners.
    fn parameters(settings: MetricRanker<Self>) -> LearnerParameters;

    /// Creates the algorithm.
    fn algorithm<'a>(
        settings: &'a Parameters<MetricRanker<Self>>,
        request: &'a TrainRequest,
        problem: RankingProblem<'a>,
    ) -> Self::Algorithm<'a>;
}

impl<O: MetricAlgorithm> PartSettings for Parameters<MetricRanker<O>> {
    fn learner<'a>(
        &'a self,
        context: &StageContext<'a>,
        input: &'a MemberInput,
        start: Option<StartScores>,
        observer: &mut dyn Observer,
    ) -> Result<(PartFamily, Box<dyn Learner + 'a>)> {
        let (problem, validation) = problem(context, self, input, start, observer)?;
        let algorithm = O::algorithm(self, context.request, problem);
        let part = PartFamily::Linear(algorithm.function().into_owned());
        Ok((part, Box::new(LinearLearner { algorithm, validation })))
    }

    fn bytes_per_row(&self, _request: &TrainRequest, members: u64) -> u64 {
        members * RANKING_BYTES_PER_ROW
    }

    fn working_bytes(&self, _request: &TrainRequest, size: &DataSize) -> u64 {
        query_bytes(size)
    }
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
fn problem<'a, O: MetricAlgorithm>(
    context: &StageContext<'a>,
    settings: &'a Parameters<MetricRanker<O>>,
    input: &'a MemberInput,
    start: Option<StartScores>,
    observer: &mut dyn Observer,
) -> Result<(RankingProblem<'a>, LinearValidation)> {
    check(context, input)?;
    let rows = &input.data.rows;
    if rows.iter().any(|rows| rows.weights.is_some()) {
        observer.note(&format!("{} does not use the weights of rows", O::SPEC.noun));
    }
    let ranker = &settings.learner;
    let data = LinearInput {
        member: input,
        weights: RowWeights::Equal,
        normalisation: ranker.normalisation,
        parameters: settings.with(O::parameters(ranker.clone())).to_toml(),
        start,
        row_bytes: RANKING_BYTES_PER_ROW,
        is_relative: true,
    };
    let PreparedRows { plan, jobs, validation } = prepare(context, settings, data, observer)?;
    let target = RankingTarget {
        plan,
        metric: ranker.metric.to_string(),
        convention: settings.convention.for_training().to_string(),
        queries: rows.iter().map(|rows| rows.queries().count() as u64).sum(),
    };
    let problem = RankingProblem { target, jobs, metrics: settings.metrics.clone() };
    Ok((problem, validation))
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
