//! Selects the rows of a dataset that resemble those of another one, for transfer learning: "how likely is this row to be
//! from the other dataset?" (Mohan 2010, chapter 5).

mod common;
mod likeness;
mod outputs;
mod table;

pub use likeness::Likeness;

use common::CommonFeatures;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::DatasetReader;
use planetree_train::config::TrainingPlan;

/// What to select.
#[derive(Debug)]
pub struct SelectRequest<'a> {
    /// Directory of the outputs.
    pub output: &'a Location,
    /// Whether to replace existing outputs.
    pub overwrite: bool,
    /// Number of rows per file; `None` for the default file size.
    pub partition_rows: Option<usize>,
    /// Percentages of the rows to select, each for a dataset.
    pub shares: &'a [f64],
    /// Whether to write all rows with their density ratios as weights.
    pub as_weights: bool,
    /// Number of folds.
    pub folds: usize,
    /// Parameters of the forests; see [`forest_parameters`].
    pub plan: &'a TrainingPlan,
    /// Random seed of the folds.
    pub seed: u64,
}

/// A dataset that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedDataset {
    /// Name of the dataset below the output directory.
    pub name: String,
    /// The percentage of rows; `None` if it has all of them.
    pub share: Option<f64>,
    /// Number of rows.
    pub rows: u64,
    /// Number of queries.
    pub queries: u64,
    /// The least likeness of a row.
    pub least: Option<f64>,
}

/// The result of a selection.
#[derive(Debug)]
pub struct Selection {
    /// Number of features that both datasets have.
    pub features: usize,
    /// The datasets that were written.
    pub datasets: Vec<SelectedDataset>,
    /// The mean likeness of the rows.
    pub mean: f64,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Returns the parameters of the forests, given parameters that the user sets as KEY=VALUE.
pub fn forest_parameters(set: &[String]) -> Result<TrainingPlan> {
    crate::forest::forest_plan(&["num_trees=200", "min_data_in_leaf=5"], set)
}

/// Computes the likeness of all rows of `source` to those of `like`, and writes the selected rows. `step` is called with
/// the fold that begins.
pub fn select(
    source: &DatasetReader,
    like: &DatasetReader,
    request: &SelectRequest<'_>,
    step: &mut dyn FnMut(usize),
) -> Result<Selection> {
    let features = CommonFeatures::of(source, like)?;
    let counts = selected_counts(source, request.shares)?;
    outputs::check_targets([source, like], request)?;
    let likeness = likeness::likeness(source, like, &features, request, step)?;
    let datasets = outputs::write(source, like, &features, (&likeness, &counts), request)?;
    table::write(source, &likeness, &request.output.join("likeness.parquet"))?;
    let mean = likeness.values.iter().sum::<f64>() / likeness.values.len().max(1) as f64;
    Ok(Selection { features: features.names.len(), datasets, mean, warnings: features.warnings })
}

/// Returns the number of rows of each share.
fn selected_counts(source: &DatasetReader, shares: &[f64]) -> Result<Vec<usize>> {
    let rows = source.manifest().rows;
    let count = |share: &f64| {
        if !(*share > 0.0 && *share <= 100.0) {
            return Err(Error::usage(
                format_args!("--share {share}: expected percentages above 0 and at most 100"),
                "pass a list such as 0.1,1,10",
            ));
        }
        match (share / 100.0 * rows as f64).round() as usize {
            0 => Err(Error::usage(
                format_args!("--share {share} selects nothing: {} has {rows} rows", source.location()),
                format_args!("raise the share to at least {}", 100.0 / rows.max(1) as f64),
            )),
            count => Ok(count),
        }
    };
    shares.iter().map(count).collect()
}
