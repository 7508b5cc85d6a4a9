//! Estimates how much memory a training run needs. The estimate is compared with the memory limit before the work
//! starts.

use crate::bins::{BinOptions, BinnedData, FeatureBins, LANES};
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_size;
use planetree_data::dataset::DatasetReader;
use planetree_data::source::LabelledData;

/// Bytes for the label of a validation row.
const VALIDATION_BYTES_PER_ROW: u64 = 4;
/// Bytes for the hash and the label of a row while training and validation rows are compared.
const COMPARED_BYTES_PER_ROW: u64 = 8 + 4;
/// Bytes for the key, target, cells and list entry of a row while a column is sorted by a thread. Keys and targets are in
/// lists that may have twice the room they need.
const SORTED_BYTES_PER_ROW: u64 = 2 * (8 + 8) + 16 + 24 + 16;
/// Bytes of a distinct value of a feature while the bins of the feature are chosen: its counts, and their copies.
const CHOSEN_BYTES_PER_VALUE: u64 = 64;
/// Bytes per row for the counts of the values of a feature, while they are sorted.
const VALUE_COUNT_BYTES: u64 = 8;
/// Bytes per row for labels and queries, and bytes per row of a partition for a decoded column and its sorted values, while
/// distinct values are counted.
const COUNTED_BYTES_PER_ROW: u64 = 16;
const COUNTED_BYTES_PER_GROUP_ROW: u64 = 24;
/// Features of the largest group, whose columns are in memory while its rows are assembled.
const MOST_IN_GROUP: u64 = 248;
/// Memory for bins of distinct values, relative to the bins: they are copied and converted to text when they are written to
/// or read from a cache on disk.
const CACHED_COPIES: u64 = 5;
/// Bytes for the program and its libraries. The cluster engine needs more.
const PROGRAM: u64 = 64 << 20;
/// Bytes that the system allocator keeps for a thread after it has decoded a column, and at most for all of them.
const KEPT_PER_COLUMN: u64 = 8 << 10;
const MOST_KEPT: u64 = 4 << 20;

/// Memory that a learner needs, in bytes, not counting codes and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LearnerBytes {
    /// Bytes per training row.
    pub training: u64,
    /// Bytes per validation row: one score for every part that is trained at the same time.
    pub validation: u64,
    /// Bytes besides.
    pub working: u64,
}

/// The size of the training data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataSize {
    /// Number of rows.
    pub rows: u64,
    /// Number of features.
    pub features: u64,
    /// An estimate of the documents of a large query, which few queries exceed: a multiple of the mean.
    pub documents: u64,
    /// Number of threads.
    pub threads: u64,
}

impl DataSize {
    /// Returns the size of a source according to its manifests.
    pub(crate) fn of(source: &LabelledData) -> Self {
        /// How many times larger than the mean most queries are at most.
        const UNEVEN: u64 = 4;
        let rows = source.row_count();
        let queries: u64 = source.manifests().map(|manifest| manifest.queries).sum();
        DataSize {
            rows,
            features: source.features() as u64,
            documents: (UNEVEN * rows / queries.max(1)).min(rows),
            threads: rayon::current_num_threads() as u64,
        }
    }
}

/// Returns the memory of the program and its threads, in bytes.
pub(super) fn program_bytes(threads: u64, features: u64) -> u64 {
    PROGRAM + threads * (features * KEPT_PER_COLUMN).min(MOST_KEPT)
}

/// Where the codes of the training data are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeStorage {
    /// In memory, by row and by column.
    Twice,
    /// In memory, by row.
    Once,
    /// In a cache on disk.
    Cache,
}

/// The estimated memory needs of a training run, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needs {
    /// The need if all codes are in memory, by row and by column.
    pub in_memory: u64,
    /// The need if all codes are in memory, by row only.
    pub compact: u64,
    /// The need if the codes are in a cache on disk.
    pub in_cache: u64,
    /// Whether the need with a cache is that of a partition, so that smaller partitions need less.
    is_of_partition: bool,
    /// What depends on the number of distinct values, if each has its own bin. How many there are is known only when they
    /// have been counted. `None` if the number of bins is limited.
    value_bins: Option<ValueBins>,
}

/// Memory for bins of distinct values, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ValueBins {
    /// Bytes of bins that `Needs::in_cache` includes.
    assumed: u64,
    /// The need while the values of one feature at a time are counted.
    counting: u64,
}

impl Needs {
    /// Estimates the needs from the manifests. `needs_values` means that training holds the values of features in place of
    /// codes.
    pub(super) fn of(
        source: &LabelledData,
        (options, needs_values): (&BinOptions, bool),
        validation: &[LabelledData],
        learner: LearnerBytes,
    ) -> Self {
        let (rows, features) = (source.row_count(), source.features() as u64);
        let files = source.manifests().flat_map(|manifest| &manifest.files);
        let groups = files.flat_map(|file| &file.row_groups);
        let (group_rows, group_bytes) =
            groups.fold((0, 0), |(rows, bytes), group| (rows.max(group.rows), bytes.max(group.range.bytes)));
        let threads = rayon::current_num_threads() as u64;
        // While features are normalised, each thread has a copy of a column.
        let normalising = if options.by_query { 4 * rows * threads } else { 0 };
        // With bins, each code is stored twice, by row and by column, in one byte each. If every distinct value has
        // its own code, a code takes up to four bytes, and each thread sorts a column.
        let (code_bytes, sorting) = match options.max_bin {
            Some(_) if needs_values => (4, 0),
            Some(_) => (2, 0),
            None => (4, rows * SORTED_BYTES_PER_ROW * threads + rows * CHOSEN_BYTES_PER_VALUE),
        };
        let held = |source: &LabelledData| {
            let bytes_per_value = if options.max_bin.is_some() && !needs_values { 2 } else { 4 };
            let per_row = VALIDATION_BYTES_PER_ROW + learner.validation + COMPARED_BYTES_PER_ROW;
            source.row_count() * (per_row + bytes_per_value * features)
        };
        let validation: u64 = validation.iter().map(held).sum();
        let compared = if validation == 0 { 0 } else { rows * COMPARED_BYTES_PER_ROW };
        let program = program_bytes(threads, features) + learner.working;
        let always = program + rows * learner.training + compared + sorting + normalising + validation;
        // With a bin for each distinct value, the codes stay on disk unless there is room even if all values differ. As
        // long as the values are not counted, few bins are assumed.
        let bins = |per_feature: u64| features * per_feature * FeatureBins::BYTES_PER_BIN;
        let (few_bins, most_bins) = match options.max_bin {
            Some(max_bin) => (bins(max_bin as u64), bins(max_bin as u64)),
            None => ((CACHED_COPIES * bins(rows)).min(always / 8), bins(rows)),
        };
        let (always, always_at_most) = (always + few_bins, always + most_bins);

        // An eighth of the limit is reserved for histograms, which are allocated after binning.
        let with_histograms = |bytes: u64| bytes + bytes.div_ceil(7);
        let codes = rows * code_bytes * features;
        // Rows consist of whole blocks, of byte codes and of joint codes.
        let compact_codes = rows * (features.next_multiple_of(LANES as u64) + LANES as u64);
        // While a partition is encoded, each thread has the columns of a feature group, and decodes one of them.
        let encoding = (rows * features).min(threads * group_rows * features.min(MOST_IN_GROUP))
            + 4 * threads * group_rows;
        // Each thread decodes a batch of features, and counts the values of one of them. Encoded bytes stay on disk, except
        // those of object stores.
        let batch = BinnedData::decoded_features(features, rows) * 4 + VALUE_COUNT_BYTES;
        let encoded: u64 = source.readers().map(DatasetReader::held_bytes).sum();
        let binning = encoded + rows * batch * threads;
        // Partitions are processed one at a time. Each needs its file content, one decoded column per thread, and its
        // codes, with the columns that they are assembled from.
        let partition = group_bytes + group_rows * (code_bytes * features + threads * 16) + encoding;
        let value_bins = ValueBins {
            assumed: few_bins,
            counting: program_bytes(threads, features)
                + group_bytes
                + group_rows * COUNTED_BYTES_PER_GROUP_ROW
                + rows * (COUNTED_BYTES_PER_ROW + CHOSEN_BYTES_PER_VALUE)
                + normalising,
        };
        Needs {
            in_memory: (always_at_most + codes + binning).max(with_histograms(always_at_most + codes)),
            compact: (always_at_most + compact_codes + encoded + encoding)
                .max(always_at_most + binning)
                .max(with_histograms(always_at_most + compact_codes)),
            in_cache: (always + partition).max(with_histograms(always)),
            is_of_partition: always + partition > with_histograms(always),
            value_bins: options.max_bin.is_none().then_some(value_bins),
        }
    }

    /// Returns where the codes are stored; `None` if the limit is too small for memory and for a cache on disk. `compact`
    /// stores them once if they are in memory.
    pub(super) fn storage(&self, limit: u64, compact: bool) -> Option<CodeStorage> {
        let in_memory = if compact { CodeStorage::Once } else { CodeStorage::Twice };
        if self.in_memory(compact) <= limit {
            return Some(in_memory);
        }
        (self.in_cache <= limit).then_some(CodeStorage::Cache)
    }

    fn in_memory(&self, compact: bool) -> u64 {
        if compact { self.compact } else { self.in_memory }
    }

    /// Fails if the limit is too small for one bin per distinct value, which have `bin_bytes` bytes for all features.
    pub(super) fn check_bins(&self, limit: u64, bin_bytes: u64) -> Result<()> {
        match self.value_bins {
            Some(bins) if self.in_cache_with(bins, bin_bytes) > limit => {
                Err(self.refusal(limit, false, Some(bin_bytes)))
            }
            _ => Ok(()),
        }
    }

    /// Returns the need if the codes are in a cache, with the bins of distinct values.
    fn in_cache_with(&self, bins: ValueBins, bin_bytes: u64) -> u64 {
        let more = CACHED_COPIES.saturating_mul(bin_bytes).saturating_sub(bins.assumed);
        // An eighth of the limit is reserved for histograms.
        self.in_cache.saturating_add(more).saturating_add(more.div_ceil(7))
    }

    /// Returns the bytes that a limit leaves while distinct values are counted; `None` if their number does not matter, or
    /// if the limit is too small even to count them.
    pub(super) fn counting_budget(&self, limit: u64) -> Option<u64> {
        limit.checked_sub(self.value_bins?.counting)
    }

    /// Returns the error for a limit that is too small, which names a limit that would do. It is the least one, unless each
    /// distinct value has its own bin and `bin_bytes`, the bytes of these bins, is not known.
    pub(super) fn refusal(&self, limit: u64, compact: bool, bin_bytes: Option<u64>) -> Error {
        let in_memory = self.in_memory(compact);
        let (needed, counting) = match (self.value_bins, bin_bytes) {
            (None, _) => (self.in_cache.min(in_memory), None),
            (Some(bins), Some(bytes)) => (self.in_cache_with(bins, bytes).min(in_memory), None),
            // This need assumes that all values differ.
            (Some(bins), None) => (in_memory, Some(bins.counting)),
        };
        let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
        let (needed, limit) = (mebibytes(needed), shown_size(limit));
        let remedy = match self.is_of_partition {
            true => {
                "raise --memory-limit, or train on fewer rows, or convert with a smaller --partition-rows"
            }
            false => "raise --memory-limit",
        };
        match counting {
            None => Error::usage(
                format_args!("--memory-limit {limit} is too small: training needs about {needed} MiB"),
                remedy,
            ),
            Some(counting) => Error::usage(
                format_args!(
                    "--memory-limit {limit} is too small: training needs about {needed} MiB if all values of a feature differ"
                ),
                format_args!(
                    "raise --memory-limit: from {} MiB on, distinct values are counted, and the message names the least limit",
                    mebibytes(counting)
                ),
            ),
        }
    }
}
