//! Estimates how much memory a training run needs. The estimate is compared with the memory limit before the work
//! starts.

use crate::bins::{BinOptions, FeatureBins};
use planetree_base::error::{Error, Result};
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
/// Memory for bins of distinct values, relative to the bins: they are copied and converted to text when they are written to
/// or read from a cache on disk.
const CACHED_COPIES: u64 = 5;
/// Bytes for the program and its libraries. The cluster engine needs more.
const PROGRAM: u64 = 64 << 20;

/// Memory that a training run needs per row, in bytes, not counting codes and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowBytes {
    /// Bytes per training row.
    pub training: u64,
    /// Bytes per validation row: one score for every part that is trained at the same time.
    pub validation: u64,
}

/// The estimated memory needs of a training run, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needs {
    /// The need if all codes are in memory.
    pub in_memory: u64,
    /// The need if the codes are in a cache on disk.
    pub in_cache: u64,
    /// Bytes of bins that `in_cache` includes, if each distinct value has its own bin. How many there are is known only
    /// when they have been counted. `None` if the number of bins is limited.
    value_bins: Option<u64>,
}

impl Needs {
    /// Estimates the needs from the manifests.
    pub(super) fn of(
        source: &LabelledData,
        options: &BinOptions,
        validation: &[LabelledData],
        row_bytes: RowBytes,
    ) -> Self {
        let (rows, features) = (source.row_count(), source.features() as u64);
        let all_files = || source.manifests().flat_map(|manifest| &manifest.files);
        let files: u64 = all_files().map(|file| file.bytes).sum();
        let groups = all_files().flat_map(|file| &file.row_groups);
        let (group_rows, group_bytes) =
            groups.fold((0, 0), |(rows, bytes), group| (rows.max(group.rows), bytes.max(group.range.bytes)));
        let threads = rayon::current_num_threads() as u64;
        // With bins, each code is stored twice, by row and by column, in one byte each. If every distinct value has
        // its own code, a code takes up to four bytes, and each thread sorts a column.
        let (code_bytes, sorting) = match options.max_bin {
            Some(_) => (2, 0),
            None => (4, rows * SORTED_BYTES_PER_ROW * threads + rows * CHOSEN_BYTES_PER_VALUE),
        };
        let held = |source: &LabelledData| {
            let bytes_per_value = if options.max_bin.is_some() { 2 } else { 4 };
            let per_row = VALIDATION_BYTES_PER_ROW + row_bytes.validation + COMPARED_BYTES_PER_ROW;
            source.row_count() * (per_row + bytes_per_value * features)
        };
        let validation: u64 = validation.iter().map(held).sum();
        let compared = if validation == 0 { 0 } else { rows * COMPARED_BYTES_PER_ROW };
        let always = PROGRAM + rows * row_bytes.training + compared + sorting + validation;
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
        // Partitions are processed one at a time. Each needs its file content, one decoded column per thread, and its
        // codes.
        let partition = group_bytes + group_rows * (code_bytes * features + threads * 16);
        Needs {
            in_memory: (always_at_most + codes + files).max(with_histograms(always_at_most + codes)),
            in_cache: (always + partition).max(with_histograms(always)),
            value_bins: options.max_bin.is_none().then_some(few_bins),
        }
    }

    /// Returns whether the codes must be cached on disk, or an error if the limit is too small even then.
    pub(super) fn must_use_cache(&self, limit: Option<u64>) -> Result<bool> {
        let Some(limit) = limit else { return Ok(false) };
        if self.in_cache > limit {
            return Err(too_small(limit, self.in_cache));
        }
        Ok(self.in_memory > limit)
    }

    /// Fails if the limit is too small for one bin per distinct value, which have `bin_bytes` bytes for all features.
    pub(super) fn check_bins(&self, limit: u64, bin_bytes: u64) -> Result<()> {
        let bytes = CACHED_COPIES * bin_bytes;
        let Some(more) = self.value_bins.and_then(|assumed| bytes.checked_sub(assumed)) else {
            return Ok(());
        };
        // An eighth of the limit is reserved for histograms.
        let needed = self.in_cache + more + more.div_ceil(7);
        if needed > limit { Err(too_small(limit, needed)) } else { Ok(()) }
    }
}

fn too_small(limit: u64, needed: u64) -> Error {
    let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
    Error::usage(
        format_args!(
            "--memory-limit {}MiB is too small: training needs about {} MiB",
            mebibytes(limit),
            mebibytes(needed)
        ),
        "raise --memory-limit, or train on fewer rows, or convert with a smaller --partition-rows",
    )
}
