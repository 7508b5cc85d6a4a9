//! Leakage: queries and rows of a validation set that are in the training data, too. A model knows them by
//! heart, so that metrics on them are too optimistic and training stops too late.
//!
//! Queries are compared by the hashes of their ids, rows by the hashes of their features and label. Both are
//! 8 bytes each, and a by-product of reading.

use super::Observer;
use super::validation::ValidationSet;
use planetree_data::source::{LabelledData, LabelledRows};
use xxhash_rust::xxh3::xxh3_64;

/// What is remembered of the training data until all validation sets are read.
#[derive(Default)]
pub struct Seen {
    /// The hashes of query ids, by partition.
    queries: Vec<Vec<u64>>,
    /// The hashes of rows, by partition, where rows were read here.
    rows: Option<Vec<Vec<u64>>>,
    /// Whether query ids count queries and say nothing else.
    is_counted: bool,
}

impl Seen {
    /// What was read of the training data, if there is anything to compare with. Their rows forget the ids of queries.
    pub fn take(source: &mut LabelledData, rows: &mut [LabelledRows], is_wanted: bool) -> Self {
        let is_counted = is_wanted && is_counted(rows);
        let queries = rows.iter_mut().map(|rows| std::mem::take(&mut rows.query_keys)).collect();
        Seen { queries, rows: source.take_row_hashes(), is_counted }
    }

    /// What to say of a validation set that was read.
    pub fn warnings(&self, name: &str, source: &mut LabelledData, rows: &[LabelledRows]) -> Vec<String> {
        let mut warnings = Vec::new();
        let queries: Vec<u64> = rows.iter().flat_map(|rows| &rows.query_keys).copied().collect();
        let shared = count_shared(queries.clone(), self.queries.iter().flatten());
        if shared > 0 {
            let caveat = match self.is_counted && is_counted(rows) {
                true => " (unless the ids only count queries: convert with ids that name them)",
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

/// Says what is wrong with validation sets that were read, in the order of their sources; then all hashes go.
pub fn warn_of_leakage(
    seen: Seen,
    sets: &mut [ValidationSet],
    sources: &mut [LabelledData],
    observer: &mut dyn Observer,
) {
    for (set, source) in sets.iter_mut().zip(sources) {
        let warnings = seen.warnings(&set.name, source, set.rows());
        warnings.iter().for_each(|warning| observer.note(warning));
        set.forget_queries();
    }
}

/// Whether query ids count from 0 or 1 in the order of the rows, as of files that only say where queries end.
fn is_counted(rows: &[LabelledRows]) -> bool {
    let counts_from = |first: u64, rows: &LabelledRows| {
        let mut ids = (rows.first_query + first..).map(|number| xxh3_64(number.to_string().as_bytes()));
        rows.query_keys.iter().all(|key| Some(*key) == ids.next())
    };
    [0, 1].into_iter().any(|first| rows.iter().all(|rows| counts_from(first, rows)))
}

/// How many of some hashes are among others; 0 is none.
fn count_shared<'h>(mut hashes: Vec<u64>, others: impl Iterator<Item = &'h u64>) -> usize {
    hashes.sort_unstable();
    // One bit in sixteen is set, so that few of the others are searched for.
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
        // Equal ones follow; once marked, they are all marked.
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
        /// The slow twin looks at every pair.
        #[test]
        fn shared_hashes_are_counted(mine in prop::collection::vec(0u64..60, 0..80), others in prop::collection::vec(0u64..60, 0..80)) {
            let spread = |hashes: &[u64]| -> Vec<u64> { hashes.iter().map(|hash| if *hash == 0 { 0 } else { mix(*hash) }).collect() };
            let (mine, others) = (spread(&mine), spread(&others));
            let expected = mine.iter().filter(|hash| **hash != 0 && others.contains(hash)).count();
            prop_assert_eq!(count_shared(mine, others.iter()), expected);
        }
    }
}
