//! Prepares a linear model before the first round: reads the rows and standardises the features.

use super::descent::LossDescent;
use super::jobs::{LinearDifference, LinearMoments, LinearOffset, LinearRanges, LinearSnapshot};
use super::learner::LinearLearner;
use super::newton::Problem;
use super::plan::{LinearPoint, PlannedFeature, StandardPlan};
use super::rows::LinearRows;
use super::runner::LinearJobs;
use super::sums::SumScale;
use super::validation::LinearValidation;
use super::weights::{NonrelevantSample, RowWeights};
use crate::config::{
    LearnerParameters, LinearLoss, LinearPenalty, LinearSettings, ObjectiveParameters, Parameters, svm_costs,
};
use crate::driver::{
    DataSize, FeatureValues, Learner, MemberInput, Observer, PartSettings, Scores, StageContext, StartScores,
    TrainRequest, TrainingStart, mean_of,
};
use crate::jobs::StartSnapshot;
use crate::objective::objective;
use planetree_base::error::{Error, Result};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledRows;
use planetree_model::model::{FeatureNormalisation, PartFamily};
use std::sync::Arc;

/// What a linear function or a net is trained on.
pub(crate) struct LinearInput<'a> {
    /// The part and its rows.
    pub member: &'a MemberInput,
    /// The weights of the rows.
    pub weights: RowWeights,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// All parameters as TOML, for other processes.
    pub parameters: String,
    /// The scores that training starts from.
    pub start: Option<StartScores>,
    /// Memory per row besides the values of the features, in bytes: the label, the score, and what jobs keep.
    pub row_bytes: u64,
    /// Whether nothing but differences between the documents of a query counts.
    pub is_relative: bool,
}

/// The rows of a part, ready for training.
pub(crate) struct PreparedRows<'a> {
    /// The features.
    pub plan: StandardPlan,
    /// Runs jobs on the training rows.
    pub jobs: LinearJobs<'a>,
    /// The validation sets.
    pub validation: LinearValidation,
}

/// Memory per row for the label, the score and the bounds of queries, besides the values of the features.
pub(crate) const BYTES_PER_ROW: u64 = 24;

impl PartSettings for LinearSettings {
    fn learner<'a>(
        &'a self,
        context: &StageContext<'a>,
        input: &'a MemberInput,
        given: Option<StartScores>,
        observer: &mut dyn Observer,
    ) -> Result<(PartFamily, Box<dyn Learner + 'a>)> {
        let request = context.request;
        let start = start_score(self, &input.data.rows, given.is_some())
            .map_err(|problem| problem.at(request.place()))?;
        let data = LinearInput {
            member: input,
            weights: row_weights(self, &input.data.rows, observer),
            normalisation: self.learner.normalisation,
            parameters: self.with(LearnerParameters::Linear(self.learner.clone())).to_toml(),
            start: given,
            row_bytes: BYTES_PER_ROW,
            is_relative: false,
        };
        let PreparedRows { plan, jobs, validation } = prepare(context, self, data, observer)?;
        let intercept = LinearPoint { intercept: start, weights: vec![0.0; plan.features.len()] };
        let function = plan.function(&intercept);
        let costs = match self.learner.penalty {
            LinearPenalty::Lambda(_) => Vec::new(),
            LinearPenalty::Cost(cost) => svm_costs(cost),
        };
        let lambda = match self.learner.penalty {
            LinearPenalty::Lambda(lambda) => lambda,
            LinearPenalty::Cost(_) => costs.first().map_or(0.0, |cost| plan.weight / cost),
        };
        let problem = Problem { plan, loss: &self.learner.loss, lambda, metrics: self.metrics.clone() };
        let algorithm = LossDescent {
            request,
            problem,
            jobs,
            costs,
            unfinished: Vec::new(),
            function: function.clone(),
            current: None,
        };
        Ok((PartFamily::Linear(function), Box::new(LinearLearner { algorithm, validation })))
    }

    fn bytes_per_row(&self, _request: &TrainRequest, members: u64) -> u64 {
        members * BYTES_PER_ROW
    }

    fn working_bytes(&self, _request: &TrainRequest, size: &DataSize) -> u64 {
        /// Bytes of a fixed-point sum, and of a number.
        const SUM: u64 = 16;
        const NUMBER: u64 = 8;
        // The second derivatives, for half of all pairs of features. There are several lists of sums per thread, and the
        // total is solved in place of copies.
        let pairs = (size.features + 1) * (size.features + 2) / 2;
        let sums = pairs * SUM * (4 * size.threads + 4) + pairs * NUMBER * 4;
        sums + query_bytes(size)
    }
}

/// Returns the memory of the values of a query's documents, in all threads.
pub(crate) fn query_bytes(size: &DataSize) -> u64 {
    size.threads * size.documents * (size.features + 8) * 8
}

/// Returns the score of all rows before the first round: the best constant. Returns an error if the loss cannot learn
/// from the labels.
fn start_score(
    settings: &LinearSettings,
    rows: &[LabelledRows],
    has_start: bool,
) -> Result<f64, crate::objective::LabelProblem> {
    let relevant_from = match settings.learner.loss {
        LinearLoss::Squared => return Ok(if has_start { 0.0 } else { mean_of(rows, |label| label) }),
        LinearLoss::Logistic { relevant_from } | LinearLoss::Hinge { relevant_from, .. } => relevant_from,
    };
    let logistic = objective(&ObjectiveParameters::Logistic { relevant_from }, settings.seed);
    let Some(logistic) = logistic else { return Ok(0.0) };
    logistic.check(rows)?;
    let relevant = |label: f32| if logistic.is_relevant(label) { 1.0 } else { 0.0 };
    let is_hinge = matches!(settings.learner.loss, LinearLoss::Hinge { .. });
    Ok(if has_start || is_hinge { 0.0 } else { logistic.start(mean_of(rows, relevant)) })
}

/// Reads the rows, and finds the ranges, means and deviations of all features.
pub(crate) fn prepare<'a, L: Sync>(
    context: &StageContext<'a>,
    settings: &'a Parameters<L>,
    mut input: LinearInput<'a>,
    observer: &mut dyn Observer,
) -> Result<PreparedRows<'a>> {
    let (training, validation) = StartScores::divided(input.start.take());
    let (jobs, offset) = jobs(context, settings, &input, training)?;
    let plan = plan(context, &input, offset, &jobs, observer)?;
    let validation = LinearValidation::new(context, settings, input.member, validation)?;
    Ok(PreparedRows { plan, jobs, validation })
}

/// Reads the rows, or prepares to read them for every job if they do not fit in memory. Also returns the largest absolute
/// score that training starts from.
fn jobs<'a, L: Sync>(
    context: &StageContext<'a>,
    settings: &'a Parameters<L>,
    data: &LinearInput<'a>,
    start: Option<TrainingStart>,
) -> Result<(LinearJobs<'a>, f64)> {
    let (request, source): (&TrainRequest, _) = (context.request, &context.sources.source);
    let (input, weights) = (data.member, data.weights);
    if let Some(backend) = &request.backend {
        let start = match start {
            Some(TrainingStart::Remote(scores)) => Some(StartSnapshot::of(&scores)?),
            _ => None,
        };
        let has_start = start.is_some();
        let parameters = data.parameters.clone();
        let (at_most, row_bytes) = (input.at_most, data.row_bytes);
        let snapshot = LinearSnapshot { parameters, weights, at_most, start, row_bytes };
        let jobs = LinearJobs::remote(&**backend, input.number, snapshot);
        let offset = if has_start { jobs.run(&LinearOffset)?.0 } else { 0.0 };
        return Ok((jobs, offset));
    }
    let start = match start {
        Some(TrainingStart::Here(scores)) => Some(scores),
        _ => None,
    };
    let offset = start.as_ref().map_or(0.0, Scores::largest);
    let read_values = move |partitions: std::ops::Range<usize>| {
        let read = LinearRows::read(source, &partitions.collect::<Vec<usize>>(), settings, None)?;
        Ok(read.values().clone())
    };
    // The labels may be those of a class.
    let rows = move |partitions: std::ops::Range<usize>, values: Arc<FeatureValues>, offsets| {
        let mut rows = input.data.rows[partitions].to_vec();
        rows.iter_mut().for_each(|rows| weights.apply(rows));
        LinearRows::new(rows, values, offsets, settings)
    };
    let bytes = 4 * source.values_count();
    // If not even the codes fit in memory, the values do not fit. If the codes do, they need their share of the memory.
    let fits = input.data.is_in_memory() && request.memory_limit.is_none_or(|limit| bytes <= limit / 2);
    if fits {
        let all = 0..source.partitions();
        let values = context.values.get_or_read(|| read_values(all.clone()))?;
        let rows = rows(all, values, start.map(Scores::into_partitions))?;
        return Ok((LinearJobs::Memory { source, rows }, offset));
    }
    let read = move |partition: usize| {
        let partitions = partition..partition + 1;
        let offsets = start.as_ref().map(|start| vec![start.partition(partition).to_vec()]);
        rows(partitions.clone(), read_values(partitions)?, offsets)
    };
    Ok((LinearJobs::Streamed { source, read: Box::new(read) }, offset))
}

/// Finds the ranges, means and deviations of all features.
fn plan(
    context: &StageContext<'_>,
    data: &LinearInput<'_>,
    offset: f64,
    jobs: &LinearJobs<'_>,
    observer: &mut dyn Observer,
) -> Result<StandardPlan> {
    let (source, rows, normalisation) = (&context.sources.source, &data.member.data.rows, data.normalisation);
    let is_word = |feature: &usize| source.has_words(*feature);
    let left_out: Vec<&str> =
        (0..source.features()).filter(is_word).map(|feature| source.names()[feature].as_str()).collect();
    if !left_out.is_empty() {
        observer.note(&format!(
            "categorical features have no weight in linear models and nets: {}",
            left_out.join(", ")
        ));
    }
    let numeric = (0..source.features()).filter(|feature| !is_word(feature));
    let planned = |feature: usize| PlannedFeature::new(feature as u32, context.features[feature].fill);
    let labels = rows.iter().flat_map(|rows| &rows.labels);
    let largest = |most: f64, number: f64| most.max(number.abs());
    let mut plan = StandardPlan {
        normalisation,
        features: numeric.map(planned).collect(),
        weight: total_weight(rows, &data.weights),
        label: labels.map(|label| f64::from(*label)).fold(0.0, largest),
        offset,
        all_features: source.features() as u32,
    };
    if plan.weight <= 0.0 {
        return Err(Error::place(
            source.place(),
            "the weight of every row is 0",
            "train on rows with weights above 0",
        ));
    }
    if normalisation != FeatureNormalisation::Query {
        let ranges = jobs.run(&LinearRanges { features: plan.features.clone() })?.0;
        if ranges.len() != plan.features.len() {
            return Err(malformed());
        }
        let mut ranges = ranges.into_iter();
        plan.features.retain_mut(|planned| ranges.next().is_some_and(|range| planned.set_range(range)));
    }
    let sums = jobs.run(&LinearMoments { plan: plan.clone() })?;
    if sums.count() != 3 * plan.features.len() {
        return Err(malformed());
    }
    let scale = SumScale::of_bound(plan.weight);
    let weight = plan.weight;
    let mut number = 0;
    plan.features.retain_mut(|planned| {
        let moments = std::array::from_fn(|moment| sums.value(3 * number + moment, scale));
        number += 1;
        planned.set_moments(normalisation, moments, weight)
    });
    let is_by_query = normalisation == FeatureNormalisation::Query;
    let has_difference = || -> Result<bool> {
        // With features normalised by query, the moments have told.
        Ok(is_by_query || !data.is_relative || jobs.run(&LinearDifference { plan: plan.clone() })?.0 > 0.0)
    };
    if plan.features.is_empty() || !has_difference()? {
        const WITHIN: &str = "all features are constant within queries";
        let (problem, remedy) = match (is_by_query, data.is_relative) {
            (_, true) => (WITHIN, "train on features that differ between the documents of a query"),
            (true, false) => (WITHIN, "set normalise_features=z, or train on queries with several documents"),
            (false, false) => {
                ("all features are constant", "train on data with features that differ between rows")
            }
        };
        return Err(Error::place(source.place(), problem, remedy));
    }
    Ok(plan)
}

/// Returns the weights that a linear model gives to the rows.
fn row_weights(settings: &LinearSettings, rows: &[LabelledRows], observer: &mut dyn Observer) -> RowWeights {
    let LinearLoss::Hinge { relevant_from, undersample: Some(per_relevant) } = settings.learner.loss else {
        return RowWeights::Given;
    };
    match NonrelevantSample::draw(rows, relevant_from, settings.seed, per_relevant) {
        Some(sample) => RowWeights::Undersampled(sample),
        None => {
            observer.note(&format!(
                "undersample = {per_relevant}: there are not more nonrelevant documents, so all are used"
            ));
            RowWeights::Given
        }
    }
}

/// Returns the total weight of all rows, added in the order of the rows.
fn total_weight(rows: &[LabelledRows], weights: &RowWeights) -> f64 {
    let of = |rows: &LabelledRows| -> Vec<f64> {
        let mut rows = rows.clone();
        weights.apply(&mut rows);
        match &rows.weights {
            Some(weights) => weights.iter().map(|weight| f64::from(*weight)).collect(),
            None => vec![1.0; rows.len()],
        }
    };
    rows.iter().flat_map(of).sum()
}

/// Returns the error for numbers that are too large to add up.
pub(crate) fn overflow(place: String) -> Error {
    Error::place(
        place,
        "labels, weights or features are too large: the loss overflows",
        "scale them down, or set normalise_features=z",
    )
}
