//! Implements `planetree augment`.

use super::columns::ColumnOptions;
use super::options::{
    DatasetOutputOptions, JsonOptions, StoreOptions, ThreadOptions, file_name, parse_whole, split_name,
};
use super::tables::InputData;
use clap::{Args, ValueEnum};
use planetree_base::error::Result;
use planetree_base::size::counted;
use planetree_data::dataset::{DatasetReader, Manifest};
use planetree_run::augment::{AugmentColumn, AugmentRequest, DocumentSample, ScoringModel, augment};
use serde_json::json;
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
    /// Dataset: a directory or a URL. CSV, Parquet and LETOR files are converted to a temporary dataset first
    #[arg(long, value_name = "DATASET")]
    data: String,

    #[command(flatten)]
    data_columns: ColumnOptions,

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
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = parse_whole::<u64>)]
    seed: u64,

    /// Dataset to write: a directory or a URL
    #[arg(long, short, value_name = "DATASET")]
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
    InputData::new(&arguments.data_columns, &arguments.store, &arguments.threads, quiet)
        .run("augment", |input| augment_data(arguments, input, quiet))
}

fn augment_data(arguments: &AugmentArguments, input: &mut InputData<'_>, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let store = &arguments.store;
    let models = arguments.models()?;
    let sample = arguments.documents.map(|share| DocumentSample::new(share, arguments.seed)).transpose()?;
    let output = store.locate_output(&arguments.output, &[&store.locate(&arguments.data)?])?;
    let request = AugmentRequest {
        output: &output,
        overwrite: arguments.dataset.overwrite(),
        partition_rows: arguments.dataset.partition_rows(),
        models: &models,
        columns: &arguments.columns.iter().map(|column| column.kind()).collect::<Vec<_>>(),
        sample,
    };
    request.check()?; // before a table is converted, which may take long
    let reader = DatasetReader::open(&input.dataset(&arguments.data)?)?;
    let (manifest, warnings) = arguments.threads.pool()?.install(|| augment(&reader, &request))?;
    if !quiet {
        warnings
            .iter()
            .for_each(|warning| super::message(format_args!("warning: {}", input.as_given(warning))));
        let rows = counted(manifest.rows, "row", "rows");
        let queries = counted(manifest.queries, "query", "queries");
        let features = counted(manifest.features.len() as u64, "feature", "features");
        let seconds = started.elapsed().as_secs_f64();
        super::message(format_args!("{output}: {rows}, {queries}, {features}; {seconds:.1} s"));
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
