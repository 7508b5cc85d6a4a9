//! Opens, checks and bins the data, and finds the checkpoint, for both boosting and forests.

use super::checkpoint::{Resumed, resume};
use super::leakage::Seen;
use super::memory::Needs;
use super::request::TrainRequest;
use super::{Observer, PhaseSeconds};
use crate::bins::{BinCache, BinOptions, BinnedData, CacheKey, CacheWriter, FeatureBins, read_rows};
use planetree_base::error::{Error, Result};
use planetree_base::progress::unwatched;
use planetree_data::dataset::{DatasetReader, KnownFeature, Manifest};
use planetree_data::source::LabelledData;
use planetree_model::model::{DatasetRecord, Model, ModelFeature};
use std::time::Instant;

/// Data ready for training.
pub struct OpenedData {
    /// The training data.
    pub source: LabelledData,
    /// The binned rows of the training data.
    pub data: BinnedData,
    /// Binning options.
    pub options: BinOptions,
    /// The validation sets, in the order of the request.
    pub validation: Vec<LabelledData>,
    /// Hashes of the training data, which validation sets are compared with.
    pub seen: Seen,
    /// Time spent on reading and binning so far.
    pub seconds: PhaseSeconds,
}

/// Opens, checks and bins the training data and opens the validation sets. `features` selects and orders the
/// features; `None` means all. `bytes_per_row` is the memory that the training run needs per row besides the codes.
pub fn open(
    request: &TrainRequest,
    features: Option<&[KnownFeature]>,
    bytes_per_row: u64,
    observer: &mut dyn Observer,
) -> Result<OpenedData> {
    let begun = Instant::now();
    let mut seconds = PhaseSeconds::default();
    request.parameters.check_validation(!request.validation.is_empty())?;
    request.check_best_for()?;
    let mut source = LabelledData::open_all(&request.data, features)?;
    source.set_label_map(request.parameters.label_map.clone());
    check_size(&source)?;
    let mut validation = open_validation(request, source.known(), observer)?;
    if !validation.is_empty() && request.backend.is_none() {
        source.hash_rows();
        validation.iter_mut().for_each(LabelledData::hash_rows);
    }
    source.warnings.iter().for_each(|warning| observer.note(warning));
    seconds.load = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let options = BinOptions::of(&request.parameters);
    source.watch(observer.begin("binning", source.values_count(), "values"));
    let mut data = bin(request, &source, &options, &validation, bytes_per_row)?;
    source.watch(unwatched());
    seconds.bin = begun.elapsed().as_secs_f64();
    check_labels(&source, &data)?;
    let seen = Seen::take(&mut source, &mut data.rows, !validation.is_empty());
    Ok(OpenedData { source, data, options, validation, seen, seconds })
}

impl OpenedData {
    /// Returns the features as a model records them.
    pub fn model_features(&self) -> Vec<ModelFeature> {
        let features = self.source.known().iter().zip(&self.data.binning.features);
        let feature = |(known, bins): (&KnownFeature, &FeatureBins)| ModelFeature {
            name: known.name.clone(),
            fill: bins.fill,
            words: known.words.clone().unwrap_or_default(),
        };
        features.map(feature).collect()
    }

    /// Returns the datasets that the model is trained and validated on, as the model records them.
    pub fn data_used(&self, request: &TrainRequest) -> Result<Vec<DatasetRecord>> {
        let train = self.source.readers().map(|reader| used("train", reader));
        let named = request.validation.iter().zip(&self.validation);
        let valid =
            named.flat_map(|(named, source)| source.readers().map(|reader| used(&named.name, reader)));
        train.chain(valid).collect()
    }
}

/// Reads the checkpoint if the training run is to be resumed and a checkpoint exists. It must match `model`, which is
/// the model before the first round.
pub fn find_checkpoint(
    request: &TrainRequest,
    model: &Model,
    observer: &mut dyn Observer,
) -> Result<Option<Resumed>> {
    let (true, Some(plan)) = (request.resume, &request.checkpoint) else { return Ok(None) };
    let resumed = resume(&plan.location, model, &request.parameters)?;
    observer.note(&match &resumed {
        Some(resumed) => format!("resuming from round {} of {}", resumed.model.rounds, plan.location),
        None => format!("{}: no checkpoint yet; starting from scratch", plan.location),
    });
    Ok(resumed)
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
        source.set_label_map(request.parameters.label_map.clone());
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
    source: &LabelledData,
    options: &BinOptions,
    validation: &[LabelledData],
    bytes_per_row: u64,
) -> Result<BinnedData> {
    if let Some(pairs) = request.parameters.forest().and_then(|forest| forest.pairs_per_document) {
        check_pairs(request, source, pairs)?;
        return BinnedData::of_pairs(source, options, pairs, request.parameters.seed);
    }
    if let Some(backend) = &request.backend {
        return backend.bin(request, source, options);
    }
    let needs = Needs::of(source, options, validation, bytes_per_row);
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

/// Returns an error if there are too many document pairs, or more than fit in memory.
fn check_pairs(request: &TrainRequest, source: &LabelledData, pairs: u32) -> Result<()> {
    let remedy = "lower pairs_per_document, or train on fewer queries";
    let most = source.row_count() * u64::from(pairs);
    if most > MOST_ROWS {
        let problem = format!("pairs_per_document = {pairs}: up to {most} pairs, the maximum is {MOST_ROWS}");
        return Err(Error::place(source.place(), problem, remedy));
    }
    // Each pair needs two codes per feature, one stored by row and one by column, and the memory that a tree needs
    // per row.
    let bytes = most * (2 * source.features() as u64 + 64);
    match request.memory_limit {
        Some(limit) if bytes > limit => Err(Error::usage(
            format_args!(
                "--memory-limit is too low: the document pairs need up to {} MiB and must fit in memory",
                bytes >> 20
            ),
            "raise --memory-limit, lower pairs_per_document, or train on fewer queries",
        )),
        _ => Ok(()),
    }
}

fn check_labels(source: &LabelledData, data: &BinnedData) -> Result<()> {
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
            "all features are constant",
            "train on data with features that differ between rows",
        ));
    }
    Ok(())
}

/// Returns the error for a checkpoint whose trees do not split between the bins of this training run.
pub fn misfit() -> Error {
    Error::usage("the checkpoint's trees do not fit the data", "start over without --resume")
}

/// Returns the error for a training run that could not split even one node.
pub fn no_split(request: &TrainRequest, data: &BinnedData) -> Error {
    let (rows, least) = (data.row_count(), request.parameters.tree().min_data_in_leaf);
    let to_split = request.parameters.tree().min_data_to_split;
    let reason = if rows < to_split {
        format!("there are {rows} rows, but min_data_to_split = {to_split}")
    } else if rows < 2 * least {
        format!(
            "there are {rows} rows, but min_data_in_leaf = {least} needs that many on both sides of a split"
        )
    } else {
        let gain = request.parameters.tree().min_gain;
        format!(
            "no candidate split has at least {least} rows on both sides and a gain above min_gain = {gain}"
        )
    };
    Error::Untrainable(Box::new(Error::place(
        request.place(),
        format_args!("no split was possible: {reason}"),
        "lower min_data_in_leaf, min_data_to_split or min_gain, or train on more rows",
    )))
}

/// Describes a dataset as a model records it.
pub fn used(name: &str, reader: &DatasetReader) -> Result<DatasetRecord> {
    let Manifest { rows, queries, .. } = *reader.manifest();
    Ok(DatasetRecord { name: name.to_owned(), fingerprint: reader.fingerprint()?, rows, queries })
}
