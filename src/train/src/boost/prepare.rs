//! Prepares boosting before the first round: opens, checks and bins the data, and initialises the scores.

use super::gradients::RowGradients;
use super::local_worker::{LocalWorker, WorkerState};
use crate::bins::{BinnedData, FeatureBins};
use crate::config::{BaseScore, BoostCandidates, BoostSettings};
use crate::driver::{
    BackendCell, Metrics, Observer, OpenedData, Scores, TrainRequest, Training, ValidationSet, mean_of, open,
    warn_of_leakage,
};
use crate::driver::{BoostWorker, ensemble_of};
use crate::objective::Objective;
use crate::tree::Scale;
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use planetree_data::dataset::KnownFeature;
use planetree_data::source::{LabelledData, LabelledRows};
use planetree_model::model::{Combine, Model, ModelFeature, Origin, Part, TreeEnsemble};
use planetree_model::predict::{known_features, scores_of};
use std::sync::Arc;
use std::time::Instant;

/// Memory per row for score, label, row index and target, and for copies of the last two while a node is split.
const BYTES_PER_ROW: u64 = 8 + 4 + 2 * (4 + 4);
/// Additional memory per row for gradient and hessian, and for a hessian beside each target.
const HESSIAN_BYTES_PER_ROW: u64 = 4 + 4 + 4 + 4;

/// The state of a boosted training run before its first round.
pub struct PreparedBoosting {
    pub data: Arc<BinnedData>,
    /// Scores and gradients before any tree of a checkpoint is replayed. `None` if a backend holds the rows.
    pub state: Option<WorkerState>,
    pub traits: TrainingTraits,
    pub validation: Vec<ValidationSet>,
    /// The score of every row before the first tree, without the values of a base feature.
    pub base_score: f64,
}

/// Properties of a training run that follow from its data and objective.
#[derive(Debug, Clone, Copy)]
pub struct TrainingTraits {
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
    pub fn values_in_units(&self, parameters: &BoostSettings, scale: &Scale) -> bool {
        /// Minimum size of a typical first step, in units.
        const LEAST: f64 = 1024.0;
        self.residuals
            && !self.weighted
            && parameters.learner.learning_rate * self.usual * scale.gradient >= LEAST
    }
}

pub fn prepare<'a>(
    request: &'a TrainRequest,
    parameters: &BoostSettings,
    observer: &mut dyn Observer,
) -> Result<(Training<'a>, PreparedBoosting)> {
    let start_features = start_features(request, parameters)?;
    let bytes_per_row =
        BYTES_PER_ROW + if request.is_squared_error(parameters) { 0 } else { HESSIAN_BYTES_PER_ROW };
    let opened = open(request, start_features.as_deref(), bytes_per_row, observer)?;
    check_fills(request, &opened.data)?;
    note_workers(parameters, opened.data.partitions(), observer);

    let begun = Instant::now();
    let objective = request.make_objective(parameters);
    check_objective(&opened, objective.as_deref())?;
    let model = new_model(request, parameters, &opened, objective.as_deref())?;
    let OpenedData { source, data, options, mut validation, seen, seconds } = opened;
    let mut training = Training::open(request, model, seconds, observer)?;
    let model = training.model();
    let base_score = ensemble_of(model).base_score;
    let mut sets = Vec::new();
    for (named, source) in request.validation.iter().zip(&mut validation) {
        let step = format!("reading {}", named.name);
        source.watch(observer.begin(&step, source.values_count(), "values"));
        let start = |rows: &[LabelledRows]| start_scores(request, source, model, rows);
        let cuts = options.max_bin.is_some();
        sets.push(ValidationSet::load(&named.name, source, &data.binning, cuts, parameters, &start)?);
    }
    warn_of_leakage(seen, &mut sets, &mut validation, observer);
    let traits = TrainingTraits {
        weighted: objective.as_ref().is_some_and(|objective| !objective.hessians_are_one())
            || data.rows.iter().any(|rows| rows.weights.is_some()),
        residuals: objective.is_none(),
        draws: objective.as_ref().is_some_and(|objective| objective.draws()),
        remembers: objective.as_ref().is_some_and(|objective| objective.learns()),
        usual: mean_of(&data.rows, |label| (f64::from(label) - base_score).abs() as f32),
    };
    let state = match request.backend {
        Some(_) => None,
        None => Some(WorkerState {
            scores: start_scores(request, &source, model, &data.rows)?,
            gradients: RowGradients::new(objective, &data.rows),
            metrics: if traits.residuals { None } else { Some(Metrics::new(parameters, &data.rows)?) },
        }),
    };
    training.seconds.load += begun.elapsed().as_secs_f64();
    Ok((training, PreparedBoosting { data: Arc::new(data), state, traits, validation: sets, base_score }))
}

impl PreparedBoosting {
    /// Creates the boosting worker, which is local if this process holds the scores, and otherwise comes from the
    /// backend. Must be called only once.
    pub fn worker<C: BackendCell>(
        &mut self,
        request: &TrainRequest,
        parameters: &BoostSettings,
    ) -> Box<dyn BoostWorker<C>> {
        match (self.state.take(), &request.backend) {
            (None, Some(backend)) => C::worker(&**backend, parameters, &self.data, self.base_score),
            (state, _) => {
                let state = state.expect("without a cluster, the state is local");
                Box::new(LocalWorker::new(parameters, self.data.clone(), state))
            }
        }
    }
}

/// Tells the user if there are fewer workers than requested, which happens because each worker has whole row groups.
fn note_workers(parameters: &BoostSettings, partitions: usize, observer: &mut dyn Observer) {
    if let BoostCandidates::Streaming(streaming) = parameters.learner.candidates
        && streaming.workers as usize > partitions
    {
        observer.note(&format!(
            "workers = {}, but only {partitions} can be used: a worker needs a row group of its own \
             (convert with a smaller --partition-rows for more)",
            streaming.workers
        ));
    }
}

fn start_features(request: &TrainRequest, parameters: &BoostSettings) -> Result<Option<Vec<KnownFeature>>> {
    let Some(start) = &request.start else { return Ok(None) };
    // A base score of 0 adds nothing to the start model.
    if !matches!(parameters.learner.base_score, BaseScore::Auto | BaseScore::Constant(0.0)) {
        return Err(Error::usage(
            "base_score conflicts with --start-model, which has its own base score",
            "remove base_score or --start-model",
        ));
    }
    Ok(Some(known_features(start, None)))
}

/// Checks that the start model and this training run replace missing values in the same way, because a model has only
/// one fill value per feature.
fn check_fills(request: &TrainRequest, data: &BinnedData) -> Result<()> {
    let Some(start) = &request.start else { return Ok(()) };
    let differs = |(old, new): &(&ModelFeature, &FeatureBins)| old.fill != new.fill;
    match start.features.iter().zip(&data.binning.features).find(differs) {
        None => Ok(()),
        Some((old, new)) => {
            let shown = |fill: Option<f32>| fill.map_or("missing".to_owned(), |fill| fill.to_string());
            Err(Error::usage(
                format_args!(
                    "the start model replaces missing values of {} by {}, this run by {}",
                    old.name,
                    shown(old.fill),
                    shown(new.fill)
                ),
                "set missing as for the start model; a mean or median always comes from the training data",
            ))
        }
    }
}

/// Returns the error for scores that became infinite or NaN.
pub fn diverged(round: u32) -> Error {
    Error::Untrainable(Box::new(Error::usage(
        format_args!("the scores became non-finite after round {round}"),
        "lower learning_rate; 0.01 to 0.3 is usual",
    )))
}

/// Returns the error for a validation row whose score became infinite or NaN.
pub fn diverged_on(name: &str, row: u64, round: u32) -> Error {
    Error::Untrainable(Box::new(Error::usage(
        format_args!("the score of row {row} of {name} became non-finite after round {round}"),
        "lower learning_rate; 0.01 to 0.3 is usual",
    )))
}

/// Returns the error for gradients that are infinite or NaN before the first round.
pub fn invalid_start(request: &TrainRequest) -> Error {
    Error::place(
        request.place(),
        "labels, weights or initial scores are too large: gradients overflow",
        "scale them down, or set another base_score",
    )
}

fn new_model(
    request: &TrainRequest,
    parameters: &BoostSettings,
    opened: &OpenedData,
    objective: Option<&dyn Objective>,
) -> Result<Model> {
    let OpenedData { source, data, .. } = opened;
    let features = source.names();
    let (base_score, base_feature) = base_score(parameters, source, data, features, objective)?;
    let start = request.start.as_ref();
    let (intercept, parts) = match start {
        None => {
            let ensemble =
                TreeEnsemble { combine: Combine::Sum, base_score, base_feature, trees: Vec::new() };
            (0.0, vec![Part::trees(ensemble)])
        }
        Some(start) => (start.intercept, start_parts(start)),
    };
    Ok(Model {
        intercept,
        parts,
        features: start.map_or_else(|| opened.model_features(), |start| start.features.clone()),
        configuration: request.configuration(),
        data: opened.data_used(request)?,
        rounds: 0,
        origin: Origin::default(),
    })
}

/// Returns the parts (terms of the model's sum) of a new model that starts from another one. If the start model is a
/// boosted model, boosting extends it; to any other model, boosting adds a part of its own.
fn start_parts(start: &Model) -> Vec<Part> {
    if let Some(ensemble) = start.only_trees().filter(|ensemble| ensemble.combine == Combine::Sum) {
        return vec![Part::trees(ensemble.clone())];
    }
    let mut parts = start.parts.clone();
    for part in parts.iter_mut().filter(|part| part.configuration.is_empty()) {
        part.configuration = start.configuration.clone();
    }
    let empty =
        TreeEnsemble { combine: Combine::Sum, base_score: 0.0, base_feature: None, trees: Vec::new() };
    parts.push(Part { name: "boosting".to_owned(), ..Part::trees(empty) });
    parts
}

/// Returns the initial score, and the index of the feature that is added to it, if there is one.
fn base_score(
    parameters: &BoostSettings,
    source: &LabelledData,
    data: &BinnedData,
    features: &[String],
    objective: Option<&dyn Objective>,
) -> Result<(f64, Option<u32>)> {
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
fn check_objective(opened: &OpenedData, objective: Option<&dyn Objective>) -> Result<()> {
    let OpenedData { source, data, .. } = opened;
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

/// Returns the scores before the first round: the base score, the values of the base feature, or the predictions of
/// the start model.
fn start_scores(
    request: &TrainRequest,
    source: &LabelledData,
    model: &Model,
    rows: &[LabelledRows],
) -> Result<Scores> {
    let bare;
    let ensemble = ensemble_of(model);
    let start = match (&request.start, ensemble.base_feature) {
        (None, None) => return Ok(Scores::constant(rows, ensemble.base_score)),
        (None, Some(_)) => {
            let TreeEnsemble { combine, base_score, base_feature, .. } = *ensemble;
            let without_trees = TreeEnsemble { combine, base_score, base_feature, trees: Vec::new() };
            bare = Model { parts: vec![Part::trees(without_trees)], ..model.clone() };
            &bare
        }
        (Some(start), _) => start,
    };
    let mut scores = Vec::new();
    for reader in source.readers() {
        scores.extend(scores_of(reader, start)?);
    }
    Ok(Scores::given(rows, &scores))
}
