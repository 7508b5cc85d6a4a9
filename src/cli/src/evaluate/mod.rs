//! Implements `planetree evaluate`.

mod gate;
mod report;

use super::baselines::BaselineOptions;
use super::execution::ExecutionOptions;
use super::help;
use super::options::{JsonOptions, file_name, split_name};
use super::progress::CountProgress;
use clap::Args;
use gate::QualityGate;
use planetree_base::error::{Error, Result};
use planetree_base::size::{parse_size, shown_count};
use planetree_base::storage::{Location, redacted};
use planetree_data::table::provenance::TRAINING_ROWS_NOTE;
use planetree_data::table::{TableKind, TableWriter};
use planetree_judge::evaluate::{
    CurvePoint, DEFAULT_MEMORY, DEFAULT_METRICS, EvaluateRequest, EvaluationSummary, Judgments, MIN_MEMORY,
    MetricsLayout, MetricsTable, Ranking, Results, RowOrigin, SegmentJoin, SegmentSummary, evaluate,
};
use planetree_metric::{Convention, Metric};
use report::{EvaluatedSystem, EvaluationReport, SystemCurve};
use std::collections::HashSet;
use std::time::Instant;

const EXAMPLES: &str = "Examples:
  planetree evaluate predictions.parquet
  planetree evaluate --predictions predictions.parquet --metrics ndcg@10,err,p@5 --convention letor4
  planetree evaluate --predictions old=a.parquet --predictions new=b.parquet --json
  planetree evaluate --predictions predictions.parquet --output metrics.parquet
  planetree evaluate --predictions 100=a.parquet --predictions 500=b.parquet --curve trees
  planetree evaluate --predictions predictions.parquet --by market --join queries.parquet
  planetree evaluate predictions.parquet --fail-below ndcg@10=0.45
  planetree evaluate --scores scores.txt --data test
  planetree evaluate --data test --feature bm25=f110 --random
  planetree evaluate --run bm25.run --qrels qrels.txt --metrics ndcg@10,map,recall@100";

/// Evaluate rankings: per-query metrics, means and distribution
///
/// A ranking is a table of predictions (Parquet, CSV, TSV, JSON or NDJSON with query_id, label, score and optionally
/// doc_id), a text file with a score for each row of a dataset, or a run file of trec_eval. A feature of a dataset and
/// random orders are baselines. Several rankings are shown side by side. Rows may be in any order; data that do not fit in memory are sorted on disk.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(after_long_help = format!(
    "{EXAMPLES}\n\nMetrics, for --metrics:\n{}\nConventions, for --convention:\n{}",
    help::metrics(),
    help::conventions()
))]
pub(crate) struct EvaluateArguments {
    /// Predictions: files or URLs, Parquet or .csv, .tsv, .json, .ndjson, text formats also with .gz or .zst; several are
    /// shown side by side
    #[arg(
        value_name = "[NAME=]FILE",
        required_unless_present_any = ["predictions", "scores", "run", "data"]
    )]
    files: Vec<String>,

    /// The same, as an option that may be repeated
    #[arg(long, value_name = "[NAME=]FILE")]
    predictions: Vec<String>,

    /// Scores as text: one per line, in the order of the rows of --data
    #[arg(long, value_name = "[NAME=]FILE", requires = "data", conflicts_with_all = ["labels", "qrels"])]
    scores: Vec<String>,

    /// Dataset whose rows --scores belong to, or which --feature and --random rank
    #[arg(long, value_name = "DATASET")]
    data: Option<String>,

    #[command(flatten)]
    baselines: BaselineOptions,

    /// Random seed of --random
    #[arg(long, value_name = "S", default_value_t = 1, requires = "random")]
    seed: u64,

    /// Run file of trec_eval: each line has query, Q0, document, rank, score and tag
    #[arg(long, value_name = "[NAME=]FILE")]
    run: Vec<String>,

    /// Judgments in the format of trec_eval (query, iteration, document, relevance), used instead of the labels of the
    /// ranking; documents without a judgment are not relevant
    #[arg(long, value_name = "FILE", conflicts_with = "labels")]
    qrels: Option<String>,

    /// Dataset to take the labels from, matched by query and document id
    #[arg(long, value_name = "DATASET")]
    labels: Option<String>,

    /// Include judged queries without any ranked document, as empty rankings
    #[arg(long)]
    complete: bool,

    /// Metrics, separated by commas; the first one selects the worst queries to show
    #[arg(long, value_name = "LIST", default_value = DEFAULT_METRICS)]
    metrics: String,

    /// Metric convention: planetree, letor4, mslr, yahoo, ranklib, lightgbm, xgboost, trec, ..., optionally followed by
    /// switches (letor4,gain=linear) [default: trec with --qrels, else planetree]
    #[arg(long, value_name = "RULES")]
    convention: Option<String>,

    /// Labels that replace those of the ranking or the judgments, such as 0,1,2=0;3,4=1; a label that is not listed is an
    /// error
    #[arg(long, value_name = "OLD,...=NEW;...")]
    label_map: Option<String>,

    /// Also show means for each value of a column, which is in the ranking or in the table of --join
    #[arg(long, value_name = "COLUMN")]
    by: Option<String>,

    /// Table with the column of --by and one row per query: a Parquet file or a dataset
    #[arg(long, value_name = "FILE", requires = "by")]
    join: Option<String>,

    /// Column of the --join table that contains the query ids
    #[arg(long, value_name = "COLUMN", default_value = "query_id", requires = "join")]
    on: String,

    /// Show systems as points of curves, also in reports. NAME is the quantity that varies; its value is the number at
    /// the end of each system's name (list-100, list-500)
    #[arg(long, value_name = "NAME", conflicts_with = "by")]
    curve: Option<String>,

    /// Number of worst queries to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    worst: usize,

    /// Fail with exit code 3 if the mean of a metric is worse than this, for any of the systems; may be repeated
    #[arg(long, value_name = "METRIC=VALUE")]
    fail_below: Vec<QualityGate>,

    /// Write per-query metrics to a file or a URL: .parquet (or no extension), .csv, .tsv, .json, .ndjson; text formats
    /// also with .gz or .zst
    #[arg(long, short, value_name = "FILE")]
    output: Option<String>,

    /// Write the ranking as a run file of trec_eval
    #[arg(long, value_name = "FILE")]
    write_run: Option<String>,

    /// Tag in the last column of the run file
    #[arg(long, value_name = "WORD", default_value = "planetree", requires = "write_run")]
    tag: String,

    #[command(flatten)]
    json: JsonOptions,

    /// Memory limit, at least 96MiB; larger sorts use temporary files [default: 512MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    #[command(flatten)]
    execution: ExecutionOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &EvaluateArguments, quiet: bool) -> Result<()> {
    let started = Instant::now();
    super::options::check_memory(arguments.memory_limit, MIN_MEMORY)?;
    let rankings = arguments.rankings()?;
    let mut request = arguments.request(rankings.len())?;
    request.remote = arguments.execution.cluster(request.threads)?.map(|cluster| cluster.evaluator());
    let points = match &arguments.curve {
        Some(_) => CurvePoint::all(rankings.iter().map(|(name, _)| name.as_str()))?,
        None => Vec::new(),
    };
    let join = match (&arguments.join, &arguments.by) {
        (Some(join), Some(by)) => Some(SegmentJoin::read(&arguments.locate(join)?, &arguments.on, by)?),
        _ => None,
    };
    let output = arguments.execution.store.locate_optional(arguments.output.as_ref())?;
    if let Some(output) = &output {
        TableWriter::check(output, TableKind::Metrics)?; // fails before the evaluation, not after it
    }
    let mut systems: Vec<EvaluatedSystem> = Vec::new();
    for (name, ranking) in rankings {
        let progress = CountProgress::start(&format!("evaluating {name}"), Some(0), "rows", quiet);
        request.meter = progress.meter();
        let mut results = evaluate(&ranking, &request)?;
        progress.finish();
        if results.seen_in_training && !quiet {
            super::message(format_args!("note: {name}: {TRAINING_ROWS_NOTE}"));
        }
        if let Some(join) = &join {
            let absent = join.assign(&mut results)?;
            if absent > 0 && !quiet {
                let count = shown_count(absent as u64);
                super::message(format_args!("note: {count} queries are missing from the table of --join"));
            }
        }
        if let Some(first) = systems.first() {
            check_same_queries(first, &name, &results)?;
        }
        let summary = EvaluationSummary::of(&results, &request.metrics, arguments.worst);
        let segments = arguments.by.is_some().then(|| SegmentSummary::of(&results, &request.metrics));
        systems.push(EvaluatedSystem { name, ranking: ranking.to_string(), results, summary, segments });
    }
    if let Some(output) = &output {
        write_table(output, &request, &systems, arguments)?;
    }
    let report = EvaluationReport {
        systems: &systems,
        metrics: &request.metrics,
        convention: &request.convention,
        label_map: request.label_map.as_ref(),
        by: arguments.by.as_deref(),
        curve: arguments.curve.as_deref().map(|varied| SystemCurve { varied, points: &points }),
    };
    arguments.json.print(|| report.text(), || report.json())?;
    if !quiet {
        let rows: u64 = systems.iter().map(|system| system.summary.rows).sum();
        let seconds = started.elapsed().as_secs_f64();
        super::message(format_args!("{} rows evaluated in {seconds:.2} s", shown_count(rows)));
    }
    gate::check(&arguments.fail_below, &request.metrics, &request.convention, &systems)
}

impl EvaluateArguments {
    fn locate(&self, text: &str) -> Result<Location> {
        self.execution.store.locate(text)
    }

    /// Returns the rankings with their names: first predictions, then scores, then run files, then
    /// baselines.
    fn rankings(&self) -> Result<Vec<(String, Ranking)>> {
        let mut rankings = Vec::new();
        let data = self.data.as_ref().map(|text| self.locate(text)).transpose()?;
        for text in self.files.iter().chain(&self.predictions) {
            let (name, path) = system_name(text);
            rankings.push((name, Ranking::Predictions(self.locate(path)?)));
        }
        for text in &self.scores {
            let (name, path) = system_name(text);
            if let Some(data) = &data {
                rankings.push((name, Ranking::Scores { scores: self.locate(path)?, data: data.clone() }));
            }
        }
        for text in &self.run {
            let (name, path) = system_name(text);
            rankings.push((name, Ranking::Run(self.locate(path)?)));
        }
        let baselines = self.baselines.named(self.seed)?;
        if let (Some(data), true) = (&self.data, baselines.is_empty() && self.scores.is_empty()) {
            return Err(Error::usage(
                format_args!("--data {data}: there is nothing to rank its rows by"),
                match self.files.is_empty() && self.predictions.is_empty() && self.run.is_empty() {
                    true => "pass --scores FILE, --feature NAME or --random",
                    false => "remove --data, or pass --feature NAME or --random",
                },
            ));
        }
        for (name, baseline) in baselines {
            if let Some(data) = &data {
                rankings.push((name, Ranking::Baseline { data: data.clone(), baseline }));
            }
        }
        let mut names = HashSet::new();
        match rankings.iter().find(|(name, _)| !names.insert(name)) {
            Some((name, ranking)) => Err(Error::usage(
                format_args!("two rankings have the same name: {name}"),
                match ranking {
                    Ranking::Predictions(_) => "pass names: --predictions NAME=FILE",
                    Ranking::Scores { .. } => "pass names: --scores NAME=FILE",
                    Ranking::Run(_) => "pass names: --run NAME=FILE",
                    Ranking::Baseline { .. } => "choose another name: --feature NAME=FEATURE",
                },
            )),
            None => Ok(rankings),
        }
    }

    fn request(&self, rankings: usize) -> Result<EvaluateRequest> {
        let convention: Convention = match (&self.convention, &self.qrels) {
            (Some(text), _) => text.parse()?,
            (None, Some(_)) => "trec".parse()?,
            (None, None) => Convention::default(),
        };
        let metrics = self.metrics.split(',').map(|name| Ok(convention.meant(name.parse()?)));
        let metrics: Vec<Metric> = metrics.collect::<Result<_>>()?;
        if let Some(repeated) = (1..metrics.len()).find(|index| metrics[..*index].contains(&metrics[*index]))
        {
            return Err(Error::usage(
                format_args!("metric {} is given twice", metrics[repeated]),
                "pass each metric once",
            ));
        }
        for gate in &self.fail_below {
            gate.check_computed(&metrics, &convention)?;
        }
        let judgments = match (&self.qrels, &self.labels) {
            (Some(qrels), _) => Some(Judgments::Qrels(self.locate(qrels)?)),
            (None, Some(labels)) => Some(Judgments::Dataset(self.locate(labels)?)),
            (None, None) => None,
        };
        if self.complete && judgments.is_none() {
            return Err(Error::usage(
                "--complete requires judgments",
                "pass --qrels FILE or --labels DATASET",
            ));
        }
        if self.output.is_some() && self.output == self.write_run {
            return Err(Error::usage(
                "--output and --write-run are the same file",
                "use a separate file for each",
            ));
        }
        if rankings > 1 && self.write_run.is_some() {
            return Err(Error::usage("--write-run supports one ranking only", "pass one ranking"));
        }
        if !self.run.is_empty() && self.by.is_some() && self.join.is_none() {
            return Err(Error::usage(
                "--by does not work with --run alone: run files have no columns to group by",
                "pass a table with the column: --join FILE",
            ));
        }
        if self.tag.is_empty() || self.tag.contains(char::is_whitespace) {
            return Err(Error::usage(format_args!("not a valid tag: {:?}", self.tag), "pass one word"));
        }
        let run = self.write_run.as_ref().map(|text| Ok((self.locate(text)?, self.tag.clone())));
        Ok(EvaluateRequest {
            judgments,
            label_map: self.label_map.as_deref().map(str::parse).transpose()?,
            complete: self.complete,
            by: self.by.clone().filter(|_| self.join.is_none()),
            gains: self.output.is_some(),
            run: run.transpose()?,
            threads: self.execution.threads.requested(),
            memory_limit: self.memory_limit.unwrap_or(DEFAULT_MEMORY),
            ..EvaluateRequest::new(metrics, convention)
        })
    }
}

/// Returns the name and path of a ranking. Without a given name, the file name is used.
fn system_name(text: &str) -> (String, &str) {
    let (name, path) = split_name(text);
    let shown = redacted(path);
    (name.unwrap_or(file_name(&shown)).to_owned(), path)
}

/// Fails unless two systems ranked the same queries, because otherwise their means are not comparable.
fn check_same_queries(first: &EvaluatedSystem, name: &str, results: &Results) -> Result<()> {
    let (ours, theirs): (HashSet<&str>, HashSet<&str>) =
        (first.results.names().collect(), results.names().collect());
    let mut problems = Vec::new();
    for (known, other, system) in [(&theirs, &first.results, name), (&ours, results, first.name.as_str())] {
        const SHOWN: usize = 3;
        let absent: Vec<&str> = other.names().filter(|query| !known.contains(query)).collect();
        if !absent.is_empty() {
            let more = if absent.len() > SHOWN { ", ..." } else { "" };
            let first = absent[..absent.len().min(SHOWN)].join(", ");
            problems.push(format!("{system} lacks {} ({first}{more})", shown_count(absent.len() as u64)));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::usage(
        format_args!("the systems ranked different queries: {}", problems.join("; ")),
        "evaluate them separately, or restrict them to the queries that all have",
    ))
}

fn write_table(
    output: &Location,
    request: &EvaluateRequest,
    systems: &[EvaluatedSystem],
    arguments: &EvaluateArguments,
) -> Result<()> {
    let layout = MetricsLayout {
        metrics: &request.metrics,
        convention: &request.convention,
        label_map: request.label_map.as_ref(),
        segments: arguments.by.is_some(),
        systems: systems.len() > 1 || arguments.curve.is_some(),
        folds: false,
        curve: arguments.curve.as_deref(),
    };
    let mut table = MetricsTable::create(output, layout)?;
    for system in systems {
        let origin = RowOrigin { system: &system.name, fold: 0 };
        table.write(&system.results, origin)?;
        table.record_pooled(&system.summary, origin);
    }
    table.finish()
}
