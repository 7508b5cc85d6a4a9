//! The rows of a tree: all, or a sample without replacement. Each row or query gets a random key from the seed, the
//! tree and its number in the dataset, and those with the smallest keys are taken, so partitioning does not matter.

use crate::config::{Parameters, Sampling};
use planetree_base::random::Stream;
use planetree_data::source::Rows;
use rayon::prelude::*;

const OF_ROWS: u64 = 0x7377_6F52;

/// The rows of a tree, by partition, ascending; `None` for all. `limit` is the maximum key taken, from
/// [`draw_limit`]; it is needed if `rows` are not the whole dataset.
pub fn draw_rows(
    parameters: &Parameters,
    rows: &[Rows],
    tree: u64,
    limit: Option<u64>,
) -> Option<Vec<Vec<u32>>> {
    if !draws(parameters) {
        return None;
    }
    let key = |number: u64| key_of(parameters, tree, number);
    let keys: Vec<Vec<u64>> = rows
        .par_iter()
        .map(|rows| match parameters.bagging_by {
            Sampling::Rows => (0..rows.len() as u64).map(|row| key(rows.first + row)).collect(),
            Sampling::Queries => {
                (0..rows.query_bounds.len() as u64 - 1).map(|query| key(rows.first_query + query)).collect()
            }
        })
        .collect();
    let last = limit
        .unwrap_or_else(|| greatest_drawn(parameters, keys.iter().flatten().copied().collect::<Vec<u64>>()));
    let drawn = rows.par_iter().zip(keys).map(|(rows, keys)| {
        let drawn = keys.iter().enumerate().filter(|(_, key)| **key <= last).map(|(place, _)| place);
        match parameters.bagging_by {
            Sampling::Rows => drawn.map(|row| row as u32).collect(),
            Sampling::Queries => {
                drawn.flat_map(|query| rows.query_bounds[query]..rows.query_bounds[query + 1]).collect()
            }
        }
    });
    Some(drawn.collect())
}

/// The maximum key taken from a dataset with this many rows and queries; `None` if all are taken.
pub fn draw_limit(parameters: &Parameters, rows: u64, queries: u64, tree: u64) -> Option<u64> {
    let count = match parameters.bagging_by {
        Sampling::Rows => rows,
        Sampling::Queries => queries,
    };
    let keys = || (0..count).map(|number| key_of(parameters, tree, number)).collect();
    draws(parameters).then(|| greatest_drawn(parameters, keys()))
}

fn draws(parameters: &Parameters) -> bool {
    parameters.bagging_fraction < 1.0 || parameters.queries_per_tree.is_some()
}

fn key_of(parameters: &Parameters, tree: u64, number: u64) -> u64 {
    Stream::new(&[parameters.seed, OF_ROWS, tree, number]).bits()
}

fn greatest_drawn(parameters: &Parameters, mut all: Vec<u64>) -> u64 {
    let wanted = match parameters.queries_per_tree {
        Some(count) => count as usize,
        None => (all.len() as f64 * parameters.bagging_fraction).round() as usize,
    };
    let wanted = wanted.clamp(1, all.len());
    *all.select_nth_unstable(wanted - 1).1
}
