//! `planetree evaluate`

mod report;

use super::help;
use super::progress::Progress;
use super::remote::ClusterOptions;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::size::{parse_size, shown_count};
use planetree_base::storage::{Access, Location};
use planetree_data::table::provenance::SEEN_ROWS;
use planetree_data::table::{TableKind, TableWriter};
use planetree_judge::evaluate::{
    CurvePoint, DEFAULT_MEMORY, DEFAULT_METRICS, Join, Judgments, MetricsLayout, MetricsTable, Ranking,
    Request, Results, SegmentSummary, Summary, evaluate,
};
use planetree_metric::{Convention, Metric};
use report::{Curve, Report, System};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::Instant;

const EXAMPLES: &str = "Examples:
  planetree evaluate --predictions predictions.parquet
  planetree evaluate --predictions predictions.parquet --metrics ndcg@10,err,p@5 --convention letor4
  planetree evaluate --predictions old=a.parquet --predictions new=b.parquet --json
  planetree evaluate --predictions predictions.parquet --output metrics.parquet
  planetree evaluate --predictions 100=a.parquet --predictions 500=b.parquet --curve trees
  planetree evaluate --predictions predictions.parquet --by market --join queries.parquet
  planetree evaluate --scores scores.txt --data test
  planetree evaluate --run bm25.run --qrels qrels.txt --metrics ndcg@10,map,recall@100";

/// Evaluate rankings: per-query metrics, means and distribution
///
/// Rankings are predictions (Parquet, CSV, TSV, JSON or NDJSON tables with query_id, label, score and perhaps doc_id),
/// scores as text for the rows of a dataset, or runs of trec_eval. Several are shown side by side. Rows may
/// come in any order; what does not fit into memory is sorted on disk.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(after_long_help = format!(
    "{EXAMPLES}\n\nMetrics, for --metrics:\n{}\nConventions, for --convention:\n{}",
    help::metrics(),
    help::conventions()
))]
pub struct EvaluateArguments {
    /// Predictions: a file or a URL, Parquet, or .csv, .tsv, .json or .ndjson, also .gz or .zst; repeat it to see systems side by side
    #[arg(long, value_name = "[NAME=]FILE", required_unless_present_any = ["scores", "run"])]
    predictions: Vec<String>,

    /// Scores as text, one a line in the order of the rows of --data
    #[arg(long, value_name = "[NAME=]FILE", requires = "data", conflicts_with_all = ["labels", "qrels"])]
    scores: Vec<String>,

    /// The dataset that the scores belong to
    #[arg(long, value_name = "DATASET", requires = "scores")]
    data: Option<String>,

    /// A run as trec_eval reads it: query Q0 document rank score tag
    #[arg(long, value_name = "[NAME=]FILE")]
    run: Vec<String>,

    /// Judgments as trec_eval reads them, query iteration document relevance, instead of labels of the
    /// ranking; documents without one are not relevant
    #[arg(long, value_name = "FILE", conflicts_with = "labels")]
    qrels: Option<String>,

    /// A dataset that has the labels, found by query and document
    #[arg(long, value_name = "DATASET")]
    labels: Option<String>,

    /// Count queries of the judgments that have no ranked document, with an empty ranking
    #[arg(long)]
    complete: bool,

    /// Metrics, separated by commas; the first decides which queries are the worst
    #[arg(long, value_name = "LIST", default_value = DEFAULT_METRICS)]
    metrics: String,

    /// The rules: planetree, letor4, mslr, yahoo, ranklib, lightgbm, xgboost, trec, ..., and single rules
    /// after it (letor4,gain=linear) [default: trec with --qrels, else planetree]
    #[arg(long, value_name = "RULES")]
    convention: Option<String>,

    /// Also show means by a column of the ranking, or of the table that --join names
    #[arg(long, value_name = "COLUMN")]
    by: Option<String>,

    /// A table with the column of --by and a row a query: a Parquet file or a dataset
    #[arg(long, value_name = "FILE", requires = "by")]
    join: Option<String>,

    /// The column of that table that has the query ids
    #[arg(long, value_name = "COLUMN", default_value = "query_id", requires = "join")]
    on: String,

    /// The systems differ in this number, in which their names end (list-100, list-500): show them as curves, in
    /// reports too
    #[arg(long, value_name = "NAME", conflicts_with = "by")]
    curve: Option<String>,

    /// Show so many of the worst queries
    #[arg(long, value_name = "N", default_value_t = 5)]
    worst: usize,

    /// Write the metrics of every query, to a file or a URL: .parquet (or no extension), .csv, .tsv, .json, .ndjson,
    /// text also with .gz or .zst
    #[arg(long, value_name = "FILE")]
    output: Option<String>,

    /// Write the ranking as a run that trec_eval reads
    #[arg(long, value_name = "FILE")]
    write_run: Option<String>,

    /// The last word of the run's lines
    #[arg(long, value_name = "WORD", default_value = "planetree", requires = "write_run")]
    tag: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Threads that read and judge [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Memory that sorting may take before it goes on in temporary files [default: 512MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    #[command(flatten)]
    cluster: ClusterOptions,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
}

/// Runs the command.
pub fn run(arguments: &EvaluateArguments, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let rankings = arguments.rankings()?;
    let mut request = arguments.request(rankings.len())?;
    #[cfg(feature = "cluster")]
    if let Some(cluster) = arguments.cluster.cluster(request.threads, arguments.instance_credentials)? {
        request.remote = Some(cluster);
    }
    #[cfg(not(feature = "cluster"))]
    arguments.cluster.refuse()?;
    let points = match &arguments.curve {
        Some(_) => CurvePoint::all(rankings.iter().map(|(name, _)| name.as_str()))?,
        None => Vec::new(),
    };
    let join = match (&arguments.join, &arguments.by) {
        (Some(join), Some(by)) => Some(Join::read(&arguments.locate(join)?, &arguments.on, by)?),
        _ => None,
    };
    let output = arguments.output.as_ref().map(|text| arguments.locate(text)).transpose()?;
    if let Some(output) = &output {
        TableWriter::check(output, TableKind::Metrics)?; // before the work, not after it
    }
    let mut systems: Vec<System> = Vec::new();
    for (name, ranking) in rankings {
        let progress = Progress::start(&format!("evaluating {name}"), Some(0), "rows", quiet);
        request.meter = progress.meter();
        let mut results = evaluate(&ranking, &request)?;
        progress.finish();
        if results.seen_in_training && !quiet {
            super::say(format_args!("note: {name}: {SEEN_ROWS}"));
        }
        if let Some(join) = &join {
            let absent = join.assign(&mut results)?;
            if absent > 0 && !quiet {
                let count = shown_count(absent as u64);
                super::say(format_args!("note: {count} queries are not in the table of --join"));
            }
        }
        if let Some(first) = systems.first() {
            refuse_other_queries(first, &name, &results)?;
        }
        let summary = Summary::of(&results, &request.metrics, arguments.worst);
        let segments = arguments.by.is_some().then(|| SegmentSummary::of(&results, &request.metrics));
        systems.push(System { name, location: ranking.location().clone(), results, summary, segments });
    }
    if let Some(output) = &output {
        write_table(output, &request, &systems, arguments)?;
    }
    let report = Report {
        systems: &systems,
        metrics: &request.metrics,
        convention: &request.convention,
        by: arguments.by.as_deref(),
        curve: arguments.curve.as_deref().map(|varied| Curve { varied, points: &points }),
    };
    super::print(&if arguments.json { format!("{}\n", report.json()) } else { report.text() })?;
    if !quiet {
        let rows: u64 = systems.iter().map(|system| system.summary.rows).sum();
        let seconds = started.elapsed().as_secs_f64();
        super::say(format_args!("{} rows evaluated in {seconds:.2} s", shown_count(rows)));
    }
    Ok(())
}

impl EvaluateArguments {
    fn locate(&self, text: &str) -> Result<Location> {
        let access = if self.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
        Location::parse(text, access)
    }

    /// All rankings with their names, in the order of the help.
    fn rankings(&self) -> Result<Vec<(String, Ranking)>> {
        let mut rankings = Vec::new();
        let data = self.data.as_ref().map(|text| self.locate(text)).transpose()?;
        for text in &self.predictions {
            let (name, path) = named(text);
            rankings.push((name, Ranking::Predictions(self.locate(path)?)));
        }
        for text in &self.scores {
            let (name, path) = named(text);
            if let Some(data) = &data {
                rankings.push((name, Ranking::Scores { scores: self.locate(path)?, data: data.clone() }));
            }
        }
        for text in &self.run {
            let (name, path) = named(text);
            rankings.push((name, Ranking::Run(self.locate(path)?)));
        }
        let mut names = HashSet::new();
        match rankings.iter().find(|(name, _)| !names.insert(name)) {
            Some((twice, _)) => Err(Error::usage(
                format_args!("two rankings are called {twice}"),
                "name them: --predictions NAME=FILE",
            )),
            None => Ok(rankings),
        }
    }

    fn request(&self, rankings: usize) -> Result<Request> {
        let metrics: Vec<Metric> = self.metrics.split(',').map(str::parse).collect::<Result<_>>()?;
        if let Some(twice) = (1..metrics.len()).find(|place| metrics[..*place].contains(&metrics[*place])) {
            return Err(Error::usage(
                format_args!("metric {} is named twice", metrics[twice]),
                "name every metric once",
            ));
        }
        let convention: Convention = match (&self.convention, &self.qrels) {
            (Some(text), _) => text.parse()?,
            (None, Some(_)) => "trec".parse()?,
            (None, None) => Convention::default(),
        };
        let judgments = match (&self.qrels, &self.labels) {
            (Some(qrels), _) => Some(Judgments::Qrels(self.locate(qrels)?)),
            (None, Some(labels)) => Some(Judgments::Dataset(self.locate(labels)?)),
            (None, None) => None,
        };
        if self.complete && judgments.is_none() {
            return Err(Error::usage("--complete is for rankings with judgments", "name them: --qrels FILE"));
        }
        if self.output.is_some() && self.output == self.write_run {
            return Err(Error::usage(
                "--output and --write-run name the same file",
                "give the metrics and the run a file each",
            ));
        }
        if rankings > 1 && self.write_run.is_some() {
            return Err(Error::usage("--write-run writes one ranking", "name one ranking only"));
        }
        if !self.run.is_empty() && self.by.is_some() && self.join.is_none() {
            return Err(Error::usage(
                "a run has no columns to count queries by",
                "name a table that has one: --join FILE",
            ));
        }
        if self.tag.is_empty() || self.tag.contains(char::is_whitespace) {
            return Err(Error::usage(format_args!("{:?} is no tag", self.tag), "name one word"));
        }
        let run = self.write_run.as_ref().map(|text| Ok((self.locate(text)?, self.tag.clone())));
        Ok(Request {
            judgments,
            complete: self.complete,
            by: self.by.clone().filter(|_| self.join.is_none()),
            gains: self.output.is_some(),
            run: run.transpose()?,
            threads: self.threads.map_or(0, NonZeroUsize::get),
            memory_limit: self.memory_limit.unwrap_or(DEFAULT_MEMORY),
            ..Request::new(metrics, convention)
        })
    }
}

/// The name of a ranking and its path. A name has no separators; `s3://bucket/a=b` is all path.
fn named(text: &str) -> (String, &str) {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !name.contains(['/', ':', '.']) => (name.to_owned(), path),
        _ => {
            let file = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
            (file.split('?').next().unwrap_or(file).to_owned(), text)
        }
    }
}

/// An error unless two systems ranked the same queries: their means would not compare.
fn refuse_other_queries(first: &System, name: &str, results: &Results) -> Result<()> {
    let (ours, theirs): (HashSet<&str>, HashSet<&str>) =
        (first.results.names().collect(), results.names().collect());
    let mut lacks = Vec::new();
    for (lacking, has, from) in [(&theirs, &first.results, name), (&ours, results, first.name.as_str())] {
        const FEW: usize = 3;
        let absent: Vec<&str> = has.names().filter(|query| !lacking.contains(query)).collect();
        if !absent.is_empty() {
            let more = if absent.len() > FEW { ", ..." } else { "" };
            let few = absent[..absent.len().min(FEW)].join(", ");
            lacks.push(format!("{from} lacks {} ({few}{more})", shown_count(absent.len() as u64)));
        }
    }
    if lacks.is_empty() {
        return Ok(());
    }
    Err(Error::usage(
        format_args!("the systems ranked different queries: {}", lacks.join("; ")),
        "evaluate each alone, or leave out queries that not all have",
    ))
}

fn write_table(
    output: &Location,
    request: &Request,
    systems: &[System],
    arguments: &EvaluateArguments,
) -> Result<()> {
    let layout = MetricsLayout {
        metrics: &request.metrics,
        convention: &request.convention,
        segments: arguments.by.is_some(),
        systems: systems.len() > 1 || arguments.curve.is_some(),
        curve: arguments.curve.as_deref(),
    };
    let mut table = MetricsTable::create(output, layout)?;
    for system in systems {
        table.write(&system.results, &system.name)?;
    }
    table.finish()
}
