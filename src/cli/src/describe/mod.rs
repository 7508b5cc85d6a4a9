//! Implements `planetree describe`.

mod costs;
mod dataset;
mod differences;
mod filled;
mod folds;
mod likeness;
mod metrics;
mod model;
mod model_costs;
mod other_files;
mod permutation;
mod predictions;
pub(crate) mod rounds;
mod run_directory;
mod steps;
mod strength;
mod tree;
mod trials;
mod weights;

use super::options::{JsonOptions, StoreOptions, ThreadOptions, parse_whole};
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, MANIFEST};
use planetree_data::table::{TableKind, TableReader};
use planetree_metric::Convention;
use serde_json::{Value, json};
use std::fmt::Write;

/// Summarise a dataset, model or other file written by planetree
///
/// Datasets: size, queries, labels, statistics of each feature, and warnings about possible problems. Models: trees,
/// training data, parameters and feature importance, or a single tree with --tree. Predictions: range of scores and
/// share of ties. Training logs: best round of each metric. Metrics: means. Differences: means, and the number of
/// queries that increased or decreased. Folds of a cross-validation: means and standard deviations. Trials of a search:
/// the best one. Run directories: parameters, and the status and time of each step. Likeness of rows: mean, and lowest value in the top rows.
/// Filled features: errors. All checksums are verified.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree describe mq2008
  planetree describe s3://datasets/judgments --json | jq .labels
  planetree describe mart.model --top 50
  planetree describe mart.model --tree 0
  planetree describe mart.model --permutation vali
  planetree describe s3://models/mart.model --json | jq '.importance[].feature'
  planetree describe scores.parquet")]
pub(crate) struct DescribeArguments {
    /// Dataset, model, predictions, rounds, metrics, differences, folds, trials or steps, or the directory of a run or of a
    /// cross-validation: a path or a URL
    path: String,

    #[command(flatten)]
    json: JsonOptions,

    /// Number of features of a model to show, most important first [default: 20; with --json, all]
    #[arg(long, value_name = "N", value_parser = parse_whole::<usize>)]
    top: Option<usize>,

    /// Show one tree of a model, by its number from 0
    #[arg(long, value_name = "N", value_parser = parse_whole::<usize>)]
    tree: Option<usize>,

    /// Part of the model that the tree belongs to, by its number from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "tree", value_parser = parse_whole::<usize>)]
    part: usize,

    /// Compute a model's permutation importance on a labelled dataset: the loss in quality when the values of one
    /// feature are shuffled
    #[arg(long, value_name = "DATASET", conflicts_with = "tree")]
    permutation: Option<String>,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: DescribeArguments, quiet: bool) -> Result<()> {
    let location = arguments.store.locate(&arguments.path)?;
    // Some web servers respond to the URL of a directory as if it were a file, so look for a manifest first.
    let is_file = location.join(MANIFEST).size()?.is_none() && location.size()?.is_some();
    if let Some(description) = run_directory::describe(&location)? {
        arguments.refuse_model_options("a run directory")?;
        return arguments.json.print(|| description.text, || description.json);
    }
    let (location, is_file) = match is_file {
        true => (location, true),
        false => match table_of_cv(&location)? {
            Some(table) => (table, true),
            None => (location, false),
        },
    };
    if !is_file {
        arguments.check_dataset(&location)?;
        let reader = DatasetReader::open(&location)?;
        tracing::info!("reading {location}: a dataset");
        arguments.refuse_model_options("a dataset")?;
        return dataset::run(&reader, &location, &arguments.json, &arguments.threads.pool()?, quiet);
    }
    let table = TableReader::open_any(&location)
        .map_err(|error| other_files::with_remedy(error, &location, &arguments.path))?;
    tracing::info!("reading {location}: {}", table.kind().noun());
    if table.kind() != TableKind::Model {
        arguments.refuse_model_options(table.kind().noun())?;
    }
    if let Some(tree) = arguments.tree {
        return tree::run(&table, arguments.part, tree, &arguments.json);
    }
    let description = match table.kind() {
        TableKind::Model => arguments.describe_model(&table, quiet)?,
        TableKind::Predictions => predictions::describe(&table)?,
        TableKind::Rounds => rounds::describe(&table)?,
        TableKind::Metrics => metrics::describe(&table)?,
        TableKind::Differences => differences::describe(&table)?,
        TableKind::Folds => folds::describe(&table)?,
        TableKind::Trials => trials::describe(&table)?,
        TableKind::Steps => steps::describe(&table)?,
        TableKind::Strength => strength::describe(&table)?,
        TableKind::Costs => costs::describe(&table)?,
        TableKind::Likeness => likeness::describe(&table)?,
        TableKind::Filled => filled::describe(&table)?,
    };
    arguments.json.print(|| description.text, || description.json)
}

/// Returns the table that sums up the directory of a cross-validation or of a search.
fn table_of_cv(directory: &Location) -> Result<Option<Location>> {
    for name in ["folds.parquet", "trials.parquet"] {
        let table = directory.join(name);
        if table.size()?.is_some() {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

impl DescribeArguments {
    fn describe_model(&self, table: &TableReader, quiet: bool) -> Result<TableDescription> {
        let Some(data) = &self.permutation else {
            return model::describe(table, self.top);
        };
        let data = self.store.locate(data)?;
        self.threads.pool()?.install(|| permutation::describe(table, &data, self.top, quiet))
    }

    /// Fails if a directory has none of the files that `describe` knows.
    fn check_dataset(&self, location: &Location) -> Result<()> {
        match location {
            Location::Local(path) if path.is_dir() && location.join(MANIFEST).size()?.is_none() => {
                Err(Error::place(
                    location,
                    "not a dataset, run or cross-validation: no _manifest.json, run.json, folds.parquet or trials.parquet",
                    format_args!(
                        "name one of its files or directories; `planetree sql {} -c 'SHOW TABLES'` lists its tables",
                        self.path
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    fn refuse_model_options(&self, noun: &str) -> Result<()> {
        let given = [
            ("--top", self.top.is_some()),
            ("--tree", self.tree.is_some()),
            ("--permutation", self.permutation.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Error::usage(
                format_args!("{option} is for models, but {} is {noun}", self.path),
                format_args!("remove {option}, or pass a model"),
            )),
            None => Ok(()),
        }
    }
}

/// The description of a table, as text and as JSON.
struct TableDescription {
    text: String,
    json: Value,
}

impl TableDescription {
    /// Creates a description, and adds to `json` the program that wrote the table.
    fn new(table: &TableReader, text: String, mut json: Value) -> Self {
        json["writer"] = json!(table.metadata("planetree.writer"));
        TableDescription { text, json }
    }

    /// Creates a description, and adds to `json` the program that wrote the table and the metric convention.
    fn with_convention(table: &TableReader, text: String, mut json: Value) -> Self {
        json["convention"] = json!(table.metadata(Convention::KEY));
        Self::new(table, text, json)
    }
}

/// Returns the first lines of a description: the location of the table, and the program that wrote it.
fn heading(name: &str, table: &TableReader) -> String {
    let mut text = String::new();
    line(&mut text, name, table.location());
    metadata_line(&mut text, "written by", table, "planetree.writer");
    text
}

/// Appends a line with a value of the table's metadata.
fn metadata_line(text: &mut String, name: &str, table: &TableReader, key: &str) {
    line(text, name, table.metadata(key).unwrap_or("-"));
}

/// Appends a line with a name and its value.
fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name:<22}{value}"); // writing to a String cannot fail
}

/// Formats a number with about five significant digits.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (value.fract() == 0.0 && size < 1e9) {
        format!("{value:.0}")
    } else if (1e-3..1e7).contains(&size) {
        format!("{value:.4}")
    } else {
        format!("{value:.3e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
    use std::sync::Arc;

    fn strings(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    /// Writes a table with the given columns and describes it.
    fn described(
        kind: TableKind,
        columns: Vec<(&str, ArrayRef)>,
        describe: fn(&TableReader) -> Result<TableDescription>,
    ) -> Result<TableDescription> {
        let root = tempfile::tempdir().unwrap();
        let location = Location::Local(root.path().join("table"));
        let columns = columns.into_iter().map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut writer = planetree_data::table::TableWriter::create(&location, kind, batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        describe(&TableReader::open(&location, kind).unwrap())
    }

    #[test]
    fn predictions_are_described() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("query_id", strings(&["a", "a", "a", "b", "b"])),
            ("doc_id", Arc::new(StringArray::from(vec![None::<&str>; 5]))),
            ("label", Arc::new(Float32Array::from(vec![Some(1.0), None, Some(0.0), Some(2.0), None]))),
            ("score", Arc::new(Float64Array::from(vec![0.5, -1.5, 0.5, 0.5, 7.5]))),
            ("rank", Arc::new(Int32Array::from(vec![1, 3, 2, 2, 1]))),
        ];
        let TableDescription { text, json } =
            described(TableKind::Predictions, columns, predictions::describe).unwrap();
        assert!(text.contains("scores                min -1.5000  mean 1.5000  max 7.5000\n"), "{text}");
        assert!(text.contains("labels                on 3 rows\n"), "{text}");
        assert!(text.contains("40.00 % of rows"), "{text}");
        assert_eq!((json["queries"].as_u64(), json["tied_share"].as_f64()), (Some(2), Some(0.4)));
    }

    #[test]
    fn the_best_round_has_the_lowest_error_or_the_highest_gain() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("round", Arc::new(Int32Array::from(vec![1, 1, 2, 2, 3, 3]))),
            ("split", strings(&["valid"; 6])),
            ("metric", strings(&["rmse", "ndcg@10", "rmse", "ndcg@10", "rmse", "ndcg@10"])),
            ("value", Arc::new(Float64Array::from(vec![0.9, 0.3, 0.7, 0.5, 0.8, 0.4]))),
            ("seconds", Arc::new(Float64Array::from(vec![0.0; 6]))),
        ];
        let TableDescription { text, json } =
            described(TableKind::Rounds, columns, rounds::describe).unwrap();
        for (metric, value) in [(0, 0.7), (1, 0.5)] {
            assert_eq!(json["metrics"][metric]["best"], serde_json::json!({ "round": 2, "value": value }));
        }
        assert!(text.contains("valid        ndcg@10               2     0.500000          3     0.400000\n"));
    }

    #[test]
    fn differences_are_described_pair_by_pair() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("query_id", strings(&["q", "r", "q", "r"])),
            ("system_a", strings(&["old", "old", "old", "old"])),
            ("system_b", strings(&["new", "new", "newer", "newer"])),
            ("difference", Arc::new(Float64Array::from(vec![0.25, 0.5, 0.0, -0.25]))),
        ];
        let TableDescription { text, json } =
            described(TableKind::Differences, columns, differences::describe).unwrap();
        let pair =
            serde_json::json!({ "a": "old", "b": "newer", "queries": 2, "mean": -0.125, "up": 0, "down": 1 });
        assert_eq!(json["pairs"][1], pair);
        assert!(
            text.contains(
                "old              new                     0.375000          2          2          0\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn metrics_are_described_and_a_missing_column_is_an_error() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("query_id", strings(&["a", "b", "c"])),
            ("ndcg@10", Arc::new(Float64Array::from(vec![Some(0.25), None, Some(0.75)]))),
        ];
        let json = described(TableKind::Metrics, columns.clone(), metrics::describe).unwrap().json;
        assert_eq!(json["means"][0], serde_json::json!({ "metric": "ndcg@10", "mean": 0.5, "queries": 2 }));
        let error = described(TableKind::Predictions, columns, predictions::describe).err().unwrap();
        assert!(error.to_string().ends_with("invalid predictions: there is no column score"), "{error}");
    }
}
