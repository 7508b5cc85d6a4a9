//! Fills missing values with the predictions of forests (Mohan 2010, Algorithm 2).
//!
//! A *sweep* visits every feature with missing values. A forest learns the feature from the rows that have it, and its
//! predictions replace the missing values of the others. In the first sweep, forests see the features that all rows have
//! and those that were filled before; in later sweeps, all features. Sweeps end when the filled values hardly change.

mod cells;
mod copies;
mod sweep;
mod table;

pub use table::write_filled;

use cells::{CellSummary, summarise};
use copies::FilledRows;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, Staging, digest_of, refuse_dash, refuse_hidden};
use planetree_data::dataset::{DatasetReader, MANIFEST, Manifest};
use planetree_data::rewrite::{RewriteRequest, WeightColumn, rewrite};
use planetree_train::config::{Parameters, TrainingPlan};
use sweep::Imputation;

/// What to fill.
#[derive(Debug)]
pub struct ImputeRequest<'a> {
    /// The new dataset.
    pub output: &'a Location,
    /// Whether to replace an existing dataset.
    pub overwrite: bool,
    /// Number of rows per file; `None` for the default file size.
    pub partition_rows: Option<usize>,
    /// Maximum number of sweeps.
    pub sweeps: u32,
    /// Sweeps end when the filled values of no feature change by more than this, in standard deviations of the feature
    /// (root mean square).
    pub tolerance: f64,
    /// Parameters of the forests; see [`forest_parameters`].
    pub plan: &'a TrainingPlan,
}

impl ImputeRequest<'_> {
    /// Checks whether the output may be written, before the rows are read.
    pub fn check(&self) -> Result<()> {
        refuse_dash(self.output)?;
        refuse_hidden(self.output)?;
        Staging::begin(self.output, MANIFEST, self.overwrite).map(drop)
    }
}

/// A feature whose missing values were filled.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledFeature {
    /// Name of the feature.
    pub name: String,
    /// Number of rows that the forest learned from: those with a value.
    pub present: u64,
    /// Number of values that were missing, and are filled now.
    pub missing: u64,
    /// Mean of the values that were learned from.
    pub mean: f64,
    /// Mean of the filled values; `None` if no value was missing.
    pub filled_mean: Option<f64>,
    /// Root mean square error of the forest's out-of-bag predictions; `None` if there are none.
    pub error: Option<f64>,
    /// Share of the variance that the out-of-bag predictions explain; `None` if there are none or all values are equal.
    pub r2: Option<f64>,
}

/// The result of an imputation.
#[derive(Debug)]
pub struct Imputed {
    /// Manifest of the new dataset.
    pub manifest: Manifest,
    /// The features with missing values, in the order of the dataset.
    pub features: Vec<FilledFeature>,
    /// Number of sweeps.
    pub sweeps: u32,
    /// The largest change of a feature in the last sweep, in standard deviations.
    pub change: f64,
    /// Whether the change is within the tolerance.
    pub converged: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// The progress of an imputation.
#[derive(Debug, Clone, PartialEq)]
pub struct ImputeStep<'a> {
    /// Number of the sweep, counted from 1.
    pub sweep: u32,
    /// The feature that was filled.
    pub feature: &'a str,
    /// Number of features filled in the sweep so far.
    pub filled: usize,
    /// Number of features with missing values.
    pub features: usize,
    /// The largest change of a feature in the sweep so far.
    pub change: f64,
}

/// Returns the parameters of the forests, given parameters that the user sets as KEY=VALUE.
pub fn forest_parameters(set: &[String]) -> Result<TrainingPlan> {
    let plan =
        crate::forest::forest_plan(&["num_trees=30", "features_per_node=0.5", "min_data_in_leaf=3"], set)?;
    let forest = plan.only().and_then(Parameters::forest);
    match forest.is_some_and(|forest| forest.bootstrap || forest.tree.sampling.leaves_out()) {
        true => Ok(plan),
        false => Err(Error::usage(
            "--set bootstrap=false: every tree would see all rows, but the error of filled values is measured on rows \
             that a tree has not seen",
            "set bootstrap=true, or a bagging_fraction below 1",
        )),
    }
}

/// Fills the missing values of a dataset. Forests learn from the rows of `train`, or from those of the dataset itself.
pub fn impute(
    reader: &DatasetReader,
    train: Option<&DatasetReader>,
    request: &ImputeRequest<'_>,
    progress: &mut dyn FnMut(&ImputeStep<'_>),
) -> Result<Imputed> {
    let target = summarise(reader)?;
    let learned = train.map(summarise).transpose()?;
    let mut warnings = categorical_warnings(reader, &target);
    let mut imputation = Imputation::new((reader, target), train.zip(learned), request)?;
    let (mut sweeps, mut change) = (0, 0.0);
    while sweeps < request.sweeps && (sweeps == 0 || change > request.tolerance) && imputation.has_missing() {
        sweeps += 1;
        change = imputation.sweep(sweeps, progress)?;
    }
    let converged = change <= request.tolerance;
    if !converged && sweeps == 1 {
        warnings.push("filled values were not checked for convergence: raise --sweeps".to_owned());
    } else if !converged {
        warnings.push(format!(
            "after {sweeps} sweeps, filled values still change by {change:.3} standard deviations: raise --sweeps or --tolerance"
        ));
    }
    let features = imputation.filled_features();
    let rewritten = RewriteRequest {
        target: request.output,
        overwrite: request.overwrite,
        partition_rows: request.partition_rows,
        features: None,
        new_features: &[],
        weights: WeightColumn::AsBefore,
        origin: origin(reader, train, request)?,
    };
    let manifest = rewrite(reader, &rewritten, &FilledRows { cells: imputation.target_cells() })?;
    Ok(Imputed { manifest, features, sweeps, change, converged, warnings })
}

/// Returns warnings about categorical features with missing values, which are left as they are.
fn categorical_warnings(reader: &DatasetReader, summaries: &[CellSummary]) -> Vec<String> {
    let left = summaries.iter().zip(&reader.manifest().features);
    let left = left.filter(|(summary, _)| summary.categorical && !summary.missing.is_empty());
    let names: Vec<&str> = left.map(|(_, name)| name.as_str()).collect();
    match names.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "categorical features keep their missing values, because a forest predicts numbers: {}",
            names.join(", ")
        )],
    }
}

/// Returns a hash of everything that the new rows depend on.
fn origin(
    reader: &DatasetReader,
    train: Option<&DatasetReader>,
    request: &ImputeRequest<'_>,
) -> Result<Digest> {
    let learned = train.map_or_else(|| reader.fingerprint(), DatasetReader::fingerprint)?;
    let (sweeps, tolerance, forest) = (request.sweeps, request.tolerance, request.plan.to_toml());
    let text = format!("{} filled by {learned} {sweeps} {tolerance} {forest}", reader.fingerprint()?);
    Ok(digest_of(text.as_bytes()))
}

/// Returns the error for a feature without any value.
fn no_value(reader: &DatasetReader, name: &str) -> Error {
    Error::place(
        reader.location(),
        format_args!("feature {name} has no value in any row, so there is nothing to learn from"),
        format_args!("remove it: planetree convert {} --ignore-columns {name}", reader.location()),
    )
}
