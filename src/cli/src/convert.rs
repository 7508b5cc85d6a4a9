//! `planetree convert`

use super::names::parse_names;
use super::progress::{ByteProgress, Progress};
use clap::{ArgAction, Args};
use planetree_base::error::{Error, Result};
use planetree_base::size::{parse_size, shown_count, shown_size};
use planetree_base::storage::{Access, Location};
use planetree_data::convert::{ConvertOptions, QueryShare, convert};
use planetree_data::dataset::{Categories, Manifest};
use planetree_data::ingest::{Format, Ingest, IngestOptions, RoleOptions, expand};
use planetree_data::rows::fault::{FaultEntry, Repair, TABLE};
use std::num::NonZeroUsize;

/// Turn ranking text, CSV or Parquet into a dataset
///
/// Reads LETOR/SVMlight/Yahoo text, LightGBM text with .query/.weight side files, CSV/TSV and
/// Parquet; plain or packed with gzip, bzip2, xz or zstd, whatever the file is called. Writes a
/// directory of Parquet files with whole queries per row group and file. The output appears whole
/// or not at all, and the same input gives the same bytes on any number of threads.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree convert train.txt --output train
  planetree convert MQ2008/S*.txt.gz --output mq2008
  planetree convert s3://judgments/2026-11/ --output s3://datasets/judgments
  zcat big.txt.gz | planetree convert - --output big
  planetree convert clicks.csv --label-column clicks --query-column session --output clicks")]
pub struct ConvertArguments {
    /// Files, directories, patterns or URLs, in this order; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,

    /// The dataset to write: a directory or a URL
    #[arg(long, short, value_name = "DATASET")]
    output: String,

    /// How to read the input
    #[arg(long, value_enum, default_value_t = FormatArgument::Auto)]
    format: FormatArgument,

    /// End a file at the first query that ends at or after this many rows [default: after four row
    /// groups of 65,536 rows or 8,388,608 values]
    #[arg(long, value_name = "N")]
    partition_rows: Option<NonZeroUsize>,

    /// Threads that decode and encode [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Replace the dataset if it exists
    #[arg(long)]
    overwrite: bool,

    /// Gather queries whose rows are scattered over the input
    #[arg(long)]
    sort_queries: bool,

    /// Keep this share of the queries, drawn by their ids: a larger share has those of a smaller one too
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    query_fraction: f64,

    /// Seed of the sample
    #[arg(long, value_name = "N", default_value_t = 0)]
    query_seed: u64,

    /// Index of the first feature in LETOR text
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1))]
    index_base: u32,

    /// Refuse feature indices beyond this
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_features: u32,

    /// Stop at the first faulty line (this is the default)
    #[arg(long, conflicts_with = "lenient")]
    strict: bool,

    /// Repair or leave out faulty lines, and count them by kind
    #[arg(long)]
    lenient: bool,

    /// With --lenient: give up after this many faults
    #[arg(long, value_name = "N", requires = "lenient")]
    max_errors: Option<u64>,

    /// A file with the features' names, one a line, perhaps behind its index
    #[arg(long, value_name = "FILE")]
    names: Option<String>,

    /// Column with the query ids (CSV, Parquet) [default: by its name]
    #[arg(long, value_name = "NAME")]
    query_column: Option<String>,

    /// Column with the labels
    #[arg(long, value_name = "NAME")]
    label_column: Option<String>,

    /// Column with the document ids
    #[arg(long, value_name = "NAME")]
    doc_column: Option<String>,

    /// Column with the weights
    #[arg(long, value_name = "NAME")]
    weight_column: Option<String>,

    /// Column with the positions
    #[arg(long, value_name = "NAME")]
    position_column: Option<String>,

    /// Columns to leave out
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    ignore_columns: Vec<String>,

    /// Columns to keep although they are the index of a data frame
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    keep_columns: Vec<String>,

    /// Columns of words, to be coded as numbers [default: those without a single number]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    categorical: Vec<String>,

    /// Take the codes of words from this dataset, for programs that read the files themselves; models map words by
    /// themselves
    #[arg(long, value_name = "DATASET")]
    categories_from: Option<String>,

    /// A CatBoost column description (.cd) [default: the one beside the input]
    #[arg(long, value_name = "FILE")]
    column_description: Option<String>,

    /// What separates the fields of a table: a character, or `tab` [default: by the content]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,

    /// Read 0,5 as 0.5 in tables [default: where fields are separated by `;`]
    #[arg(long)]
    decimal_comma: bool,

    /// The table has no line of names; columns are called 0, 1, 2, ...
    #[arg(long = "no-header", action = ArgAction::SetFalse)]
    header: bool,

    /// Stay below this much memory
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_size)]
    memory_limit: u64,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,

    /// Print what was done as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FormatArgument {
    /// By the content of the first input
    Auto,
    /// LETOR, SVMlight, Yahoo or LightGBM text
    Letor,
    /// Comma-, tab- or otherwise separated columns
    Csv,
    /// Parquet files
    Parquet,
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ if text.len() == 1 && !matches!(text, "\"" | "\n" | "\r") => Ok(text.as_bytes()[0]),
        _ => Err("write one character, or `tab`".to_owned()),
    }
}

/// Runs the command.
pub fn run(arguments: &ConvertArguments, quiet: bool) -> Result<()> {
    let access = if arguments.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
    let mut options = ConvertOptions {
        output: Location::parse(&arguments.output, access)?,
        overwrite: arguments.overwrite,
        partition_rows: arguments.partition_rows.map(NonZeroUsize::get),
        threads: arguments
            .threads
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get),
        sort_queries: arguments.sort_queries,
        max_errors: arguments.max_errors,
        share: QueryShare::new(arguments.query_fraction, arguments.query_seed)?,
        memory_limit: arguments.memory_limit,
        categories: match &arguments.categories_from {
            Some(dataset) => Manifest::read(&Location::parse(dataset, access)?)?.categories,
            None => Vec::new(),
        },
    };
    let known = options.categories.clone();
    let inputs = expand(&arguments.inputs, access)?;
    if let Some(odd) = inputs.iter().find(|input| input.categories != inputs[0].categories) {
        return Err(Error::place(
            &odd.name,
            format_args!("its words are coded differently from those of {}", inputs[0].name),
            "convert the tables they were made from together",
        ));
    }
    if let Some(first) = inputs.first().filter(|first| !first.categories.is_empty()) {
        options.categories.clone_from(&first.categories);
    }
    let ingest = Ingest::open(inputs, ingest_options(arguments, &known, access)?)?;
    if !quiet {
        ingest.notes().iter().for_each(|note| super::say(format_args!("note: {note}")));
    }
    let mut progress = ByteProgress::start("converting", ingest.plain_bytes(), quiet);
    let mut gathering: Option<Progress> = None;
    let manifest = convert(ingest, &options, &mut |step| {
        if step.gathered == 0 {
            return progress.step(step.bytes, step.rows);
        }
        let rows = progress.end_bar();
        let start = || Progress::start("gathering queries", Some(rows), "rows", quiet);
        gathering.get_or_insert_with(start).step(step.gathered as u64);
    })?;
    drop(gathering);
    let (seconds, rate) = progress.finish();
    if !quiet {
        summarise(&manifest, &options.output, seconds, rate);
    }
    if arguments.json {
        let summary = serde_json::json!({
            "dataset": options.output.to_string(),
            "rows": manifest.rows,
            "queries": manifest.queries,
            "unlabelled": manifest.unlabelled,
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

fn ingest_options(
    arguments: &ConvertArguments,
    known: &[Categories],
    access: Access,
) -> Result<IngestOptions> {
    let text_of = |path: &String| -> Result<(String, String)> {
        let location = Location::parse(path, access)?;
        let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), location.to_string()))
    };
    let feature_names = match &arguments.names {
        Some(path) => {
            let (text, name) = text_of(path)?;
            Some(parse_names(&text, &name)?)
        }
        None => None,
    };
    Ok(IngestOptions {
        format: match arguments.format {
            FormatArgument::Auto => None,
            FormatArgument::Letor => Some(Format::Letor),
            FormatArgument::Csv => Some(Format::Csv),
            FormatArgument::Parquet => Some(Format::Parquet),
        },
        index_base: arguments.index_base,
        max_features: arguments.max_features,
        lenient: arguments.lenient,
        feature_names,
        roles: RoleOptions {
            query: arguments.query_column.clone(),
            label: arguments.label_column.clone(),
            document: arguments.doc_column.clone(),
            weight: arguments.weight_column.clone(),
            position: arguments.position_column.clone(),
            ignored: arguments.ignore_columns.clone(),
            categories: arguments.categorical.clone(),
            known_categories: known.iter().map(|known| known.feature.clone()).collect(),
            index: Vec::new(),
            kept: arguments.keep_columns.clone(),
        },
        delimiter: arguments.delimiter,
        decimal_comma: arguments.decimal_comma,
        header: arguments.header,
        description: arguments.column_description.as_ref().map(text_of).transpose()?,
        chunk_bytes: 1 << 20,
    })
}

fn summarise(manifest: &Manifest, output: &Location, seconds: f64, rate: f64) {
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    super::say(format_args!(
        "{output}: {} rows, {} queries, {} features in {} file{} of {} ({:.0} % of the input); {seconds:.1} s, {}/s",
        shown_count(manifest.rows),
        shown_count(manifest.queries),
        shown_count(manifest.features.len() as u64),
        manifest.files.len(),
        if manifest.files.len() == 1 { "" } else { "s" },
        shown_size(bytes),
        100.0 * bytes as f64 / manifest.source.bytes.max(1) as f64,
        shown_size(rate as u64),
    ));
    if manifest.unlabelled > 0 {
        let rows = if manifest.unlabelled == 1 { "row has" } else { "rows have" };
        super::say(format_args!(
            "note: {} {rows} no label (written as -1 or left empty)",
            shown_count(manifest.unlabelled)
        ));
    }
    for repair in &manifest.repairs {
        let done = TABLE.iter().find(|entry| entry.name == repair.kind).map_or("", done_with);
        super::say(format_args!("note: {} x {}: {done}", shown_count(repair.count), repair.kind));
    }
}

fn done_with(entry: &FaultEntry) -> &'static str {
    match entry.repair {
        Repair::SkipLine => "line left out",
        Repair::Missing => "value taken as missing",
        Repair::Unlabelled => "taken as unlabelled",
        Repair::LastWins => "last value taken",
    }
}
