//! Opens, checks and bins the data.

use super::leakage::{Seen, warn_of_leakage};
use super::memory::{CodeStorage, DataSize, LearnerBytes, Needs, program_bytes};
use super::request::TrainRequest;
use super::validation::ValidationData;
use super::{Observer, PhaseSeconds, Silent};
use crate::bins::{BinCache, BinOptions, BinnedData, CacheKey, CacheWriter, FeatureBins, read_rows};
use crate::config::{ObjectiveParameters, Parameters, TreeParameters};
use planetree_base::error::{Error, Result};
use planetree_base::progress::unwatched;
use planetree_data::dataset::{DatasetReader, KnownFeature, Manifest};
use planetree_data::source::LabelledData;
use planetree_model::model::{DatasetRecord, ModelFeature};
use std::sync::Arc;
use std::time::Instant;

/// The datasets of a training run.
pub(crate) struct Sources {
    /// The training data.
    pub source: LabelledData,
    /// The validation sets, in the order of the request.
    pub validation: Vec<LabelledData>,
    /// Hashes of the training data, which validation sets are compared with.
    seen: Option<Seen>,
    /// Whether the user has been told what validation sets have in common with the training data.
    is_compared: bool,
    /// Time spent on reading and binning so far.
    pub seconds: PhaseSeconds,
}

/// What the binned data of a stage depend on. Stages with the same key share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BinKey {
    /// Binning options.
    pub options: BinOptions,
    /// Number of pairs per document and the seed of their sample, if the rows are pairs of documents.
    pub pairs: Option<(u32, u64)>,
    /// Whether the learner uses the values of features in place of codes, as linear models do.
    needs_values: bool,
}

impl BinKey {
    /// Returns the key of a stage.
    pub(crate) fn of(parameters: &Parameters) -> Self {
        let pairs = parameters.forest().and_then(|forest| forest.pairs_per_document);
        BinKey {
            options: BinOptions::of(parameters),
            pairs: pairs.map(|pairs| (pairs, parameters.seed)),
            needs_values: parameters.tree().is_none(),
        }
    }
}

/// Opens the training data and the validation sets. `features` selects and orders the features; `None` means all.
pub(crate) fn open_sources(
    request: &TrainRequest,
    features: Option<&[KnownFeature]>,
    observer: &mut dyn Observer,
) -> Result<Sources> {
    let begun = Instant::now();
    request.plan.check_validation(!request.validation.is_empty())?;
    request.check_best_for()?;
    // A start model has features already, which all datasets must have.
    let common = match (features, request.common_features) {
        (None, true) => Some(LabelledData::common_features(&request.data)?),
        _ => None,
    };
    let mut source = LabelledData::open_all(&request.data, features.or(common.as_deref()))?;
    source.set_label_map(request.plan.first().label_map.clone());
    check_size(&source)?;
    let mut validation = open_validation(request, source.known(), observer)?;
    if !validation.is_empty() && request.backend.is_none() {
        source.hash_rows();
        validation.iter_mut().for_each(LabelledData::hash_rows);
    }
    source.warnings.iter().for_each(|warning| observer.note(warning));
    let seconds = PhaseSeconds { load: begun.elapsed().as_secs_f64(), ..PhaseSeconds::default() };
    Ok(Sources { source, validation, seen: None, is_compared: false, seconds })
}

impl Sources {
    /// Bins the training data for a stage. `learner` is the memory that the training run needs besides the codes.
    pub(crate) fn bin(
        &mut self,
        request: &TrainRequest,
        parameters: &Parameters,
        learner: LearnerBytes,
        observer: &mut dyn Observer,
    ) -> Result<BinnedData> {
        let begun = Instant::now();
        self.source.watch(observer.begin("binning", self.source.values_count(), "values"));
        let mut data = bin(request, parameters, self, learner)?;
        self.source.watch(unwatched());
        self.seconds.bin += begun.elapsed().as_secs_f64();
        check_labels(&self.source, &data)?;
        self.seen = Some(Seen::take(&mut self.source, &mut data.rows, !self.validation.is_empty()));
        Ok(data)
    }

    /// Reads the validation sets for a stage, and compares them with the training data.
    pub(crate) fn load_validation(
        &mut self,
        request: &TrainRequest,
        parameters: &Parameters,
        data: &BinnedData,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Arc<ValidationData>>> {
        let begun = Instant::now();
        let key = BinKey::of(parameters);
        let cuts = key.options.max_bin.is_some() && key.pairs.is_none() && !key.needs_values;
        let label = |label: f32| request.plan.target.label(label);
        let mut sets = Vec::new();
        for (named, source) in request.validation.iter().zip(&mut self.validation) {
            let step = format!("reading {}", named.name);
            source.watch(observer.begin(&step, source.values_count(), "values"));
            sets.push(ValidationData::load(&named.name, source, &data.binning, cuts, parameters, label)?);
        }
        let seen = self.seen.take().unwrap_or_default();
        let mut silent = Silent;
        let observer = if self.is_compared { &mut silent } else { observer };
        warn_of_leakage(seen, &mut sets, &mut self.validation, observer);
        self.is_compared = true;
        self.seconds.load += begun.elapsed().as_secs_f64();
        Ok(sets.into_iter().map(Arc::new).collect())
    }

    /// Returns the features as a model records them, with the fill values of the bins.
    pub(crate) fn model_features(&self, data: &BinnedData) -> Vec<ModelFeature> {
        let features = self.source.known().iter().zip(&data.binning.features);
        let feature = |(known, bins): (&KnownFeature, &FeatureBins)| ModelFeature {
            name: known.name.clone(),
            fill: bins.fill,
            words: known.words.clone().unwrap_or_default(),
        };
        features.map(feature).collect()
    }

    /// Returns the datasets that the model is trained and validated on, as the model records them.
    pub(crate) fn data_used(&self, request: &TrainRequest) -> Result<Vec<DatasetRecord>> {
        let train = self.source.readers().map(|reader| used("train", reader));
        let named = request.validation.iter().zip(&self.validation);
        let valid =
            named.flat_map(|(named, source)| source.readers().map(|reader| used(&named.name, reader)));
        train.chain(valid).collect()
    }
}

/// Maximum number of rows. With more, the sums in histogram cells could overflow.
const MOST_ROWS: u64 = (1 << 28) - 1;

fn open_validation(
    request: &TrainRequest,
    features: &[KnownFeature],
    observer: &mut dyn Observer,
) -> Result<Vec<LabelledData>> {
    let mut opened = Vec::new();
    for (place, named) in request.validation.iter().enumerate() {
        let taken =
            named.name == "train" || request.validation[..place].iter().any(|other| other.name == named.name);
        if taken {
            return Err(Error::usage(
                format_args!("two datasets are called {:?}", named.name),
                "give them different names: --valid NAME=DATASET",
            ));
        }
        let mut source = LabelledData::open(&named.location, Some(features))?;
        source.set_label_map(request.plan.first().label_map.clone());
        source.warnings.iter().for_each(|warning| observer.note(warning));
        opened.push(source);
    }
    Ok(opened)
}

fn check_size(source: &LabelledData) -> Result<()> {
    let rows = source.row_count();
    if rows > MOST_ROWS {
        return Err(Error::place(
            source.place(),
            format_args!("too many rows: {rows}, the maximum is {MOST_ROWS}"),
            "train on a sample of the queries",
        ));
    }
    Ok(())
}

fn bin(
    request: &TrainRequest,
    parameters: &Parameters,
    sources: &Sources,
    learner: LearnerBytes,
) -> Result<BinnedData> {
    let Sources { source, validation, .. } = sources;
    let BinKey { options, pairs, needs_values } = &BinKey::of(parameters);
    if let Some((pairs, seed)) = *pairs {
        let spare = check_pairs(request, source, pairs, learner)?;
        return Ok(BinnedData::of_pairs(source, options, pairs, seed)?.with_spare(spare));
    }
    if let Some(backend) = &request.backend {
        return backend.bin(request, parameters, source);
    }
    let needs = Needs::of(source, (options, *needs_values), validation, learner);
    let compact = request.compact && !needs_values && options.may_be_compact();
    let limit = request.memory_limit.unwrap_or(u64::MAX);
    let Some(storage) = needs.storage(limit, compact) else {
        return Err(refusal(&needs, limit, compact, (source, options))?);
    };
    match storage {
        CodeStorage::Twice if *needs_values => return BinnedData::without_codes(source, options),
        CodeStorage::Twice => {
            let spare = limit.saturating_sub(needs.in_memory);
            return Ok(BinnedData::in_memory(source, options)?.with_spare(spare));
        }
        CodeStorage::Once => {
            let spare = limit.saturating_sub(needs.compact);
            return Ok(BinnedData::in_memory_compact(source, options)?.with_spare(spare));
        }
        CodeStorage::Cache => {}
    }
    let spare = limit.saturating_sub(needs.in_cache);
    let check_bins = |bytes: u64| needs.check_bins(limit, bytes);
    let key = CacheKey::new(&request.cache, source, options);
    if let Some((cache, binning)) = BinCache::find(&key)? {
        check_bins(binning.features.iter().map(FeatureBins::bytes).sum())?;
        tracing::info!("binned data found in {}", request.cache.display());
        return Ok(BinnedData::of_cache(binning, read_rows(source)?, cache).with_spare(spare));
    }
    let mut writer = CacheWriter::create(&key, options)?;
    let (binning, rows) = BinnedData::in_cache(source, options, &mut writer, spare, &check_bins)?;
    Ok(BinnedData::of_cache(binning, rows, writer.finish()?).with_spare(spare))
}

/// Returns the error for a memory limit that is too small. If each distinct value has its own bin, the values are counted
/// first, so that a training with the limit that the error names succeeds.
fn refusal(
    needs: &Needs,
    limit: u64,
    compact: bool,
    (source, options): (&LabelledData, &BinOptions),
) -> Result<Error> {
    let bin_bytes = match needs.counting_budget(limit) {
        Some(budget) => Some(BinnedData::bin_bytes(source, options, budget)?),
        None => None,
    };
    Ok(needs.refusal(limit, compact, bin_bytes))
}

/// Returns an error if there are too many document pairs, or more than fit in memory, and otherwise the bytes that the memory
/// limit leaves.
fn check_pairs(
    request: &TrainRequest,
    source: &LabelledData,
    pairs: u32,
    learner: LearnerBytes,
) -> Result<u64> {
    let remedy = "lower pairs_per_document, or train on fewer queries";
    let most = source.row_count() * u64::from(pairs);
    if most > MOST_ROWS {
        let problem = format!("pairs_per_document = {pairs}: up to {most} pairs, the maximum is {MOST_ROWS}");
        return Err(Error::place(source.place(), problem, remedy));
    }
    // Each pair needs two codes per feature, one stored by row and one by column, and the memory that a tree needs
    // per row.
    let size = DataSize::of(source);
    let bytes = (program_bytes(size.threads, size.features) + most * (2 * size.features + 64))
        .saturating_add(learner.working);
    match request.memory_limit {
        Some(limit) if bytes > limit => Err(Error::usage(
            format_args!(
                "--memory-limit is too low: all document pairs must fit in memory, and training needs about {} MiB",
                bytes.div_ceil(1 << 20)
            ),
            "raise --memory-limit, lower pairs_per_document, or train on fewer queries",
        )),
        limit => Ok(limit.map_or(u64::MAX, |limit| limit - bytes)),
    }
}

/// Returns an error if all labels are equal or all features are constant.
pub fn check_labels(source: &LabelledData, data: &BinnedData) -> Result<()> {
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
        let (problem, remedy) = match data.binning.by_query {
            true => (
                "all features are constant within queries",
                "train on features that differ between the documents of a query; regression may set normalise_features=none",
            ),
            false => ("all features are constant", "train on data with features that differ between rows"),
        };
        return Err(Error::place(source.place(), problem, remedy));
    }
    Ok(())
}

/// Returns the error for a checkpoint whose trees do not split between the bins of this training run.
pub(crate) fn misfit() -> Error {
    Error::usage("the checkpoint's trees do not fit the data", "start over without --resume")
}

/// Returns the error for a training run that could not split even one node.
pub(crate) fn no_split(request: &TrainRequest, tree: &TreeParameters, data: &BinnedData) -> Error {
    let (rows, least) = (data.row_count(), tree.min_data_in_leaf);
    let to_split = tree.min_data_to_split;
    let is_weightless = |weights: &Vec<f32>| weights.iter().all(|weight| *weight == 0.0);
    if data.rows.iter().all(|rows| rows.weights.as_ref().is_some_and(is_weightless)) {
        return Error::Untrainable(Box::new(Error::place(
            request.place(),
            "no split was possible: the weights of all rows are 0",
            "convert the data again with positive weights, or without a weight column",
        )));
    }
    let reason = if rows < to_split {
        format!("there are {rows} rows, but min_data_to_split = {to_split}")
    } else if rows < least.saturating_mul(2) {
        format!(
            "there are {rows} rows, but min_data_in_leaf = {least} needs that many on both sides of a split"
        )
    } else {
        let gain = tree.min_gain;
        let keeps = if tree.monotone.are_none() { "" } else { " and keeps monotone_constraints" };
        format!(
            "no candidate split has at least {least} rows on both sides and a gain above min_gain = {gain}{keeps}"
        )
    };
    let has_rows = rows >= to_split && rows >= least.saturating_mul(2);
    let more = match has_rows && request.plan.stages.iter().any(compares_documents) {
        true => "features that differ between the documents of a query",
        false => "more rows",
    };
    Error::Untrainable(Box::new(Error::place(
        request.place(),
        format_args!("no split was possible: {reason}"),
        format_args!("lower min_data_in_leaf, min_data_to_split or min_gain, or train on {more}"),
    )))
}

/// Returns whether the objective depends only on the order of the documents of a query.
fn compares_documents(parameters: &Parameters) -> bool {
    use ObjectiveParameters::{Logistic, SoftmaxClasses, Squared};
    let is_pointwise =
        |objective: &ObjectiveParameters| matches!(objective, Squared | Logistic { .. } | SoftmaxClasses);
    parameters.boost().is_some_and(|boost| !is_pointwise(&boost.objective))
}

/// Describes a dataset as a model records it.
pub(super) fn used(name: &str, reader: &DatasetReader) -> Result<DatasetRecord> {
    let Manifest { rows, queries, .. } = *reader.manifest();
    Ok(DatasetRecord { name: name.to_owned(), fingerprint: reader.fingerprint()?, rows, queries })
}
