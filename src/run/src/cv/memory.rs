//! Keeps the split of a dataset and the scoring of its parts within the memory limit: as many row groups are in memory at
//! the same time as fit.

use planetree_base::error::{Error, Result};
use planetree_base::size::shown_size;
use planetree_data::dataset::DatasetReader;

/// Bytes for the program and its libraries.
const PROGRAM: u64 = 64 << 20;
/// Bytes that the allocator keeps for a thread.
const PER_THREAD: u64 = 2 << 20;
/// Bytes of the values that are decoded at a time, at most, and how many times as much they take while they are taken apart
/// by query. This was measured.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_COPIES: u64 = 6;
/// Number of values in a row group of a part, at which the group ends.
const GROUP_VALUES: u64 = 1 << 23;

/// The size of a dataset's largest row group.
#[derive(Debug, Clone, Copy)]
struct GroupSize {
    /// Bytes as they are stored.
    stored: u64,
    /// Bytes of the decoded values.
    decoded: u64,
}

impl GroupSize {
    fn of(reader: &DatasetReader) -> Self {
        let manifest = reader.manifest();
        let groups = manifest.files.iter().flat_map(|file| &file.row_groups);
        let (rows, stored) =
            groups.fold((0, 0), |(rows, bytes), group| (group.rows.max(rows), group.range.bytes.max(bytes)));
        let width = 4 * manifest.features.len() as u64;
        GroupSize { stored, decoded: rows.saturating_mul(width) }
    }

    /// Returns the bytes of a group that is read: its columns as they are stored, a batch, and `kept` bytes of values in lists
    /// that have more room than they need.
    fn read_bytes(self, kept: u64) -> u64 {
        let batch = BATCH_COPIES * self.decoded.min(BATCH_BYTES);
        self.stored.saturating_add(PER_THREAD + batch).saturating_add(kept).saturating_add(kept / 2)
    }
}

/// Returns the number of threads that split a dataset into `parts` parts within a memory limit. Fails if it is too small
/// for one.
pub(super) fn split_threads(reader: &DatasetReader, parts: usize, limit: Option<u64>) -> Result<usize> {
    let threads = rayon::current_num_threads();
    let Some(limit) = limit else { return Ok(threads) };
    let group = GroupSize::of(reader);
    let manifest = reader.manifest();
    let values = manifest.rows.saturating_mul(manifest.features.len() as u64) / parts.max(1) as u64;
    // A group of a part is in memory while it is collected, and is then encoded column by column.
    let written = 6 * values.min(GROUP_VALUES);
    let read = group.read_bytes(group.decoded / parts.max(1) as u64);
    match (limit.saturating_sub(PROGRAM + written) / read).min(threads as u64) {
        0 => Err(Error::usage(
            format_args!(
                "--memory-limit {} is too small: splitting the data needs about {} MiB",
                shown_size(limit),
                (PROGRAM + written).saturating_add(read).div_ceil(1 << 20)
            ),
            "raise --memory-limit, or convert with a smaller --partition-rows",
        )),
        fitting => Ok(fitting as usize),
    }
}

/// Returns the number of threads, at least one, that score a part within a memory limit, given the size of the model in bytes.
pub(super) fn scoring_threads(part: &DatasetReader, model_bytes: u64, limit: Option<u64>) -> usize {
    let threads = rayon::current_num_threads();
    let Some(limit) = limit else { return threads };
    let left = limit.saturating_sub(PROGRAM).saturating_sub(model_bytes);
    let group = GroupSize::of(part);
    // Every column has an open page, which may have all values of the group.
    ((left / group.read_bytes(group.decoded)).min(threads as u64) as usize).max(1)
}
