//! Prepares boosting before the first round: checks the labels and initialises the scores.

use super::gradients::RowGradients;
use super::local_worker::{LocalWorker, WorkerState};
use crate::bins::BinnedData;
use crate::config::{BaseScore, BoostCandidates, BoostSettings, ObjectiveParameters};
use crate::driver::{
    BackendCell, BoostWorker, CoupledClass, MemberInput, Metrics, Observer, RemotePart, RemoteScores,
    RemoteStart, Scores, StageContext, StartScores, TrainRequest, TrainingStart, ValidationSet, mean_of,
};
use crate::objective::{Objective, softmax_class};
use crate::tree::Scale;
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use planetree_data::source::{LabelledData, LabelledRows};
use planetree_model::model::{Combine, Model, Origin, Part, TreeEnsemble};
use planetree_model::predict::scores_of;
use std::sync::Arc;

/// Memory per row for score, label, row index and target, and for copies of the last two while a node is split.
const BYTES_PER_ROW: u64 = 8 + 4 + 2 * (4 + 4);
/// Additional memory per row for gradient and hessian, and for a hessian beside each target.
const HESSIAN_BYTES_PER_ROW: u64 = 4 + 4 + 4 + 4;

/// Additional memory per row for the log odds of a class.
const ODDS_BYTES_PER_ROW: u64 = 8;

/// Returns the memory per row of a boosted part, in bytes, not counting the row's codes.
pub(super) fn bytes_per_row(request: &TrainRequest, parameters: &BoostSettings) -> u64 {
    let is_softmax = parameters.learner.objective == ObjectiveParameters::SoftmaxClasses;
    BYTES_PER_ROW
        + if request.is_squared_error(parameters) { 0 } else { HESSIAN_BYTES_PER_ROW }
        + if is_softmax { ODDS_BYTES_PER_ROW } else { 0 }
}

/// The state of a boosted part before its first round.
pub(super) struct PreparedBoosting {
    pub data: Arc<BinnedData>,
    /// Scores and gradients before any tree of a checkpoint is replayed, until a worker takes them.
    state: Option<BoostRows>,
    /// The grade up to which labels are 1, if they are those of a class.
    at_most: Option<i32>,
    /// The class, if the part is coupled with others by a softmax.
    pub coupled: Option<CoupledClass>,
    pub traits: TrainingTraits,
    pub validation: Vec<ValidationSet>,
    /// The part before the first round.
    pub start: TreeEnsemble,
}

/// The rows of a boosted part before its first round.
enum BoostRows {
    /// The rows are in this process.
    Here(WorkerState),
    /// A backend holds the rows, and computes their scores.
    Remote(RemoteStart),
}

/// Properties of a training run that follow from its data and objective.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrainingTraits {
    /// Whether rows need a weight or a hessian besides a gradient and a count.
    pub weighted: bool,
    /// Whether the objective is the squared error.
    pub residuals: bool,
    /// Whether the objective learns from earlier rounds, which must then be replayed before training resumes.
    pub remembers: bool,
    /// Whether the objective draws random numbers.
    pub draws: bool,
    /// Mean absolute difference between a label and the base score.
    pub usual: f64,
}

impl TrainingTraits {
    /// Returns whether leaf values are rounded to whole units of the gradient scale. They are if the rounding error is
    /// negligible compared to typical leaf values. An outlier among the labels can make units too coarse for that.
    pub(super) fn values_in_units(&self, parameters: &BoostSettings, scale: &Scale) -> bool {
        /// Minimum size of a typical first step, in units.
        const LEAST: f64 = 1024.0;
        self.residuals
            && !self.weighted
            && parameters.learner.learning_rate * self.usual * scale.gradient >= LEAST
    }
}

pub(super) fn prepare(
    context: &StageContext<'_>,
    parameters: &BoostSettings,
    input: &MemberInput,
    given: Option<StartScores>,
) -> Result<PreparedBoosting> {
    let (request, data) = (context.request, &input.data);
    let objective = match &input.coupled {
        Some(class) => Some(softmax_class(class.members.len())),
        None => request.make_objective(parameters),
    };
    check_objective(&context.sources.source, data, objective.as_deref())?;
    let start = start_ensemble(context, parameters, input, given.is_some(), objective.as_deref())?;
    let (given_training, given_validation) = StartScores::divided(given);
    let mut given_validation = given_validation.into_iter();
    let mut validation = Vec::new();
    for (number, set) in context.validation.iter().enumerate() {
        let scores = match given_validation.next() {
            Some(given) => given,
            None => base_scores(context, &context.sources.validation[number], &start, set.rows())?,
        };
        validation.push(ValidationSet::new(set.clone(), scores));
    }
    let traits = TrainingTraits {
        weighted: objective.as_ref().is_some_and(|objective| !objective.hessians_are_one())
            || data.rows.iter().any(|rows| rows.weights.is_some()),
        residuals: objective.is_none(),
        draws: objective.as_ref().is_some_and(|objective| objective.draws()),
        remembers: objective.as_ref().is_some_and(|objective| objective.learns()),
        usual: mean_of(&data.rows, |label| (f64::from(label) - start.base_score).abs() as f32),
    };
    let state = match (given_training, &request.backend) {
        (Some(TrainingStart::Remote(scores)), _) => BoostRows::Remote(RemoteStart::Scores(scores)),
        (None, Some(_)) => BoostRows::Remote(match start.base_feature {
            None => RemoteStart::Constant(start.base_score),
            Some(_) => RemoteStart::Scores(RemoteScores {
                model: Some(Box::new(without_trees(context, &start))),
                given: None,
            }),
        }),
        (given, _) => BoostRows::Here(WorkerState {
            scores: match given {
                Some(TrainingStart::Here(scores)) => scores,
                _ => base_scores(context, &context.sources.source, &start, &data.rows)?,
            },
            odds: None,
            gradients: RowGradients::new(objective, &data.rows),
            metrics: match traits.residuals || context.members > 1 {
                true => None, // metrics of several parts are those of their combined scores
                false => Some(Metrics::new(parameters, &data.rows)?),
            },
        }),
    };
    let (data, at_most, coupled) = (data.clone(), input.at_most, input.coupled.clone());
    Ok(PreparedBoosting { data, state: Some(state), at_most, coupled, traits, validation, start })
}

impl PreparedBoosting {
    /// Creates the boosting worker, which is local if this process holds the scores, and otherwise comes from the
    /// backend. Must be called only once.
    pub(super) fn worker<C: BackendCell>(
        &mut self,
        request: &TrainRequest,
        parameters: &BoostSettings,
    ) -> Result<Box<dyn BoostWorker<C>>> {
        let (data, at_most, coupled) = (&self.data, self.at_most, self.coupled.as_ref());
        match (self.state.take(), &request.backend) {
            (Some(BoostRows::Here(state)), _) => {
                Ok(Box::new(LocalWorker::new(parameters, data.clone(), state)))
            }
            (Some(BoostRows::Remote(start)), Some(backend)) => {
                C::worker(&**backend, &RemotePart { parameters, data, at_most, coupled, start })
            }
            _ => Err(Error::bug("boost", "a worker without rows")),
        }
    }
}

/// Tells the user if there are fewer workers than requested, which happens because each worker has whole queries.
pub(super) fn note_workers(parameters: &BoostSettings, rows: &[LabelledRows], observer: &mut dyn Observer) {
    let queries: usize = rows.iter().map(|rows| rows.query_bounds.len() - 1).sum();
    if let BoostCandidates::Streaming(streaming) = parameters.learner.candidates
        && streaming.workers as usize > queries
    {
        observer.note(&format!(
            "workers = {}, but only {queries} can be used: each worker needs a query",
            streaming.workers
        ));
    }
}

/// Returns the error for scores that became infinite or NaN.
pub(super) fn diverged(round: u32) -> Error {
    Error::Untrainable(Box::new(Error::usage(
        format_args!("the scores became non-finite after round {round}"),
        "lower learning_rate; 0.01 to 0.3 is usual",
    )))
}

/// Returns the error for gradients that are infinite or NaN before the first round.
pub(super) fn invalid_start(request: &TrainRequest) -> Error {
    Error::place(
        request.place(),
        "labels, weights or initial scores are too large: gradients overflow",
        "scale them down, or set another base_score",
    )
}

/// Returns the ensemble before the first round. If scores are given to start from, the base score is 0, unless the new
/// trees extend an ensemble with a base score of its own.
fn start_ensemble(
    context: &StageContext<'_>,
    parameters: &BoostSettings,
    input: &MemberInput,
    has_start: bool,
    objective: Option<&dyn Objective>,
) -> Result<TreeEnsemble> {
    if let Some(extended) = &input.extended {
        return Ok(extended.clone());
    }
    let (base_score, base_feature) = match has_start {
        true => (0.0, None),
        false => base_score(parameters, &context.sources.source, &input.data, objective)?,
    };
    Ok(TreeEnsemble {
        normalisation: parameters.learner.tree.applied_normalisation(),
        ..TreeEnsemble::new(Combine::Sum, base_score, base_feature, Vec::new())
    })
}

/// Returns the initial score, and the index of the feature that is added to it, if there is one.
fn base_score(
    parameters: &BoostSettings,
    source: &LabelledData,
    data: &BinnedData,
    objective: Option<&dyn Objective>,
) -> Result<(f64, Option<u32>)> {
    let features = source.names();
    match &parameters.learner.base_score {
        BaseScore::Constant(score) => Ok((*score, None)),
        BaseScore::Feature(name) => match features.iter().position(|feature| feature == name) {
            Some(place) => Ok((0.0, Some(place as u32))),
            None => Err(Error::place(
                source.place(),
                format_args!("base_score = feature:{name}: no such feature"),
                suggest::did_you_mean(
                    &suggest::nearest(name, features.iter().map(String::as_str)),
                    "planetree describe lists the features",
                ),
            )),
        },
        BaseScore::Auto => Ok(match objective {
            None => (mean_of(&data.rows, |label| label), None),
            Some(objective) => {
                let relevant = |label: f32| if objective.is_relevant(label) { 1.0 } else { 0.0 };
                (objective.start(mean_of(&data.rows, relevant)), None)
            }
        }),
    }
}

/// Returns an error if the objective cannot learn from the labels, weights or positions.
fn check_objective(
    source: &LabelledData,
    data: &BinnedData,
    objective: Option<&dyn Objective>,
) -> Result<()> {
    let Some(objective) = objective else { return Ok(()) };
    let mut queries = data.rows.iter().flat_map(|rows| rows.queries().map(|query| &rows.labels[query]));
    if !queries.any(|labels| objective.has_gradient(labels)) {
        return Err(Error::place(
            source.place(),
            "no query has documents with different labels: there is no order to learn",
            "train on queries with different labels, or set objective=squared",
        ));
    }
    objective.check(&data.rows).map_err(|problem| problem.at(source.place()))
}

/// Returns the scores of an ensemble before its first tree: the base score, or the values of the base feature.
fn base_scores(
    context: &StageContext<'_>,
    source: &LabelledData,
    start: &TreeEnsemble,
    rows: &[LabelledRows],
) -> Result<Scores> {
    if start.base_feature.is_none() {
        return Ok(Scores::constant(rows, start.base_score));
    }
    let bare = without_trees(context, start);
    let mut scores = Vec::new();
    for reader in source.readers() {
        scores.extend(scores_of(reader, &bare)?);
    }
    Ok(Scores::given(rows, &scores))
}

/// Returns a model of an ensemble before its first tree.
fn without_trees(context: &StageContext<'_>, start: &TreeEnsemble) -> Model {
    let bare = TreeEnsemble { trees: Vec::new(), ..*start };
    Model {
        intercept: 0.0,
        parts: vec![Part::trees(bare)],
        groups: Vec::new(),
        features: context.features.to_vec(),
        configuration: String::new(),
        data: Vec::new(),
        rounds: 0,
        start_scores: None,
        origin: Origin::default(),
    }
}
