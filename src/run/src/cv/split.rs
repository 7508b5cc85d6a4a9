//! Splits a dataset into parts of whole queries. Queries are sorted by a seeded hash of their ids and assigned to the
//! parts in turn, so the sizes of the parts differ by at most one query. The part of a query depends only on the seed
//! and the ids of all queries, and not on the order of the rows or on the files that contain them.

use super::memory::split_threads;
use super::queries::{hash_of, hashes};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, digest_of};
use planetree_base::threads::thread_pool;
use planetree_data::dataset::{DatasetReader, Manifest};
use planetree_data::rewrite::{RewriteRequest, RewrittenQuery, RowChange, WeightColumn, rewrite};
use std::collections::HashMap;
use std::ops::Range;

/// How to split a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuerySplit {
    /// Number of parts.
    pub parts: usize,
    /// Seed for the hash of query ids.
    pub seed: u64,
}

/// Writes the parts to directories below `directory`. Parts that an earlier run wrote with the same data and split
/// are kept. `begin` is called when nothing is written yet, but the memory limit is known to be kept.
pub(super) fn split_dataset(
    reader: &DatasetReader,
    split: QuerySplit,
    memory_limit: Option<u64>,
    directory: &Location,
    begin: &dyn Fn() -> Result<()>,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<DatasetReader>> {
    let targets: Vec<Location> = (1..=split.parts).map(|part| directory.join(&part.to_string())).collect();
    let data = reader.fingerprint()?;
    let wanted = |part: usize| fingerprint(data, split, part);
    let is_complete = |part: usize| {
        Manifest::read(&targets[part]).is_ok_and(|manifest| manifest.source.fingerprint == wanted(part))
    };
    let is_split = (0..split.parts).all(is_complete);
    let threads = if is_split { 0 } else { split_threads(reader, split.parts, memory_limit)? };
    begin()?;
    if !is_split {
        let queries = reader.manifest().queries;
        note(&format!("splitting {queries} queries into {} parts in {directory}", split.parts));
        let write_parts = || -> Result<()> {
            let part_of = assign_parts(hashes(reader, split.seed)?, split.parts);
            for part in (0..split.parts).filter(|part| !is_complete(*part)) {
                let is_selected = |query: &str| part_of.get(&hash_of(query, split.seed)) == Some(&part);
                write_part(reader, &is_selected, &targets[part], wanted(part))?;
            }
            Ok(())
        };
        // As many row groups are in memory as threads read them.
        match threads < rayon::current_num_threads() {
            true => thread_pool(threads)?.install(write_parts)?,
            false => write_parts()?,
        }
    }
    targets.iter().map(DatasetReader::open).collect()
}

/// Returns a hash that identifies a part by the rows of the dataset and the split.
fn fingerprint(data: Digest, split: QuerySplit, part: usize) -> Digest {
    let QuerySplit { parts, seed } = split;
    digest_of(format!("{data} part {part} of {parts} by {seed}").as_bytes())
}

/// Assigns each query, given by its hash, to a part.
pub(crate) fn assign_parts(mut hashes: Vec<u128>, parts: usize) -> HashMap<u128, usize> {
    hashes.sort_unstable();
    hashes.into_iter().zip((0..parts).cycle()).collect()
}

fn write_part(
    reader: &DatasetReader,
    is_selected: &(dyn Fn(&str) -> bool + Sync),
    target: &Location,
    fingerprint: Digest,
) -> Result<()> {
    let request = RewriteRequest {
        target,
        overwrite: true,
        partition_rows: None,
        features: None,
        new_features: &[],
        weights: WeightColumn::AsBefore,
        origin: fingerprint,
    };
    rewrite(reader, &request, &SelectedQueries(is_selected)).map(drop)
}

/// Keeps the selected queries as they are.
struct SelectedQueries<'a>(&'a (dyn Fn(&str) -> bool + Sync));

impl RowChange for SelectedQueries<'_> {
    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>> {
        let kept = (self.0)(query).then(|| RewrittenQuery::all(query.to_owned(), rows));
        Ok(kept.into_iter().collect())
    }
}

/// Checks that there are at least as many queries as parts.
pub(crate) fn check_count(reader: &DatasetReader, parts: usize) -> Result<()> {
    let queries = reader.manifest().queries;
    if (parts as u64) > queries {
        return Err(Error::usage(
            format_args!("{parts} folds, but {} has only {queries} queries", reader.location()),
            "lower --folds, or use more data",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_balanced_and_independent_of_row_order() {
        let hashes: Vec<u128> = (0..103).map(|query| hash_of(&format!("q{query}"), 7)).collect();
        let part_of = assign_parts(hashes.clone(), 5);
        let mut sizes = [0; 5];
        part_of.values().for_each(|part| sizes[*part] += 1);
        sizes.sort_unstable();
        assert_eq!(sizes, [20, 20, 21, 21, 21]);
        let mut backwards = hashes;
        backwards.reverse();
        assert_eq!(assign_parts(backwards, 5), part_of);
        let other: Vec<u128> = (0..103).map(|query| hash_of(&format!("q{query}"), 8)).collect();
        let moved = (0..103).filter(|query| {
            let name = format!("q{query}");
            assign_parts(other.clone(), 5)[&hash_of(&name, 8)] != part_of[&hash_of(&name, 7)]
        });
        assert!(moved.count() > 40, "another seed gives another split");
    }
}
