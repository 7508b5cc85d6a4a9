//! Selects the rows of a tree: all rows, or a sample without replacement. Each row or query gets a random key,
//! computed from the seed, the tree and the number of the row or query in the dataset. The rows or queries with the
//! smallest keys are sampled, so the sample does not depend on the partitioning.

use crate::config::{RowSampling, Sampling};
use planetree_base::random::Stream;
use planetree_data::source::LabelledRows;
use rayon::prelude::*;

const OF_ROWS: u64 = 0x7377_6F52;

/// Samples the rows of a tree. Returns ascending row numbers by partition, or `None` for all rows. `limit` is the
/// maximum sampled key from [`draw_limit`]; it is required if `rows` are not the whole dataset. If all trees have the
/// same sample, it is that of tree 1.
pub(crate) fn draw_rows(
    sampling: &RowSampling,
    seed: u64,
    rows: &[LabelledRows],
    tree: u64,
    limit: Option<u64>,
) -> Option<Vec<Vec<u32>>> {
    if !sampling.leaves_out() {
        return None;
    }
    let tree = sampled_tree(sampling, tree);
    let key = |number: u64| key_of(seed, tree, number);
    let keys: Vec<Vec<u64>> = rows
        .par_iter()
        .map(|rows| match sampling.unit {
            Sampling::Rows => (0..rows.len() as u64).map(|row| key(rows.first + row)).collect(),
            Sampling::Queries => {
                (0..rows.query_bounds.len() as u64 - 1).map(|query| key(rows.first_query + query)).collect()
            }
        })
        .collect();
    let last = limit
        .unwrap_or_else(|| greatest_drawn(sampling, keys.iter().flatten().copied().collect::<Vec<u64>>()));
    let drawn = rows.par_iter().zip(keys).map(|(rows, keys)| {
        let drawn = keys.iter().enumerate().filter(|(_, key)| **key <= last).map(|(place, _)| place);
        match sampling.unit {
            Sampling::Rows => drawn.map(|row| row as u32).collect(),
            Sampling::Queries => {
                drawn.flat_map(|query| rows.query_bounds[query]..rows.query_bounds[query + 1]).collect()
            }
        }
    });
    Some(drawn.collect())
}

/// Returns the maximum sampled key for a dataset with this many rows and queries. `None` means that all are sampled.
pub fn draw_limit(sampling: &RowSampling, seed: u64, rows: u64, queries: u64, tree: u64) -> Option<u64> {
    let count = match sampling.unit {
        Sampling::Rows => rows,
        Sampling::Queries => queries,
    };
    let tree = sampled_tree(sampling, tree);
    let keys = || (0..count).map(|number| key_of(seed, tree, number)).collect();
    sampling.leaves_out().then(|| greatest_drawn(sampling, keys()))
}

/// Returns the tree whose sample a tree has.
fn sampled_tree(sampling: &RowSampling, tree: u64) -> u64 {
    if sampling.per_run { 1 } else { tree }
}

fn key_of(seed: u64, tree: u64, number: u64) -> u64 {
    Stream::new(&[seed, OF_ROWS, tree, number]).bits()
}

fn greatest_drawn(sampling: &RowSampling, mut all: Vec<u64>) -> u64 {
    let wanted = match sampling.queries {
        Some(count) => count as usize,
        None => (all.len() as f64 * sampling.fraction).round() as usize,
    };
    let wanted = wanted.clamp(1, all.len());
    *all.select_nth_unstable(wanted - 1).1
}
