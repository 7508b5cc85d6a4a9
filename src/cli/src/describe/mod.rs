//! `planetree describe`

mod column;
mod dataset;
mod differences;
mod folds;
mod metrics;
mod model;
mod permutation;
mod predictions;
mod rounds;
mod steps;
mod strength;
mod trials;

use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location};
use planetree_data::dataset::{DatasetReader, MANIFEST};
use planetree_data::table::{TableKind, TableReader};
use std::num::NonZeroUsize;

/// Say what is in a dataset, model or other file of planetree's
///
/// Of a dataset: its size, queries, labels, every feature, and what to look at before training on it.
/// Of a model: its trees, what it was trained on and how, and the features it relies on; one of its
/// trees with --tree. Of predictions: the scores and how many are tied. Of a log of rounds: the best
/// round of each metric. Of metrics: their means. Of differences: their means, and how many queries went
/// up or down. Of a cross-validation's folds: means and deviations; of a search's trials: the best. Of the
/// steps of a pipeline's run: what became of each. Every byte is checked against its checksum on the way.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree describe mq2008
  planetree describe s3://datasets/judgments --json | jq .labels
  planetree describe mart.model --top 50
  planetree describe mart.model --tree 0
  planetree describe mart.model --permutation vali
  planetree describe s3://models/mart.model --json | jq '.importance[].feature'
  planetree describe scores.parquet")]
pub struct DescribeArguments {
    /// A dataset, model, predictions, rounds, metrics, differences, folds or trials: a path or a URL
    path: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Features of a model to show, the most important first [default: 20, all with --json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Show one tree of a model, counted from 0
    #[arg(long, value_name = "N")]
    tree: Option<usize>,

    /// Also take a model's permutation importance on a labelled dataset: how much worse it gets when one
    /// feature's values are dealt out anew
    #[arg(long, value_name = "DATASET", conflicts_with = "tree")]
    permutation: Option<String>,

    /// Threads that read a dataset [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
}

/// Runs the command.
pub fn run(arguments: DescribeArguments, quiet: bool) -> Result<()> {
    let access = if arguments.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
    let location = Location::parse(&arguments.path, access)?;
    // Some web servers answer for a directory as they do for a file, so the manifest decides.
    let is_file = location.join(MANIFEST).size()?.is_none() && location.size()?.is_some();
    if !is_file {
        let reader = DatasetReader::open(&location)?;
        arguments.refuse_options_of_models("a dataset")?;
        let threads = arguments.threads.map_or(0, NonZeroUsize::get);
        return dataset::run(&reader, &location, arguments.json, threads, quiet);
    }
    let table = TableReader::open_any(&location)?;
    if table.kind() != TableKind::Model {
        arguments.refuse_options_of_models(table.kind().noun())?;
    }
    let described = match table.kind() {
        TableKind::Model => arguments.describe_model(&table, access, quiet)?,
        TableKind::Predictions => predictions::describe(&table)?,
        TableKind::Rounds => rounds::describe(&table)?,
        TableKind::Metrics => metrics::describe(&table)?,
        TableKind::Differences => differences::describe(&table)?,
        TableKind::Folds => folds::describe(&table)?,
        TableKind::Trials => trials::describe(&table)?,
        TableKind::Steps => steps::describe(&table)?,
        TableKind::Strength => strength::describe(&table)?,
    };
    super::print(&if arguments.json { format!("{}\n", described.json) } else { described.text })
}

impl DescribeArguments {
    fn describe_model(&self, table: &TableReader, access: Access, quiet: bool) -> Result<Described> {
        let Some(data) = &self.permutation else { return model::describe(table, self.top, self.tree) };
        let data = Location::parse(data, access)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.map_or(0, NonZeroUsize::get))
            .build()
            .map_err(|error| {
                Error::usage(format_args!("cannot start threads: {error}"), "lower --threads")
            })?;
        pool.install(|| permutation::describe(table, &data, self.top, quiet))
    }

    fn refuse_options_of_models(&self, what: &str) -> Result<()> {
        let given = [
            ("--top", self.top.is_some()),
            ("--tree", self.tree.is_some()),
            ("--permutation", self.permutation.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Error::usage(
                format_args!("{}: this is {what}; {option} is for models", self.path),
                format_args!("leave out {option}, or name a model"),
            )),
            None => Ok(()),
        }
    }
}

/// A file's description, for people and for programs.
struct Described {
    text: String,
    json: serde_json::Value,
}

/// One line of a description: a name and its value.
fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    use std::fmt::Write;
    let _ = writeln!(text, "{name:<22}{value}"); // a String takes everything
}

/// A number in few characters.
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

    /// A table of some columns, and its description.
    fn described(
        kind: TableKind,
        columns: Vec<(&str, ArrayRef)>,
        describe: fn(&TableReader) -> Result<Described>,
    ) -> Result<Described> {
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
        let Described { text, json } =
            described(TableKind::Predictions, columns, predictions::describe).unwrap();
        assert!(text.contains("scores                min -1.5000  mean 1.5000  max 7.5000\n"), "{text}");
        assert!(text.contains("labels                on 3 rows\n"), "{text}");
        assert!(text.contains("40.00 % of rows"), "{text}");
        assert_eq!((json["queries"].as_u64(), json["tied_share"].as_f64()), (Some(2), Some(0.4)));
    }

    #[test]
    fn the_best_round_is_the_lowest_error_and_the_highest_gain() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("round", Arc::new(Int32Array::from(vec![1, 1, 2, 2, 3, 3]))),
            ("split", strings(&["valid"; 6])),
            ("metric", strings(&["rmse", "ndcg@10", "rmse", "ndcg@10", "rmse", "ndcg@10"])),
            ("value", Arc::new(Float64Array::from(vec![0.9, 0.3, 0.7, 0.5, 0.8, 0.4]))),
            ("seconds", Arc::new(Float64Array::from(vec![0.0; 6]))),
        ];
        let Described { text, json } = described(TableKind::Rounds, columns, rounds::describe).unwrap();
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
        let Described { text, json } =
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
    fn metrics_are_described_and_other_columns_refused() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("query_id", strings(&["a", "b", "c"])),
            ("ndcg@10", Arc::new(Float64Array::from(vec![Some(0.25), None, Some(0.75)]))),
        ];
        let json = described(TableKind::Metrics, columns.clone(), metrics::describe).unwrap().json;
        assert_eq!(json["means"][0], serde_json::json!({ "metric": "ndcg@10", "mean": 0.5, "queries": 2 }));
        let error = described(TableKind::Predictions, columns, predictions::describe).err().unwrap();
        assert!(error.to_string().ends_with("not valid predictions: there is no column score"), "{error}");
    }
}
