//! `planetree compare`

mod json;
mod text;

use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location};
use planetree_data::table::{TableKind, TableWriter};
use planetree_judge::compare::{
    Aligned, Moments, Options, Pair, ReadSystems, Source, Test, compare, read_systems, write_differences,
};
use planetree_metric::Convention;
use std::num::{NonZeroU64, NonZeroUsize};

/// Say whether rankings differ, or whether it may be chance
///
/// Compares systems query by query: metrics that `evaluate --output` wrote, or predictions, which are
/// evaluated on the way. Prints means and their difference with its interval, three tests, how many
/// queries got better and worse, and which moved most. Differences are later file less earlier file. Of
/// more than two files all pairs are compared, corrected for their number.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree compare old.parquet new.parquet
  planetree compare old.parquet new.parquet --metric err --json | jq '.pairs[0].randomisation.p'
  planetree compare bm25=a.parquet mart=b.parquet lambdamart=c.parquet --metric ndcg@10
  planetree compare s3://runs/monday/metrics.parquet s3://runs/tuesday/metrics.parquet --output moved.parquet")]
pub struct CompareArguments {
    /// Metrics, or predictions in Parquet, CSV or JSON: files or URLs, two or more, or one table of several systems
    #[arg(value_name = "[NAME=]FILE", required = true)]
    files: Vec<String>,

    /// The metric to compare by
    #[arg(long, value_name = "METRIC", default_value = "ndcg@10")]
    metric: String,

    /// The convention to evaluate predictions with [default: that of the metrics, else planetree]
    #[arg(long, value_name = "NAME")]
    convention: Option<String>,

    /// The test that decides whether systems differ
    #[arg(long, value_enum, default_value_t = Test::Randomisation)]
    test: Test,

    /// How likely it may be to find a difference where there is none
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = parse_share)]
    alpha: f64,

    /// The level of the interval of the difference
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = parse_share)]
    level: f64,

    /// Random ways to deal out signs in the randomisation test; of 20 queries or fewer that differ, all
    /// are tried
    #[arg(long, value_name = "N", default_value = "100000")]
    permutations: NonZeroU64,

    /// Times that queries are drawn for the interval
    #[arg(long, value_name = "N", default_value = "10000")]
    bootstrap: NonZeroU64,

    /// The seed of all draws
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// How many of the queries that moved most to name, in each direction
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Write the differences of all queries, to a file or a URL: .parquet (or no extension), .csv, .tsv, .json, .ndjson,
    /// text also with .gz or .zst
    #[arg(long, value_name = "FILE")]
    output: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
}

fn parse_share(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("expected a number between 0 and 1, such as 0.05".to_owned()),
    }
}

/// Everything there is to say.
struct Compared {
    read: ReadSystems,
    aligned: Aligned,
    options: Options,
    means: Vec<f64>,
    pairs: Vec<Pair>,
    notes: Vec<String>,
}

/// Runs the command.
pub fn run(arguments: &CompareArguments, quiet: bool) -> Result<()> {
    let access = if arguments.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
    let output = arguments.output.as_ref().map(|text| Location::parse(text, access)).transpose()?;
    if let Some(output) = &output {
        TableWriter::check(output, TableKind::Differences)?;
    }
    let compared = compared(arguments, access)?;
    if let Some(output) = &output {
        let Compared { read, aligned, pairs, .. } = &compared;
        let said = [read.metric.as_str(), &read.convention.to_string()];
        write_differences(output, &read.systems, aligned, pairs, said)?;
    }
    if !quiet {
        for note in &compared.notes {
            super::say(format_args!("note: {note}"));
        }
    }
    super::print(&if arguments.json {
        format!("{}\n", json::object(&compared))
    } else {
        text::text(&compared)
    })
}

fn compared(arguments: &CompareArguments, access: Access) -> Result<Compared> {
    let convention: Option<Convention> = arguments.convention.as_deref().map(str::parse).transpose()?;
    let sources: Vec<Source> =
        arguments.files.iter().map(|text| source(text, access)).collect::<Result<_>>()?;
    let threads = arguments.threads.map_or(0, NonZeroUsize::get);
    let read = read_systems(&sources, &arguments.metric, convention.as_ref(), threads)?;
    if read.systems.len() < 2 {
        return Err(Error::usage("there is only one system to compare", "name a second file"));
    }
    let aligned = Aligned::of(&read.systems)?;
    let options = Options {
        higher_is_better: read.higher_is_better,
        test: arguments.test,
        alpha: arguments.alpha,
        permutations: arguments.permutations.get(),
        resamples: arguments.bootstrap.get(),
        level: arguments.level,
        seed: arguments.seed,
        top: arguments.top,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::usage(format_args!("cannot start threads: {error}"), "lower --threads"))?;
    let pairs = pool.install(|| compare(&aligned, &options))?;
    let means = aligned.values.iter().map(|values| Moments::of(values).mean).collect();
    let notes = notes(&aligned, &pairs);
    Ok(Compared { read, aligned, options, means, pairs, notes })
}

/// What was named, and what it is called: a name has no separators; `s3://bucket/a=b` is all path.
fn source(text: &str, access: Access) -> Result<Source> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !name.contains(['/', ':', '.']) => (Some(name), path),
        _ => (None, text),
    };
    Ok(Source { name: name.map(str::to_owned), location: Location::parse(path, access)? })
}

/// What the numbers do not say by themselves.
fn notes(aligned: &Aligned, pairs: &[Pair]) -> Vec<String> {
    let mut notes = aligned.notes.clone();
    let same = pairs.iter().filter(|pair| pair.wins + pair.losses == 0).count();
    if same > 0 && pairs.len() == 1 {
        notes.push("the two have the same value for every query: there is nothing to test".to_owned());
    } else if same > 0 {
        notes.push(format!("{same} of the pairs have the same value for every query"));
    }
    let queries = aligned.queries.len();
    if queries == 1 {
        notes.push("one query shows nothing about others: no test can find a difference".to_owned());
    } else if queries < FEW {
        notes.push(format!("{queries} queries are few: only large differences can be told from chance"));
    }
    notes
}

/// Fewer are too few for a retrieval experiment (Buckley and Voorhees 2000, who prefer 50).
const FEW: usize = 25;

/// What a test is called on the command line.
fn name_of(test: Test) -> &'static str {
    match test {
        Test::Randomisation => "randomisation",
        Test::T => "t",
        Test::Wilcoxon => "wilcoxon",
    }
}
