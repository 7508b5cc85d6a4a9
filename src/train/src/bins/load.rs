//! Bins a dataset: summarises every feature, chooses its bins, and encodes its values as codes (bin numbers).

use super::binning::{BinOptions, Binning};
use super::cache::{BinCache, CacheWriter};
use super::cuts::FeatureBins;
use super::partition::{CodeColumn, Codes, assemble};
use super::summary::{RowSample, SAMPLED_ROWS, ValueDistribution};
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_data::source::{LabelledData, LabelledRows, OpenPartition};
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// Number of values of a batch of features that a thread decodes at a time.
const DECODED_AT_A_TIME: u64 = 1 << 21;

/// What is computed from the values of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Bins and codes, and hashes of rows if they are enabled.
    Codes,
    /// Bins, and hashes of rows if they are enabled.
    HashedBins,
    /// Bins.
    Bins,
}

/// A binned dataset: the codes of all features, with labels and queries.
pub struct BinnedData {
    /// Bins and layout.
    pub binning: Arc<Binning>,
    /// Labels and queries of each partition.
    pub rows: Vec<LabelledRows>,
    store: Arc<Store>,
    /// Bytes that the memory limit leaves besides what training needs at least.
    spare: u64,
}

enum Store {
    Memory(Vec<Codes>),
    Cache(BinCache),
    /// There are no codes: training uses the values of features in their place.
    Unused,
    /// The codes are held by other processes, those of a backend such as a cluster.
    Remote,
}

impl BinnedData {
    /// Bins a dataset in memory. Each feature is summarised and encoded in one step, so its values are decoded only
    /// once.
    pub fn in_memory(source: &LabelledData, options: &BinOptions) -> Result<Self> {
        source.expect_passes(2); // one to read, one to encode
        Self::summarised(source, options, Wanted::Codes)
    }

    /// Bins a dataset in memory and stores each code once, which takes half the memory. Values are decoded twice, so
    /// that columns of codes are never held for all rows.
    pub fn in_memory_compact(source: &LabelledData, options: &BinOptions) -> Result<Self> {
        source.expect_passes(4);
        let bins = Self::summarised(source, options, Wanted::Bins)?;
        let binning = Arc::unwrap_or_clone(bins.binning).compact();
        Self::encoded(source, &Arc::new(binning))
    }

    /// Chooses the bins of a dataset without encoding its values, for learners that use the values themselves: bins tell
    /// which features are constant, and what replaces missing values.
    pub(crate) fn without_codes(source: &LabelledData, options: &BinOptions) -> Result<Self> {
        source.expect_passes(2);
        Self::summarised(source, options, Wanted::HashedBins)
    }

    fn summarised(source: &LabelledData, options: &BinOptions, wanted: Wanted) -> Result<Self> {
        let (groups, rows) = open_all(source)?;
        let keep = options.keep(source.row_count());
        let kept = kept_places(keep, &rows);
        let at_a_time = Self::decoded_features(source.features() as u64, source.row_count()) as usize;
        let starts: Vec<usize> = (0..source.features()).step_by(at_a_time).collect();
        let coded: Vec<Vec<(FeatureBins, Vec<CodeColumn>)>> = starts
            .into_par_iter()
            .map(|start| {
                interrupt::check()?;
                let features = start..(start + at_a_time).min(source.features());
                let mut values: Vec<_> = Vec::with_capacity(groups.len());
                for group in &groups {
                    values.push(source.values_of(group, features.clone())?.into_iter());
                }
                let code = |feature| {
                    let values: Vec<Vec<f32>> = values.iter_mut().filter_map(Iterator::next).collect();
                    let options = options.of_feature(source, feature);
                    let normalised = options.normalised(&values, &rows);
                    let binned = normalised.as_ref().unwrap_or(&values);
                    let (bins, codes) = match wanted {
                        Wanted::Codes => code_feature(binned, &kept, &options),
                        Wanted::Bins | Wanted::HashedBins => (bins_of(binned, &kept, &options), Vec::new()),
                    };
                    if !bins.is_constant() && wanted != Wanted::Bins {
                        groups
                            .iter()
                            .zip(&values)
                            .for_each(|(group, values)| source.hash(group, feature, values));
                    }
                    (bins, codes)
                };
                Ok(features.clone().map(code).collect())
            })
            .collect::<Result<_>>()?;
        drop(groups);
        let mut features = Vec::with_capacity(source.features());
        let mut by_partition: Vec<Vec<Option<CodeColumn>>> =
            rows.iter().map(|_| Vec::with_capacity(source.features())).collect();
        for (bins, codes) in coded.into_iter().flatten() {
            features.push(bins);
            let mut codes = codes.into_iter();
            by_partition.iter_mut().for_each(|columns| columns.push(codes.next()));
        }
        let binning = options.binning(features);
        if wanted != Wanted::Codes {
            return Ok(BinnedData::new(binning, rows, Store::Unused));
        }
        let partitions = by_partition.into_par_iter().zip(&rows);
        let partitions =
            partitions.map(|(columns, rows)| binning.assemble_codes(columns, rows.len())).collect();
        Ok(BinnedData::of_memory(binning, rows, partitions))
    }

    /// Returns the number of features that a thread decodes at a time when a dataset is binned in memory.
    pub(crate) fn decoded_features(features: u64, rows: u64) -> u64 {
        let most = (DECODED_AT_A_TIME / rows.max(1)).clamp(1, 16);
        (features / (8 * rayon::current_num_threads() as u64)).clamp(1, most)
    }

    /// Encodes a dataset in memory with the given bins.
    pub fn by_bins(source: &LabelledData, binning: &Arc<Binning>) -> Result<Self> {
        source.expect_passes(2);
        Self::encoded(source, binning)
    }

    fn encoded(source: &LabelledData, binning: &Arc<Binning>) -> Result<Self> {
        let (groups, rows) = open_all(source)?;
        let partitions = groups.par_iter().zip(&rows);
        let partitions = partitions.map(|(group, rows)| encode_partition(source, group, rows, binning));
        let partitions = partitions.collect::<Result<_>>()?;
        let store = Arc::new(Store::Memory(partitions));
        Ok(BinnedData { binning: binning.clone(), rows, store, spare: u64::MAX })
    }

    /// Bins a dataset into a cache on disk, using about `budget` bytes of memory. Features are summarised in batches
    /// over all partitions; then the partitions are encoded one at a time. `check_bins` gets the bytes of the bins of all
    /// features before anything is encoded, and may fail. Bins that exceed the budget are counted, but not kept.
    pub fn in_cache(
        source: &LabelledData,
        options: &BinOptions,
        cache: &mut CacheWriter,
        budget: u64,
        check_bins: &dyn Fn(u64) -> Result<()>,
    ) -> Result<(Binning, Vec<LabelledRows>)> {
        let mut features = Vec::with_capacity(source.features());
        let mut bin_bytes = 0;
        // Two further passes read the data again, to encode them.
        let mut rows = Self::each_feature(source, options, budget, 2, &mut |bins| {
            bin_bytes += bins.bytes();
            if check_bins(bin_bytes).is_ok() {
                features.push(bins);
            }
        })?;
        check_bins(bin_bytes)?;
        number_queries(&mut rows);
        let binning = options.binning(features);
        cache.begin(&binning)?;
        for (partition, rows) in rows.iter().enumerate() {
            interrupt::check()?;
            let group = source.open_partition(partition)?;
            cache.write(encode_partition(source, &group, rows, &binning)?.batch())?;
        }
        Ok((binning, rows))
    }

    /// Returns the bytes of the bins of all features, which are chosen with about `budget` bytes of memory and not kept.
    pub(crate) fn bin_bytes(source: &LabelledData, options: &BinOptions, budget: u64) -> Result<u64> {
        let mut bytes = 0;
        Self::each_feature(source, options, budget, 0, &mut |bins| bytes += bins.bytes())?;
        Ok(bytes)
    }

    /// Chooses the bins of all features in order, in batches of features that need about `budget` bytes of memory. Returns
    /// labels and queries. `more_passes` is the number of passes over the data that follow.
    fn each_feature(
        source: &LabelledData,
        options: &BinOptions,
        budget: u64,
        more_passes: u64,
        take: &mut dyn FnMut(FeatureBins),
    ) -> Result<Vec<LabelledRows>> {
        let all_rows = source.row_count();
        let keep = options.keep(all_rows);
        let kept_rows = if keep == RowSample::ALL { all_rows } else { all_rows.min(SAMPLED_ROWS) };
        // A value count takes 8 bytes, and merging holds two copies of it.
        let at_a_time = (budget / 4 / (kept_rows * 16)).clamp(1, source.features() as u64) as usize;
        // The progress display counts one pass over the data for each batch of features that is read, and one for
        // summarising them.
        source.expect_passes(source.features().div_ceil(at_a_time) as u64 + 1 + more_passes);
        let mut rows: Vec<LabelledRows> = Vec::new();
        for start in (0..source.features()).step_by(at_a_time) {
            let end = (start + at_a_time).min(source.features());
            let summaries: Vec<Mutex<ValueDistribution>> = (start..end).map(|_| Mutex::default()).collect();
            for partition in 0..source.partitions() {
                interrupt::check()?;
                let group = source.open_partition(partition)?;
                if start == 0 {
                    rows.push(source.rows(partition, &group)?);
                }
                let kept = keep.places(source.first_row(partition), group.rows());
                let of_partition = &rows[partition];
                (start..end).into_par_iter().try_for_each(|feature| {
                    let mut values = source.values(&group, feature)?;
                    options.of_feature(source, feature).normalise(&mut values, of_partition);
                    let summary = ValueDistribution::of(&values, kept.as_deref());
                    summaries[feature - start].lock().expect("no holder of this lock panics").merge(summary);
                    Ok(())
                })?;
            }
            for (feature, summary) in (start..).zip(summaries) {
                let summary = summary.into_inner().expect("no holder of this lock panics");
                take(options.of_feature(source, feature).bins(&summary));
            }
        }
        Ok(rows)
    }

    /// Creates a dataset whose codes are in a cache.
    pub fn of_cache(binning: Binning, rows: Vec<LabelledRows>, cache: BinCache) -> Self {
        BinnedData::new(binning, rows, Store::Cache(cache))
    }

    /// Creates a dataset whose codes are held by other processes, those of a backend such as a cluster.
    pub fn remote(binning: Binning, rows: Vec<LabelledRows>) -> Self {
        BinnedData::new(binning, rows, Store::Remote)
    }

    /// Creates a dataset whose codes are in memory.
    pub(super) fn of_memory(binning: Binning, rows: Vec<LabelledRows>, partitions: Vec<Codes>) -> Self {
        BinnedData::new(binning, rows, Store::Memory(partitions))
    }

    fn new(binning: Binning, rows: Vec<LabelledRows>, store: Store) -> Self {
        BinnedData { binning: Arc::new(binning), rows, store: Arc::new(store), spare: u64::MAX }
    }

    /// Sets the bytes that the memory limit leaves besides what training needs at least.
    pub(crate) fn with_spare(self, spare: u64) -> Self {
        BinnedData { spare, ..self }
    }

    /// Returns the bytes that the memory limit leaves besides what training needs at least.
    pub(crate) fn spare(&self) -> u64 {
        self.spare
    }

    /// Returns the same rows with other labels, each computed from the label of the row. The codes are shared.
    pub fn with_labels(&self, label: impl Fn(f32) -> f32) -> Self {
        let relabelled = |rows: &LabelledRows| LabelledRows {
            labels: rows.labels.iter().map(|old| label(*old)).collect(),
            ..rows.clone()
        };
        BinnedData {
            binning: self.binning.clone(),
            rows: self.rows.iter().map(relabelled).collect(),
            store: self.store.clone(),
            spare: self.spare,
        }
    }

    /// Returns columns of a partition. They are in memory, or memory-mapped as long as the result lives.
    pub fn codes(&self, partition: usize, columns: &[usize]) -> Result<Codes> {
        match &*self.store {
            Store::Memory(partitions) => Ok(partitions[partition].clone()),
            Store::Cache(cache) => cache.codes(partition, columns),
            Store::Unused => Err(Error::bug("bins", "codes were not computed for this learner")),
            Store::Remote => Err(remote()),
        }
    }

    /// Returns all columns of a partition.
    pub fn all_codes(&self, partition: usize) -> Result<Codes> {
        let layout = &self.binning.layout;
        self.codes(partition, &(0..layout.groups.len() + layout.columns.len()).collect::<Vec<_>>())
    }

    /// Returns whether all codes that training needs are in memory.
    pub fn is_in_memory(&self) -> bool {
        matches!(*self.store, Store::Memory(_) | Store::Unused)
    }

    /// Returns the number of partitions.
    pub fn partitions(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of rows in all partitions.
    pub fn row_count(&self) -> u64 {
        self.rows.iter().map(|rows| rows.len() as u64).sum()
    }
}

/// Chooses the bins of a feature and encodes its values. Returns one column of codes per partition, or no columns if
/// the feature is constant.
pub(super) fn code_feature(
    values: &[Vec<f32>],
    kept: &[Option<Vec<u32>>],
    options: &BinOptions,
) -> (FeatureBins, Vec<CodeColumn>) {
    let bins = bins_of(values, kept, options);
    let constant = bins.is_constant();
    let codes = values.iter().filter(|_| !constant).map(|values| CodeColumn::encode(&bins, values)).collect();
    (bins, codes)
}

/// Chooses the bins of a feature.
fn bins_of(values: &[Vec<f32>], kept: &[Option<Vec<u32>>], options: &BinOptions) -> FeatureBins {
    let summaries =
        values.iter().zip(kept).map(|(values, kept)| ValueDistribution::of(values, kept.as_deref()));
    options.bins(&ValueDistribution::merge_all(summaries.collect()))
}

/// Returns the error for training that must read single rows although a backend holds them.
fn remote() -> Error {
    Error::usage(
        "training with these parameters reads single rows, which a cluster does not support",
        "train without --cluster",
    )
}

pub(super) fn encode_partition(
    source: &LabelledData,
    group: &OpenPartition,
    rows: &LabelledRows,
    binning: &Binning,
) -> Result<Codes> {
    let groups = binning.layout.groups.par_iter();
    let arrays = groups.map(|members| {
        let mut columns = Vec::with_capacity(members.features.len());
        for feature in &members.features {
            let mut values = source.values(group, *feature as usize)?;
            source.hash(group, *feature as usize, &values);
            binning.normalise(source, *feature as usize, &mut values, rows);
            columns.push(CodeColumn::encode(&binning.features[*feature as usize], &values));
        }
        let mut columns = columns.into_iter();
        let take = |_| columns.next().expect("there is one column per feature");
        Ok(assemble(members, group.rows(), binning, take))
    });
    Ok(binning.batch(arrays.collect::<Result<_>>()?, group.rows()))
}

pub(super) fn open_all(source: &LabelledData) -> Result<(Vec<OpenPartition>, Vec<LabelledRows>)> {
    let opened = (0..source.partitions()).into_par_iter().map(|partition| {
        let group = source.open_partition_on_disk(partition)?;
        let rows = source.rows(partition, &group)?;
        Ok((group, rows))
    });
    let (groups, mut rows): (Vec<OpenPartition>, Vec<LabelledRows>) =
        opened.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    number_queries(&mut rows);
    Ok((groups, rows))
}

/// Reads labels and queries only. This is sufficient if the codes are cached.
pub fn read_rows(source: &LabelledData) -> Result<Vec<LabelledRows>> {
    source.expect_passes(1);
    let read = |partition| source.rows(partition, &source.open_partition(partition)?);
    let mut rows = (0..source.partitions()).map(read).collect::<Result<Vec<_>>>()?;
    number_queries(&mut rows);
    Ok(rows)
}

fn number_queries(rows: &mut [LabelledRows]) {
    let mut before = 0;
    for rows in rows {
        rows.first_query = before;
        before += rows.query_bounds.len() as u64 - 1;
    }
}

pub(super) fn kept_places(keep: RowSample, rows: &[LabelledRows]) -> Vec<Option<Vec<u32>>> {
    rows.par_iter().map(|rows| keep.places(rows.first, rows.len())).collect()
}

#[doc(hidden)]
impl BinnedData {
    /// Creates a dataset for tests from columns of values, in which NaN means missing. Partitions have `partition_rows`
    /// rows.
    pub fn of_values(
        columns: &[Vec<f32>],
        labels: &[f32],
        partition_rows: usize,
        options: &BinOptions,
    ) -> Self {
        let summaries = columns.iter().map(|column| ValueDistribution::of(column, None));
        let features: Vec<FeatureBins> = summaries.map(|summary| options.bins(&summary)).collect();
        let binning = options.binning(features);
        Self::of_binned_values(binning, columns, labels, partition_rows)
    }

    /// Like [`BinnedData::of_values`], but with given bins.
    pub fn of_binned_values(
        binning: Binning,
        columns: &[Vec<f32>],
        labels: &[f32],
        partition_rows: usize,
    ) -> Self {
        let mut rows = Vec::new();
        let mut partitions = Vec::new();
        for start in (0..labels.len()).step_by(partition_rows) {
            let range = start..(start + partition_rows).min(labels.len());
            let encode = |(column, bins): (&Vec<f32>, &FeatureBins)| {
                Some(CodeColumn::encode(bins, &column[range.clone()]))
            };
            let codes = columns.iter().zip(&binning.features).map(encode).collect();
            partitions.push(binning.assemble_codes(codes, range.len()));
            rows.push(LabelledRows {
                first: start as u64,
                first_query: start as u64,
                labels: labels[range.clone()].to_vec(),
                weights: None,
                positions: None,
                query_bounds: (0..=range.len() as u32).collect(),
                query_keys: Vec::new(),
            });
        }
        BinnedData::of_memory(binning, rows, partitions)
    }
}

/// Returns test columns with many zeros, few or many distinct values, and missing values. From the 40th column on, most
/// values are zero.
#[cfg(test)]
pub(crate) fn mixed_columns(
    rows: usize,
    features: usize,
) -> impl proptest::strategy::Strategy<Value = Vec<Vec<f32>>> {
    use proptest::prelude::*;
    let value = prop_oneof![
        4 => Just(0f32),
        3 => (0i32..40).prop_map(|value| value as f32 / 8.0),
        1 => -9f32..9.0,
        1 => Just(f32::NAN),
    ];
    let rare = prop_oneof![30 => Just(0f32), 1 => (1i32..9).prop_map(|value| value as f32)];
    let (mixed, sparse) = (features.min(40), features.saturating_sub(40));
    let columns = (
        prop::collection::vec(prop::collection::vec(value, rows), mixed),
        prop::collection::vec(prop::collection::vec(rare, rows), sparse),
    );
    columns.prop_map(|(mixed, sparse)| [mixed, sparse].concat())
}
