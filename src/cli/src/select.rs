//! Implements `planetree select`.

use super::options::{DatasetOutputOptions, JsonOptions, StoreOptions, ThreadOptions, parse_whole};
use super::progress::CountProgress;
use clap::Args;
use planetree_base::error::Result;
use planetree_base::size::counted;
use planetree_data::dataset::DatasetReader;
use planetree_run::select::{SelectRequest, SelectedDataset, Selection, forest_parameters, select};
use serde_json::json;
use std::time::Instant;

/// Select the rows of a dataset that resemble those of another one
///
/// For transfer learning: finds documents of a large dataset that could be from a small one, to train on both. The
/// source is divided into folds of whole queries. For every fold, a forest learns to tell the other folds (0) from the
/// rows of --like (1), and scores the rows of the fold: their likeness. Only features that both datasets have are used.
/// Below --output, `like` has the rows of --like, `top-P` the P percent of the source with the highest likeness, and
/// `weighted` all rows of the source with their density ratios as weights, each with the common features;
/// `likeness.parquet` is a table for SQL. The outputs are byte-identical for any number of threads.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree select --source set1 --like set2 --share 0.1,1,10 --output transfer
  planetree train --data transfer/like --data transfer/top-1 --model model.parquet
  planetree select --source set1 --like set2 --as-weights --output transfer")]
pub(crate) struct SelectArguments {
    /// Dataset to select rows from: a directory or a URL
    #[arg(long, value_name = "DATASET")]
    source: String,

    /// Dataset that the rows should resemble
    #[arg(long, value_name = "DATASET")]
    like: String,

    /// Percentages of the rows to select, each for a dataset of its own
    #[arg(long, value_name = "LIST", value_delimiter = ',', required_unless_present = "as_weights")]
    share: Vec<f64>,

    /// Also write all rows, weighted by their density ratio (--like to source); all datasets then have weights
    #[arg(long)]
    as_weights: bool,

    /// Number of folds
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    folds: u32,

    /// Set one parameter of the forests, such as num_trees; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Random seed of the folds
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = parse_whole::<u64>)]
    seed: u64,

    /// Directory for the datasets and the table: a path or a URL
    #[arg(long, short, value_name = "DIR")]
    output: String,

    #[command(flatten)]
    dataset: DatasetOutputOptions,

    #[command(flatten)]
    json: JsonOptions,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &SelectArguments, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let store = &arguments.store;
    let plan = forest_parameters(&arguments.set)?;
    let source = DatasetReader::open(&store.locate(&arguments.source)?)?;
    let like = DatasetReader::open(&store.locate(&arguments.like)?)?;
    let output = store.locate(&arguments.output)?;
    let request = SelectRequest {
        output: &output,
        overwrite: arguments.dataset.overwrite(),
        partition_rows: arguments.dataset.partition_rows(),
        shares: &arguments.share,
        as_weights: arguments.as_weights,
        folds: arguments.folds as usize,
        plan: &plan,
        seed: arguments.seed,
    };
    let pool = arguments.threads.pool()?;
    let mut progress = CountProgress::start("likeness", Some(u64::from(arguments.folds)), "folds", quiet);
    let selection =
        pool.install(|| select(&source, &like, &request, &mut |fold| progress.step(u64::from(fold > 0))))?;
    drop(progress);
    if !quiet {
        selection.warnings.iter().for_each(|warning| super::message(format_args!("warning: {warning}")));
        for dataset in &selection.datasets {
            let least = dataset.least.map_or(String::new(), |least| format!(", likeness from {least:.4}"));
            super::message(format_args!(
                "{}: {}, {}{least}",
                output.join(&dataset.name),
                counted(dataset.rows, "row", "rows"),
                counted(dataset.queries, "query", "queries"),
            ));
        }
        super::message(format_args!(
            "{} common features, mean likeness {:.4}; {:.1} s",
            selection.features,
            selection.mean,
            started.elapsed().as_secs_f64()
        ));
    }
    if arguments.json.json() {
        super::print(&format!("{}\n", summary(arguments, &selection)))?;
    }
    Ok(())
}

fn summary(arguments: &SelectArguments, selection: &Selection) -> serde_json::Value {
    let dataset = |dataset: &SelectedDataset| {
        json!({
            "name": dataset.name,
            "share": dataset.share,
            "rows": dataset.rows,
            "queries": dataset.queries,
            "least_likeness": dataset.least,
        })
    };
    json!({
        "output": arguments.output,
        "features": selection.features,
        "mean_likeness": selection.mean,
        "datasets": selection.datasets.iter().map(dataset).collect::<Vec<_>>(),
    })
}
