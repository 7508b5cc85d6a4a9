//! Implements `planetree convert`.

use super::columns::{ColumnOptions, UnlabelledOptions, note_of_distinct_text, note_of_unlabelled};
use super::names::parse_names;
use super::options::{DatasetOutputOptions, JsonOptions, StoreOptions, ThreadOptions};
use super::progress::{ByteProgress, CountProgress};
use clap::{ArgAction, Args};
use planetree_base::error::{Error, Result};
use planetree_base::size::{counted, parse_size, shown_count, shown_size};
use planetree_base::storage::Location;
use planetree_data::convert::{ConvertOptions, QuerySample, Unlabelled, ZeroAsMissing, convert};
use planetree_data::dataset::{Categories, FeatureNames, Manifest};
use planetree_data::ingest::{Ingest, IngestOptions, InputFormat, RoleOptions, expand};
use planetree_data::rows::fault::{FAULTS, FaultEntry, Repair};

/// Convert LETOR text, CSV or Parquet to a dataset
///
/// Reads LETOR, SVMlight and Yahoo text, LightGBM text with .query and .weight side files, CSV, TSV and Parquet.
/// Compression with gzip, bzip2, xz or zstd is detected by content, not by name. Writes a directory of Parquet files
/// in which no query is split between row groups or files. The output is written atomically, and the same input
/// gives the same bytes on any number of threads.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree convert train.txt --output train
  planetree convert MQ2008/S*.txt.gz --output mq2008
  planetree convert s3://judgments/2026-11/ --output s3://datasets/judgments
  zcat big.txt.gz | planetree convert - --output big
  planetree convert clicks.csv --label-column clicks --query-column session --output clicks")]
pub(crate) struct ConvertArguments {
    /// Input files, directories, patterns or URLs, read in this order; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,

    /// Dataset to write: a directory or a URL
    #[arg(long, short, value_name = "DATASET")]
    output: String,

    /// Input format
    #[arg(long, value_enum, default_value_t = FormatArgument::Auto)]
    format: FormatArgument,

    #[command(flatten)]
    dataset: DatasetOutputOptions,

    #[command(flatten)]
    threads: ThreadOptions,

    /// Group rows by query, for inputs in which the rows of a query are not adjacent
    #[arg(long)]
    sort_queries: bool,

    /// Fraction of queries to keep, sampled by query id; a larger fraction includes all queries of a smaller one
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    query_fraction: f64,

    /// Random seed of the sample of --query-fraction
    #[arg(long, value_name = "N", default_value_t = 0)]
    query_seed: u64,

    /// Index of the first feature in LETOR text
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1))]
    index_base: u32,

    /// Maximum feature index; larger indices are errors
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_features: u32,

    /// Stop at the first invalid line (default)
    #[arg(long, conflicts_with = "lenient")]
    strict: bool,

    /// Repair or skip invalid lines, and count them by kind of error
    #[arg(long)]
    lenient: bool,

    /// With --lenient: stop after this many errors
    #[arg(long, value_name = "N", requires = "lenient")]
    max_errors: Option<u64>,

    /// File with one feature name per line, optionally preceded by the index of the feature
    #[arg(long, value_name = "FILE")]
    names: Option<String>,

    #[command(flatten)]
    columns: ColumnOptions,

    #[command(flatten)]
    unlabelled: UnlabelledOptions,

    /// Columns to keep even if they look like the index of a data frame
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    keep_columns: Vec<String>,

    /// Categorical columns, encoded as numbers [default: columns without any number]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    categorical: Vec<String>,

    /// Use the same category codes as this dataset. Only other programs that read the files need this: models match
    /// categories by their text
    #[arg(long, value_name = "DATASET")]
    categories_from: Option<String>,

    /// Treat zeros as missing values: of all features, or of those listed
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 0.., require_equals = true)]
    zero_as_missing: Option<Vec<String>>,

    /// Keep only the features that this dataset also has; may be repeated. The input must have column names
    #[arg(long, value_name = "DATASET")]
    common_features: Vec<String>,

    /// CatBoost column description (.cd) [default: the one next to the input]
    #[arg(long, value_name = "FILE")]
    column_description: Option<String>,

    /// Field delimiter of CSV input: a character, or `tab` [default: detected]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,

    /// Read 0,5 as 0.5 in CSV input [default: if the delimiter is `;`]
    #[arg(long)]
    decimal_comma: bool,

    /// Treat the first line of CSV input as data; columns are named 0, 1, 2, ...
    #[arg(long = "no-header", action = ArgAction::SetFalse)]
    header: bool,

    /// Memory limit
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_size)]
    memory_limit: u64,

    #[command(flatten)]
    store: StoreOptions,

    #[command(flatten)]
    json: JsonOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FormatArgument {
    /// Detect the format by the content of the first input
    Auto,
    /// LETOR, SVMlight, Yahoo or LightGBM text
    Letor,
    /// Columns separated by commas, tabs or other characters
    Csv,
    /// Parquet files
    Parquet,
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ if text.len() == 1 && !matches!(text, "\"" | "\n" | "\r") => Ok(text.as_bytes()[0]),
        _ => Err("expected one character, or `tab`".to_owned()),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &ConvertArguments, quiet: bool) -> Result<()> {
    let store = &arguments.store;
    let mut options = ConvertOptions {
        output: store.locate(&arguments.output)?,
        overwrite: arguments.dataset.overwrite(),
        partition_rows: arguments.dataset.partition_rows(),
        threads: arguments.threads.count(),
        sort_queries: arguments.sort_queries,
        max_errors: arguments.max_errors,
        query_sample: QuerySample::new(arguments.query_fraction, arguments.query_seed)?,
        zero_as_missing: match &arguments.zero_as_missing {
            None => ZeroAsMissing::None,
            Some(names) if names.is_empty() => ZeroAsMissing::All,
            Some(names) => ZeroAsMissing::Features(names.clone()),
        },
        unlabelled: arguments.unlabelled.rule(),
        memory_limit: arguments.memory_limit,
        categories: match &arguments.categories_from {
            Some(dataset) => Manifest::read(&store.locate(dataset)?)?.categories,
            None => Vec::new(),
        },
    };
    let known = options.categories.clone();
    let inputs = expand(&arguments.inputs, store.access())?;
    if let Some(other) = inputs.iter().find(|input| input.categories != inputs[0].categories) {
        return Err(Error::place(
            &other.name,
            format_args!("category codes differ from those of {}", inputs[0].name),
            "convert the original tables together",
        ));
    }
    if let Some(first) = inputs.first().filter(|first| !first.categories.is_empty()) {
        options.categories.clone_from(&first.categories);
    }
    let mut ingest_options = ingest_options(arguments, &known)?;
    if !arguments.common_features.is_empty() {
        ingest_options.roles.ignored.extend(other_features(arguments, &known)?);
    }
    let ingest = Ingest::open(inputs, ingest_options)?;
    if !quiet {
        ingest.notes().iter().for_each(|note| super::message(format_args!("note: {note}")));
    }
    let mut progress = ByteProgress::start("converting", ingest.plain_bytes(), quiet);
    let mut gathering: Option<CountProgress> = None;
    let mut changed = 0; // rows without a label that are left out or labelled
    let manifest = convert(ingest, &options, &mut |step| {
        changed += step.unlabelled as u64;
        if step.gathered == 0 {
            return progress.step(step.bytes, step.rows);
        }
        let rows = progress.end_bar();
        let start = || CountProgress::start("gathering queries", Some(rows), "rows", quiet);
        gathering.get_or_insert_with(start).step(step.gathered as u64);
    })?;
    drop(gathering);
    let (seconds, rate) = progress.finish();
    if !quiet {
        print_summary(&manifest, &options.output, seconds, rate);
        let unlabelled = note_of_unlabelled(&manifest, options.unlabelled, changed);
        unlabelled.iter().for_each(|note| super::message(format_args!("note: {note}")));
        // Otherwise, the categories are those of all queries.
        let note = note_of_distinct_text(&manifest, &options).filter(|_| arguments.query_fraction >= 1.0);
        note.iter().for_each(|note| super::message(format_args!("note: {note}")));
    }
    if arguments.json.json() {
        let summary = serde_json::json!({
            "dataset": options.output.to_string(),
            "rows": manifest.rows,
            "queries": manifest.queries,
            "unlabelled": manifest.unlabelled,
            "unlabelled_dropped": if options.unlabelled == Unlabelled::Drop { changed } else { 0 },
            "unlabelled_zeroed": if options.unlabelled == Unlabelled::Zero { changed } else { 0 },
            "features": manifest.features.len(),
            "files": manifest.files.len(),
            "bytes": manifest.files.iter().map(|file| file.bytes).sum::<u64>(),
            "source_bytes": manifest.source.bytes,
            "fingerprint": manifest.fingerprint,
            "repairs": manifest.repairs,
            "seconds": seconds,
        });
        super::print(&format!("{summary}\n"))?;
    }
    Ok(())
}

fn ingest_options(arguments: &ConvertArguments, known: &[Categories]) -> Result<IngestOptions> {
    let read_text = |path: &String| -> Result<(String, String)> {
        let location = arguments.store.locate(path)?;
        let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), location.to_string()))
    };
    let feature_names = match &arguments.names {
        Some(path) => {
            let (text, name) = read_text(path)?;
            Some(parse_names(&text, &name)?)
        }
        None => None,
    };
    Ok(IngestOptions {
        format: match arguments.format {
            FormatArgument::Auto => None,
            FormatArgument::Letor => Some(InputFormat::Letor),
            FormatArgument::Csv => Some(InputFormat::Csv),
            FormatArgument::Parquet => Some(InputFormat::Parquet),
        },
        index_base: arguments.index_base,
        max_features: arguments.max_features,
        lenient: arguments.lenient,
        feature_names,
        roles: RoleOptions {
            categories: arguments.categorical.clone(),
            known_categories: known.iter().map(|known| known.feature.clone()).collect(),
            kept: arguments.keep_columns.clone(),
            ..arguments.columns.roles()
        },
        delimiter: arguments.delimiter,
        decimal_comma: arguments.decimal_comma,
        header: arguments.header,
        description: arguments.column_description.as_ref().map(read_text).transpose()?,
        chunk_bytes: 1 << 20,
        memory_limit: arguments.memory_limit,
    })
}

/// Returns the features of the input that some dataset of `--common-features` does not have.
fn other_features(arguments: &ConvertArguments, known: &[Categories]) -> Result<Vec<String>> {
    if arguments.inputs.iter().any(|input| input == "-") {
        return Err(Error::usage(
            "--common-features: standard input can be read only once",
            "convert it to a dataset first, then convert that with --common-features",
        ));
    }
    let inputs = expand(&arguments.inputs, arguments.store.access())?;
    let opened = Ingest::open(inputs, ingest_options(arguments, known)?)?;
    let FeatureNames::Given(features) = &opened.layout().features else {
        return Err(Error::usage(
            "--common-features: features of this text have numbers, not names",
            "convert it to a dataset first, then convert that with --common-features",
        ));
    };
    let mut others = Vec::new();
    for dataset in &arguments.common_features {
        let manifest = Manifest::read(&arguments.store.locate(dataset)?)?;
        others.extend(features.iter().filter(|feature| !manifest.features.contains(feature)).cloned());
    }
    if features.iter().all(|feature| others.contains(feature)) {
        return Err(Error::usage(
            format_args!("--common-features {}: no common feature", arguments.common_features.join(" ")),
            "compare the names of the features (planetree describe), and rename them with --names",
        ));
    }
    others.sort_unstable();
    others.dedup();
    Ok(others)
}

fn print_summary(manifest: &Manifest, output: &Location, seconds: f64, rate: f64) {
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    super::message(format_args!(
        "{output}: {}, {}, {} in {} of {}{}; {seconds:.1} s, {}/s",
        counted(manifest.rows, "row", "rows"),
        counted(manifest.queries, "query", "queries"),
        counted(manifest.features.len() as u64, "feature", "features"),
        counted(manifest.files.len() as u64, "file", "files"),
        shown_size(bytes),
        share_of_input(bytes, manifest.source.bytes),
        shown_size(rate as u64),
    ));
    if manifest.unlabelled == manifest.rows && manifest.rows > 0 {
        super::message(format_args!(
            "note: no labels: the dataset can be scored, but not trained on; a table may need --label-column NAME"
        ));
    } else if manifest.unlabelled > 0 {
        let rows = if manifest.unlabelled == 1 { "row has" } else { "rows have" };
        super::message(format_args!(
            "note: {} {rows} no label (-1 or empty); to train on the others, add --unlabelled drop, or zero",
            shown_count(manifest.unlabelled)
        ));
    }
    print_repairs(manifest);
}

/// Prints how many faults of the input were repaired.
pub(crate) fn print_repairs(manifest: &Manifest) {
    for repair in &manifest.repairs {
        let repaired = FAULTS.iter().find(|entry| entry.name == repair.kind).map_or("", repair_text);
        super::message(format_args!("note: {} x {}: {repaired}", shown_count(repair.count), repair.kind));
    }
}

/// Returns the size of the dataset as a share of the input. For tiny inputs it says nothing, because the dataset is mostly
/// metadata.
fn share_of_input(bytes: u64, input: u64) -> String {
    let percent = 100.0 * bytes as f64 / input.max(1) as f64;
    if percent <= 100.0 { format!(" ({percent:.0} % of the input)") } else { String::new() }
}

fn repair_text(entry: &FaultEntry) -> &'static str {
    match entry.repair {
        Repair::SkipLine => "line skipped",
        Repair::Missing => "value treated as missing",
        Repair::Unlabelled => "row treated as unlabelled",
        Repair::LastWins => "last value used",
    }
}
