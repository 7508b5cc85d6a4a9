//! Estimates how much memory a training run needs. The estimate is compared with the memory limit before the work
//! starts.

use crate::bins::BinOptions;
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledData;

/// Bytes for the label of a validation row.
const VALIDATION_BYTES_PER_ROW: u64 = 4;
/// Bytes for the hash and the label of a row while training and validation rows are compared.
const COMPARED_BYTES_PER_ROW: u64 = 8 + 4;
/// Bytes for the key, target, cell and list entry of a row while a column is sorted.
const SORTED_BYTES_PER_ROW: u64 = 8 + 4 + 8 + 16;
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
            None => (4, rows * SORTED_BYTES_PER_ROW * threads),
        };
        let held = |source: &LabelledData| {
            let bytes_per_value = if options.max_bin.is_some() { 2 } else { 4 };
            let per_row = VALIDATION_BYTES_PER_ROW + row_bytes.validation + COMPARED_BYTES_PER_ROW;
            source.row_count() * (per_row + bytes_per_value * features)
        };
        let validation: u64 = validation.iter().map(held).sum();
        let compared = if validation == 0 { 0 } else { rows * COMPARED_BYTES_PER_ROW };
        let always = PROGRAM + rows * row_bytes.training + compared + sorting + validation;

        // An eighth of the limit is reserved for histograms, which are allocated after binning.
        let with_histograms = |bytes: u64| bytes + bytes.div_ceil(7);
        let codes = rows * code_bytes * features;
        // Partitions are processed one at a time. Each needs its file content, one decoded column per thread, and its
        // codes.
        let partition = group_bytes + group_rows * (code_bytes * features + threads * 16);
        Needs {
            in_memory: (always + codes + files).max(with_histograms(always + codes)),
            in_cache: (always + partition).max(with_histograms(always)),
        }
    }

    /// Returns whether the codes must be cached on disk, or an error if the limit is too small even then.
    pub(super) fn must_use_cache(&self, limit: Option<u64>) -> Result<bool> {
        let Some(limit) = limit else { return Ok(false) };
        if self.in_cache > limit {
            let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
            return Err(Error::usage(
                format_args!(
                    "--memory-limit {}MiB is too small: training needs about {} MiB",
                    mebibytes(limit),
                    mebibytes(self.in_cache)
                ),
                "raise --memory-limit, or train on fewer rows, or convert with a smaller --partition-rows",
            ));
        }
        Ok(self.in_memory > limit)
    }
}
