//! Implements `planetree augment`.

use super::options::{JsonOptions, StoreOptions, ThreadOptions, file_name, parse_count, split_name};
use clap::{Args, ValueEnum};
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_count;
use planetree_data::dataset::{DatasetReader, Manifest};
use planetree_run::augment::{AugmentColumn, AugmentRequest, DocumentSample, ScoringModel, augment};
use serde_json::json;
use std::num::NonZeroUsize;
use std::time::Instant;

/// Add scores of models as features, or samples of queries as further queries
///
/// Writes a dataset with all rows and columns of another one. --model adds the score of a model as the feature
/// NAME_score, so that another model can learn from it; --columns also adds the class probabilities of models trained
/// with target=ordinal, as NAME_class_G and NAME_cumulative_G. --documents 0.5 adds a copy of every query with half of its
/// documents, drawn at random; its id ends with `:sample`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree augment --data train --model mart=mart.parquet --output train-mart
  planetree augment --data train --documents 0.5 --seed 1 --output train-aug50")]
pub(crate) struct AugmentArguments {
    /// Dataset: a directory or a URL
    #[arg(long, value_name = "DATASET")]
    data: String,

    /// Models to score the rows with: files or URLs, optionally with names
    #[arg(long, value_name = "[NAME=]FILE", num_args = 1.., required_unless_present = "documents")]
    model: Vec<String>,

    /// Columns to add for every model
    #[arg(long, value_enum, value_delimiter = ',', default_value = "score")]
    columns: Vec<ColumnArgument>,

    /// Share of the documents of every query to add as a further query
    #[arg(long, value_name = "SHARE")]
    documents: Option<f64>,

    /// Random seed of --documents
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Dataset to write: a directory or a URL
    #[arg(long, short, value_name = "DATASET")]
    output: String,

    /// Rows per output file; a file ends with the first query that reaches this number
    #[arg(long, value_name = "N", value_parser = parse_count)]
    partition_rows: Option<NonZeroUsize>,

    /// Replace an existing dataset
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    json: JsonOptions,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// A kind of column to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ColumnArgument {
    /// The score
    Score,
    /// The probability of every class, of models trained on classes
    Classes,
    /// The probability of every class or a lower one, of models trained on classes
    Cumulative,
}

impl ColumnArgument {
    fn kind(self) -> AugmentColumn {
        match self {
            ColumnArgument::Score => AugmentColumn::Score,
            ColumnArgument::Classes => AugmentColumn::Classes,
            ColumnArgument::Cumulative => AugmentColumn::Cumulative,
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &AugmentArguments, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let store = &arguments.store;
    let models = arguments.models()?;
    let sample = arguments.documents.map(|share| DocumentSample::new(share, arguments.seed)).transpose()?;
    let reader = DatasetReader::open(&store.locate(&arguments.data)?)?;
    let output = store.locate(&arguments.output)?;
    if reader.location().is_same_place(&output) {
        return Err(Error::usage(
            format_args!("{output} is both the input and the output"),
            "name another dataset with --output",
        ));
    }
    let request = AugmentRequest {
        output: &output,
        overwrite: arguments.overwrite,
        partition_rows: arguments.partition_rows.map(NonZeroUsize::get),
        models: &models,
        columns: &arguments.columns.iter().map(|column| column.kind()).collect::<Vec<_>>(),
        sample,
    };
    let (manifest, warnings) = arguments.threads.pool()?.install(|| augment(&reader, &request))?;
    if !quiet {
        warnings.iter().for_each(|warning| super::message(format_args!("warning: {warning}")));
        let [rows, queries] = [manifest.rows, manifest.queries].map(shown_count);
        let features = shown_count(manifest.features.len() as u64);
        let seconds = started.elapsed().as_secs_f64();
        super::message(format_args!(
            "{output}: {rows} rows, {queries} queries, {features} features; {seconds:.1} s"
        ));
    }
    if arguments.json.json() {
        super::print(&format!(
            "{}\n",
            summary(&output.to_string(), &manifest, reader.manifest().features.len())
        ))?;
    }
    Ok(())
}

fn summary(output: &str, manifest: &Manifest, old_features: usize) -> serde_json::Value {
    json!({
        "dataset": output,
        "rows": manifest.rows,
        "queries": manifest.queries,
        "features": manifest.features.len(),
        "new_features": manifest.features.get(old_features..),
        "fingerprint": manifest.fingerprint,
    })
}

impl AugmentArguments {
    fn models(&self) -> Result<Vec<ScoringModel>> {
        let model = |text: &String| {
            let (name, path) = split_name(text);
            let stem = file_name(path).trim_end_matches(".parquet");
            Ok(ScoringModel { name: name.unwrap_or(stem).to_owned(), location: self.store.locate(path)? })
        };
        self.model.iter().map(model).collect()
    }
}
