//! Detection of leakage, that is, of validation queries and rows that are also in the training data. A model has
//! memorised them, so metrics on them are too optimistic and early stopping comes too late.
//!
//! Queries are compared by the hashes of their ids, rows by the hashes of their features and label. A hash has 8 bytes
//! and is computed while the data are read.

use super::Observer;
use super::validation::ValidationData;
use planetree_data::source::{LabelledData, LabelledRows};
use xxhash_rust::xxh3::xxh3_64;

/// Hashes of the training data, kept until all validation sets have been read.
#[derive(Default)]
pub(super) struct Seen {
    /// The hashes of query ids, by partition.
    queries: Vec<Vec<u64>>,
    /// The hashes of rows, by partition. `None` if rows were not read by this process.
    rows: Option<Vec<Vec<u64>>>,
    /// Whether the query ids are consecutive numbers, which may not identify queries.
    is_counted: bool,
}

impl Seen {
    /// Takes the hashes out of the training data, which no longer need them. `is_wanted` says whether there is a
    /// validation set to compare with.
    pub(super) fn take(source: &mut LabelledData, rows: &mut [LabelledRows], is_wanted: bool) -> Self {
        let is_counted = is_wanted && is_counted(rows);
        let queries = rows.iter_mut().map(|rows| std::mem::take(&mut rows.query_keys)).collect();
        Seen { queries, rows: source.take_row_hashes(), is_counted }
    }

    /// Returns the warnings about a validation set that has been read.
    pub(super) fn warnings(
        &self,
        name: &str,
        source: &mut LabelledData,
        rows: &[LabelledRows],
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let queries: Vec<u64> = rows.iter().flat_map(|rows| &rows.query_keys).copied().collect();
        let shared = count_shared(queries.clone(), self.queries.iter().flatten());
        if shared > 0 {
            let caveat = match self.is_counted && is_counted(rows) {
                true => " (unless ids only number the queries; if so, convert with ids that identify them)",
                false => "",
            };
            warnings.push(format!(
                "warning: {name}: {shared} of {} queries are also in the training data; metrics on them are \
                 too optimistic{caveat}",
                queries.len()
            ));
        }
        if let (Some(seen), Some(hashes)) = (&self.rows, source.take_row_hashes()) {
            let hashes: Vec<u64> = hashes.into_iter().flatten().collect();
            let count = hashes.len();
            let shared = count_shared(hashes, seen.iter().flatten());
            if shared > 0 {
                warnings.push(format!(
                    "warning: {name}: {shared} of {count} rows have the same features and label as a row of \
                     the training data"
                ));
            }
        }
        warnings
    }
}

/// Reports the leakage of all validation sets to the observer, in the order of `sources`. Then the hashes are dropped.
pub(super) fn warn_of_leakage(
    seen: Seen,
    sets: &mut [ValidationData],
    sources: &mut [LabelledData],
    observer: &mut dyn Observer,
) {
    for (set, source) in sets.iter_mut().zip(sources) {
        let warnings = seen.warnings(&set.name, source, set.rows());
        warnings.iter().for_each(|warning| observer.note(warning));
        set.forget_queries();
    }
}

/// Returns whether query ids are consecutive numbers from 0 or 1, as in files that only mark where a query ends.
fn is_counted(rows: &[LabelledRows]) -> bool {
    let counts_from = |first: u64, rows: &LabelledRows| {
        let mut ids = (rows.first_query + first..).map(|number| xxh3_64(number.to_string().as_bytes()));
        rows.query_keys.iter().all(|key| Some(*key) == ids.next())
    };
    [0, 1].into_iter().any(|first| rows.iter().all(|rows| counts_from(first, rows)))
}

/// Returns how many of the hashes are also in `others`. 0 stands for a missing hash and is not counted.
fn count_shared<'h>(mut hashes: Vec<u64>, others: impl Iterator<Item = &'h u64>) -> usize {
    hashes.sort_unstable();
    // At most one bit in sixteen is set, so most of the other hashes are rejected without a search.
    let bits = (hashes.len() * 16).next_power_of_two().max(64);
    let mut filter = vec![0u64; bits / 64];
    let place = |hash: u64| (hash as usize & (bits - 1)) / 64;
    hashes.iter().for_each(|hash| filter[place(*hash)] |= 1 << (hash % 64));
    let mut is_shared = vec![false; hashes.len()];
    for other in others {
        if *other == 0 || filter[place(*other)] & (1 << (other % 64)) == 0 {
            continue;
        }
        let first = hashes.partition_point(|hash| hash < other);
        // Equal hashes follow each other and are marked together, so the first one tells whether all are marked.
        for (hash, is_shared) in hashes[first..].iter().zip(&mut is_shared[first..]) {
            if hash != other || *is_shared {
                break;
            }
            *is_shared = true;
        }
    }
    is_shared.iter().filter(|shared| **shared).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::random::mix;
    use proptest::prelude::*;

    proptest! {
        /// The reference implementation compares every pair.
        #[test]
        fn shared_hashes_are_counted(mine in prop::collection::vec(0u64..60, 0..80), others in prop::collection::vec(0u64..60, 0..80)) {
            let spread = |hashes: &[u64]| -> Vec<u64> { hashes.iter().map(|hash| if *hash == 0 { 0 } else { mix(*hash) }).collect() };
            let (mine, others) = (spread(&mine), spread(&others));
            let expected = mine.iter().filter(|hash| **hash != 0 && others.contains(hash)).count();
            prop_assert_eq!(count_shared(mine, others.iter()), expected);
        }
    }
}
