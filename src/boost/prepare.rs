//! Everything before the first round: data opened and checked, binned, scores started or rebuilt.

use super::checkpoint::{CheckpointPlan, resume};
use super::gradients::{GradientSummary, Gradients};
use super::log::LogEntry;
use super::memory::Needs;
use super::scores::{Scores, mean_of};
use super::validation::{Metrics, ValidationSet};
use super::{Observer, PhaseSeconds};
use crate::bins::{
    BinCache, BinOptions, BinnedData, CacheKey, CacheWriter, FeatureBins, Rows, Source, read_rows,
};
use crate::config::{BaseScore, ObjectiveName, Parameters};
use crate::dataset::Manifest;
use crate::error::{Error, Result};
use crate::metric::Metric;
use crate::model::{DataUsed, Ensemble, Model, ModelFeature};
use crate::objective::{Objective, objective};
use crate::predict::scores_of;
use crate::progress::unwatched;
use crate::storage::Location;
use crate::suggest;
use crate::tree::CodedTree;
use std::path::PathBuf;
use std::time::Instant;

/// A dataset and its name in the log.
#[derive(Debug, Clone)]
pub struct NamedData {
    /// The name.
    pub name: String,
    /// Where it is.
    pub location: Location,
}

/// What to train.
pub struct TrainRequest {
    /// The training data: one dataset, or several whose rows are taken end to end.
    pub data: Vec<Location>,
    /// Validation sets; the first decides on early stopping.
    pub validation: Vec<NamedData>,
    /// The parameters.
    pub parameters: Parameters,
    /// The model to start from.
    pub start: Option<Model>,
    /// Bytes of memory to stay within.
    pub memory_limit: Option<u64>,
    /// Where binned data are cached when they do not fit.
    pub cache: PathBuf,
    /// Checkpoints.
    pub checkpoint: Option<CheckpointPlan>,
    /// Whether to go on from the checkpoint, if there is one.
    pub resume: bool,
}

impl TrainRequest {
    /// Where the training data are, as a message begins.
    pub fn place(&self) -> String {
        let places: Vec<String> = self.data.iter().map(Location::to_string).collect();
        places.join(", ")
    }

    /// Bytes that kept histograms may take.
    ///
    /// An eighth of the memory limit, which `Needs` counts on.
    pub fn histogram_bytes(&self) -> usize {
        /// Beyond this, building both children costs less than the memory.
        const MOST: u64 = 1 << 30;
        self.memory_limit.map_or(MOST, |limit| (limit / 8).clamp(1 << 20, MOST)) as usize
    }
}

/// What the rounds start from.
pub struct Prepared {
    pub data: BinnedData,
    pub scores: Scores,
    pub gradients: Gradients,
    /// Metrics of the training data; `None` for squared error, which is known anyway.
    pub training: Option<Metrics>,
    pub validation: Vec<ValidationSet>,
    /// The model so far.
    pub model: Model,
    /// Its trees that come from the start model.
    pub start_trees: usize,
    pub log: Vec<LogEntry>,
    pub seconds: PhaseSeconds,
}

/// More rows than that, and sums would not fit their cells.
const MOST_ROWS: u64 = (1 << 28) - 1;

pub fn prepare(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Prepared> {
    let begun = Instant::now();
    let mut seconds = PhaseSeconds::default();
    let parameters = &request.parameters;
    parameters.check_validation(!request.validation.is_empty())?;
    let start_features = start_features(request)?;
    let mut source = Source::open_all(&request.data, start_features.as_deref())?;
    check_size(&source)?;
    let features = source.names().to_vec();
    let mut validation = open_validation(request, &features, observer)?;
    source.warnings.iter().for_each(|warning| observer.note(warning));
    seconds.load = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let options = BinOptions::of(parameters);
    source.watch(observer.begin("binning", source.values_count(), "values"));
    let data = bin(request, &source, &options, &validation)?;
    source.watch(unwatched());
    seconds.bin = begun.elapsed().as_secs_f64();
    check_labels(&source, &data)?;
    check_fills(request, &data)?;

    let begun = Instant::now();
    let objective = objective(parameters);
    check_objective(&source, &data, parameters, objective.as_deref())?;
    let mut model = new_model(request, &source, &data, features, objective.as_deref())?;
    for (named, source) in request.validation.iter().zip(&validation) {
        model.data.extend(source.manifests().map(|manifest| used(&named.name, manifest)));
    }
    let mut start_trees = model.trees.len();
    let mut log = Vec::new();
    if let (true, Some(plan)) = (request.resume, &request.checkpoint) {
        match resume(&plan.location, &model, parameters)? {
            Some(resumed) => {
                observer.note(&format!("going on from round {} of {}", resumed.model.rounds, plan.location));
                start_trees = resumed.start_trees;
                let configuration = std::mem::take(&mut model.configuration);
                model = Model { configuration, ..resumed.model };
                log = resumed.log;
            }
            None => observer.note(&format!("{}: there is no checkpoint yet; starting anew", plan.location)),
        }
    }
    let scores = start_scores(request, &source, &model, &data.rows)?;
    let mut sets = Vec::new();
    for (named, source) in request.validation.iter().zip(&mut validation) {
        let step = format!("reading {}", named.name);
        source.watch(observer.begin(&step, source.values_count(), "values"));
        let start = |rows: &[Rows]| start_scores(request, source, &model, rows);
        let cuts = options.max_bin.is_some();
        sets.push(ValidationSet::load(&named.name, source, &data.binning, cuts, parameters, &start)?);
    }
    let gradients = Gradients::new(objective, &data.rows);
    let training = match gradients.are_residuals() {
        true => None,
        false => Some(Metrics::new(parameters, &data.rows)?),
    };
    let mut prepared =
        Prepared { data, scores, gradients, training, validation: sets, model, start_trees, log, seconds };
    prepared.replay(observer)?;
    prepared.seconds.load += begun.elapsed().as_secs_f64();
    Ok(prepared)
}

impl Prepared {
    /// Adds the trees of earlier rounds to all scores, in their order.
    fn replay(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let trees = std::mem::take(&mut self.model.trees);
        let count = trees.len() - self.start_trees;
        let meter = match count {
            0 => unwatched(),
            _ => observer.begin("adding the trees so far", count as u64, "trees"),
        };
        for (round, tree) in (1..).zip(&trees[self.start_trees..]) {
            if self.gradients.remember() {
                self.update_gradients(round);
            }
            let coded = CodedTree::of_model(tree, &self.data.binning).ok_or_else(|| {
                Error::usage("the checkpoint's trees do not fit the data", "start anew without --resume")
            })?;
            self.scores.add_routed(&coded, &self.data, None)?;
            for set in &mut self.validation {
                set.add(&coded, tree)?;
            }
            meter.advance(1);
        }
        self.model.trees = trees;
        Ok(())
    }

    /// Works out the gradients for the tree of a round.
    pub fn update_gradients(&mut self, round: u32) -> GradientSummary {
        self.gradients.update(&self.data.rows, &self.scores, round)
    }
}

fn start_features(request: &TrainRequest) -> Result<Option<Vec<String>>> {
    let Some(start) = &request.start else { return Ok(None) };
    if request.parameters.base_score != BaseScore::Auto {
        return Err(Error::usage(
            "base_score goes with a new model; a start model has its own",
            "leave base_score or --start-model out",
        ));
    }
    if start.ensemble != Ensemble::Boost {
        return Err(Error::usage(
            "the start model is a mean of trees, which further trees cannot be added to",
            "start from a boosted model",
        ));
    }
    Ok(Some(start.features.iter().map(|feature| feature.name.clone()).collect()))
}

fn open_validation(
    request: &TrainRequest,
    features: &[String],
    observer: &mut dyn Observer,
) -> Result<Vec<Source>> {
    let mut opened = Vec::new();
    for (place, named) in request.validation.iter().enumerate() {
        let taken =
            named.name == "train" || request.validation[..place].iter().any(|other| other.name == named.name);
        if taken {
            return Err(Error::usage(
                format_args!("two datasets are called {:?}", named.name),
                "name them apart: --valid NAME=DATASET",
            ));
        }
        let source = Source::open(&named.location, Some(features))?;
        source.warnings.iter().for_each(|warning| observer.note(warning));
        opened.push(source);
    }
    Ok(opened)
}

fn check_size(source: &Source) -> Result<()> {
    let rows = source.row_count();
    if rows > MOST_ROWS {
        return Err(Error::place(
            source.place(),
            format_args!("{rows} rows are more than one training can take ({MOST_ROWS})"),
            "train on a sample of the queries",
        ));
    }
    Ok(())
}

fn bin(
    request: &TrainRequest,
    source: &Source,
    options: &BinOptions,
    validation: &[Source],
) -> Result<BinnedData> {
    let hessians = request.parameters.objective != ObjectiveName::Squared;
    let needs = Needs::of(source, options, validation, hessians);
    if !needs.must_use_cache(request.memory_limit)? {
        return BinnedData::in_memory(source, options);
    }
    let limit = request.memory_limit.unwrap_or(u64::MAX);
    let key = CacheKey::new(&request.cache, source, options);
    if let Some((cache, binning)) = BinCache::find(&key)? {
        tracing::info!("binned data found in {}", request.cache.display());
        return Ok(BinnedData::of_cache(binning, read_rows(source)?, cache));
    }
    let mut writer = CacheWriter::create(&key, options)?;
    let budget = limit.saturating_sub(needs.in_cache);
    let (binning, rows) = BinnedData::in_cache(source, options, &mut writer, budget)?;
    Ok(BinnedData::of_cache(binning, rows, writer.finish()?))
}

fn check_labels(source: &Source, data: &BinnedData) -> Result<()> {
    let mut labels = data.rows.iter().flat_map(|rows| &rows.labels);
    let first = labels.next().copied().unwrap_or_default();
    if labels.all(|label| *label == first) {
        return Err(Error::place(
            source.place(),
            format_args!("every label is {first}: there is nothing to learn"),
            "train on rows with different labels",
        ));
    }
    if data.binning.layout.groups.is_empty() {
        return Err(Error::place(
            source.place(),
            "no feature varies: each has the same value in every row",
            "train on data with features that differ between rows",
        ));
    }
    Ok(())
}

/// A model says once what missing values are taken for, so old and new trees must agree on it.
fn check_fills(request: &TrainRequest, data: &BinnedData) -> Result<()> {
    let Some(start) = &request.start else { return Ok(()) };
    let differs = |(old, new): &(&ModelFeature, &FeatureBins)| old.fill != new.fill;
    match start.features.iter().zip(&data.binning.features).find(differs) {
        None => Ok(()),
        Some((old, new)) => {
            let shown = |fill: Option<f32>| fill.map_or("missing".to_owned(), |fill| fill.to_string());
            Err(Error::usage(
                format_args!(
                    "the start model takes missing values of {} for {}, this training for {}",
                    old.name,
                    shown(old.fill),
                    shown(new.fill)
                ),
                "set missing as the start model has it; a mean or median is that of its own training data",
            ))
        }
    }
}

/// Why the training cannot go on after a round.
pub fn diverged(round: u32) -> Error {
    Error::Untrainable(Box::new(Error::usage(
        format_args!("the scores are beyond all numbers after round {round}"),
        "lower learning_rate; 0.01 to 0.3 is usual",
    )))
}

/// Why the training cannot even begin.
pub fn unfit_start(request: &TrainRequest) -> Error {
    Error::place(
        request.place(),
        "labels, weights or the scores to start from are too large for gradients",
        "scale them down, or start from another base_score",
    )
}

/// Why no tree has a split.
pub fn no_split(request: &TrainRequest, data: &BinnedData) -> Error {
    let (rows, least) = (data.row_count(), request.parameters.min_data_in_leaf);
    let reason = if rows < 2 * least {
        format!(
            "there are {rows} rows, and min_data_in_leaf = {least} wants that many on both sides of a split"
        )
    } else {
        let gain = request.parameters.min_gain;
        format!("no cut has {least} rows on both sides and gains more than min_gain = {gain}")
    };
    Error::Untrainable(Box::new(Error::place(
        request.place(),
        format_args!("no split was possible: {reason}"),
        "lower min_data_in_leaf or min_gain, or train on more rows",
    )))
}

fn new_model(
    request: &TrainRequest,
    source: &Source,
    data: &BinnedData,
    features: Vec<String>,
    objective: Option<&dyn Objective>,
) -> Result<Model> {
    let (base_score, base_feature) = base_score(&request.parameters, source, data, &features, objective)?;
    let bins = &data.binning.features;
    let own = features.into_iter().zip(bins).map(|(name, bins)| ModelFeature { name, fill: bins.fill });
    let start = request.start.as_ref();
    Ok(Model {
        ensemble: Ensemble::Boost,
        base_score: start.map_or(base_score, |start| start.base_score),
        base_feature: start.map_or(base_feature, |start| start.base_feature),
        features: start.map_or_else(|| own.collect(), |start| start.features.clone()),
        trees: start.map_or_else(Vec::new, |start| start.trees.clone()),
        configuration: request.parameters.to_toml(),
        data: source.manifests().map(|manifest| used("train", manifest)).collect(),
        rounds: 0,
    })
}

/// The score that the first tree starts from, and the feature that is added to it.
fn base_score(
    parameters: &Parameters,
    source: &Source,
    data: &BinnedData,
    features: &[String],
    objective: Option<&dyn Objective>,
) -> Result<(f64, Option<u32>)> {
    let relevant = |label: f32| if label >= parameters.relevant_from { 1.0 } else { 0.0 };
    match &parameters.base_score {
        BaseScore::Constant(score) => Ok((*score, None)),
        BaseScore::Feature(name) => match features.iter().position(|feature| feature == name) {
            Some(place) => Ok((0.0, Some(place as u32))),
            None => Err(Error::place(
                source.place(),
                format_args!("base_score = feature:{name}: there is no such feature"),
                suggest::did_you_mean(
                    &suggest::nearest(name, features.iter().map(String::as_str)),
                    "planetree describe lists the features",
                ),
            )),
        },
        BaseScore::Auto => Ok(match objective {
            None => (mean_of(&data.rows, |label| label), None),
            Some(objective) => (objective.start(mean_of(&data.rows, relevant)), None),
        }),
    }
}

/// An objective that no query says anything to would grow trees of nothing.
fn check_objective(
    source: &Source,
    data: &BinnedData,
    parameters: &Parameters,
    objective: Option<&dyn Objective>,
) -> Result<()> {
    let Some(objective) = objective else { return Ok(()) };
    let mut queries = data.rows.iter().flat_map(|rows| rows.queries().map(|query| &rows.labels[query]));
    if !queries.any(|labels| objective.has_pull(labels)) {
        return Err(Error::place(
            source.place(),
            "no query has documents of different labels: there is no order to learn",
            "train on queries with different labels, or set objective=squared",
        ));
    }
    let mut labels = data.rows.iter().flat_map(|rows| &rows.labels);
    if parameters.objective == ObjectiveName::XeNdcg
        && let Some(label) = labels.clone().find(|label| **label < 0.0)
    {
        return Err(Error::place(
            source.place(),
            format_args!("the label {label} is negative, which objective xendcg has no use for"),
            "train on labels from 0, or set objective=listnet",
        ));
    }
    let asks_gains = !matches!(parameters.lambda_metric, Metric::Err(_) | Metric::Map(None));
    if parameters.objective == ObjectiveName::LambdaRank && asks_gains {
        /// More would not fit single precision.
        const MOST_GAIN: f64 = 1e30;
        let unfit = |label: f32| {
            let gain = parameters.label_gain.of(label);
            !parameters.label_gain.has(label) || !(0.0..=MOST_GAIN).contains(&gain)
        };
        if let Some(label) = labels.find(|label| unfit(**label)) {
            return Err(Error::place(
                source.place(),
                format_args!(
                    "the label {label} has no gain in label_gain = {}, or one below 0 or above 1e30",
                    parameters.label_gain
                ),
                "choose a gain that has a value for every label: linear, a table, an expression",
            ));
        }
    }
    if parameters.objective == ObjectiveName::Logistic {
        let mut labels = data.rows.iter().flat_map(|rows| &rows.labels);
        let first = labels.clone().next().is_some_and(|label| *label >= parameters.relevant_from);
        if labels.all(|label| (*label >= parameters.relevant_from) == first) {
            return Err(Error::place(
                source.place(),
                format_args!(
                    "{} label is at least relevant_from = {}: there is nothing to learn",
                    if first { "every" } else { "no" },
                    parameters.relevant_from
                ),
                "set relevant_from to a label between the lowest and the highest",
            ));
        }
    }
    if parameters.unbiased && data.rows.iter().any(|rows| rows.positions.is_none()) {
        return Err(Error::place(
            source.place(),
            "unbiased = true: there is no position of every row, from 1 to 10,000",
            "convert data with a position column that counts from 1, or set unbiased=false",
        ));
    }
    Ok(())
}

fn used(name: &str, manifest: &Manifest) -> DataUsed {
    DataUsed {
        name: name.to_owned(),
        fingerprint: manifest.content(),
        rows: manifest.rows,
        queries: manifest.queries,
    }
}

/// Scores before the first round: the base, or what the start model says.
fn start_scores(request: &TrainRequest, source: &Source, model: &Model, rows: &[Rows]) -> Result<Scores> {
    let bare;
    let start = match (&request.start, model.base_feature) {
        (None, None) => return Ok(Scores::constant(rows, model.base_score)),
        (None, Some(_)) => {
            bare = Model { trees: Vec::new(), ..model.clone() };
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
