//! Samples the rows of each tree in a forest.

use crate::config::{ForestSettings, Sampling};
use crate::driver::draw_rows;
use planetree_base::error::{Error, Result};
use planetree_base::random::Stream;
use planetree_data::source::LabelledRows;

const OF_DRAWS: u64 = 0x7377_7244;

/// Returns the number of queries or rows in the data, and how many of them to sample.
fn counts(parameters: &ForestSettings, rows: &[LabelledRows]) -> (u64, u64) {
    let all: u64 = match parameters.learner.tree.sampling.unit {
        Sampling::Rows => rows.iter().map(|rows| rows.len() as u64).sum(),
        Sampling::Queries => rows.iter().map(|rows| rows.query_bounds.len() as u64 - 1).sum(),
    };
    let wanted = match parameters.learner.tree.sampling.queries {
        Some(count) => u64::from(count).min(all),
        None => (all as f64 * parameters.learner.tree.sampling.fraction).round() as u64,
    };
    (all, wanted)
}

/// Returns an error if the sample is empty. Adds a note if more queries or rows are requested than the data has.
pub(super) fn check(
    parameters: &ForestSettings,
    rows: &[LabelledRows],
    note: &mut dyn FnMut(&str),
) -> Result<()> {
    let (all, wanted) = counts(parameters, rows);
    let what = match parameters.learner.tree.sampling.unit {
        Sampling::Rows => "rows",
        Sampling::Queries => "queries",
    };
    if wanted == 0 {
        return Err(Error::usage(
            format_args!(
                "bagging_fraction = {} of {all} {what} rounds to 0",
                parameters.learner.tree.sampling.fraction
            ),
            "raise bagging_fraction or query_fraction",
        ));
    }
    if let Some(count) = parameters.learner.tree.sampling.queries.filter(|count| u64::from(*count) > all) {
        note(&format!(
            "queries_per_tree = {count}: there are only {all} queries, so every tree uses all of them"
        ));
    }
    Ok(())
}

/// Returns the rows of a tree in ascending order. Rows that are sampled several times are repeated.
pub(super) fn draw(parameters: &ForestSettings, rows: &[LabelledRows], tree: u64) -> Vec<u32> {
    if parameters.learner.bootstrap {
        return bootstrap(parameters, rows, tree);
    }
    match draw_rows(&parameters.learner.tree.sampling, parameters.seed, rows, tree, None) {
        None => (0..rows.iter().map(|rows| rows.len() as u32).sum()).collect(),
        Some(drawn) => {
            let numbered = rows.iter().zip(&drawn);
            numbered.flat_map(|(rows, drawn)| drawn.iter().map(|row| rows.first as u32 + row)).collect()
        }
    }
}

fn bootstrap(parameters: &ForestSettings, rows: &[LabelledRows], tree: u64) -> Vec<u32> {
    let (all, wanted) = counts(parameters, rows);
    let mut times = vec![0u16; all as usize];
    let mut stream = Stream::new(&[parameters.seed, OF_DRAWS, tree]);
    for _ in 0..wanted {
        let drawn = &mut times[(stream.uniform() * all as f64) as usize];
        *drawn = drawn.saturating_add(1);
    }
    let mut numbers = Vec::with_capacity(wanted as usize);
    match parameters.learner.tree.sampling.unit {
        Sampling::Rows => {
            for (row, times) in (0..).zip(times) {
                numbers.extend(std::iter::repeat_n(row, usize::from(times)));
            }
        }
        Sampling::Queries => {
            let queries = rows.iter().flat_map(|rows| rows.queries().map(move |query| (rows.first, query)));
            for ((first, query), times) in queries.zip(times) {
                for row in query {
                    numbers.extend(std::iter::repeat_n((first + row as u64) as u32, usize::from(times)));
                }
            }
        }
    }
    numbers
}
