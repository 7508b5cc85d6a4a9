//! Implements `planetree evaluate`.

mod gate;
mod rankings;
mod report;
mod same_queries;

use super::baselines::BaselineOptions;
use super::columns::ColumnOptions;
use super::execution::ExecutionOptions;
use super::help;
use super::options::{JsonOptions, parse_whole};
use super::progress::CountProgress;
use super::tables::InputData;
use clap::Args;
use gate::QualityGate;
use planetree_base::error::{Error, Result};
use planetree_base::size::{counted, parse_size};
use planetree_base::storage::{Location, RUN_FORMATS};
use planetree_data::table::provenance::TRAINING_ROWS_NOTE;
use planetree_data::table::{TableKind, TableWriter};
use planetree_judge::evaluate::{
    CurvePoint, DEFAULT_MEMORY, DEFAULT_METRICS, EvaluateRequest, EvaluationSummary, Judgments, MIN_MEMORY,
    MetricsLayout, MetricsTable, RowOrigin, SegmentJoin, SegmentSummary, evaluate,
};
use planetree_metric::{Convention, Metric};
use rankings::set_data;
use report::{EvaluatedSystem, EvaluationReport, SystemCurve};
use same_queries::check_same_queries;
use std::time::Instant;

const EXAMPLES: &str = "Examples:
  planetree evaluate predictions.parquet
  planetree evaluate predictions.parquet --metrics ndcg@10,err,p@5 --convention letor4
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
/// random orders are baselines. Several rankings are shown side by side. Rows may be in any order; data that do not fit
/// in memory are sorted on disk.
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
        required_unless_present_any = ["predictions", "scores", "run", "data", "feature", "random"]
    )]
    files: Vec<String>,

    /// The same, as an option that may be repeated
    #[arg(long, value_name = "[NAME=]FILE")]
    predictions: Vec<String>,

    /// Scores as text: one per line, in the order of the rows of --data
    #[arg(long, value_name = "[NAME=]FILE", requires = "data", conflicts_with_all = ["labels", "qrels"])]
    scores: Vec<String>,

    /// Dataset whose rows --scores belong to, or which --feature and --random rank. CSV, Parquet and LETOR files are
    /// converted to a temporary dataset first
    #[arg(long, value_name = "DATASET")]
    data: Option<String>,

    #[command(flatten)]
    columns: ColumnOptions,

    #[command(flatten)]
    baselines: BaselineOptions,

    /// Random seed of --random
    #[arg(long, value_name = "S", default_value_t = 1, requires = "random", value_parser = parse_whole::<u64>)]
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
    #[arg(long, alias = "metric", value_name = "LIST", default_value = DEFAULT_METRICS)]
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
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = parse_whole::<usize>)]
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
    InputData::of_execution(&arguments.columns, &arguments.execution, quiet)
        .with_memory_limit(arguments.memory_limit)
        .run("evaluate", |input| evaluate_rankings(arguments, input, quiet))
}

fn evaluate_rankings(arguments: &EvaluateArguments, input: &mut InputData<'_>, quiet: bool) -> Result<()> {
    let started = Instant::now();
    super::options::check_memory(arguments.memory_limit, MIN_MEMORY)?;
    arguments.columns.check_data(arguments.data.as_ref())?;
    let mut rankings = arguments.rankings()?;
    let mut request = arguments.request(rankings.len())?;
    let points = match &arguments.curve {
        Some(_) => CurvePoint::all(rankings.iter().map(|(name, _)| name.as_str()))?,
        None => Vec::new(),
    };
    let join = match (&arguments.join, &arguments.by) {
        (Some(join), Some(by)) => Some(SegmentJoin::read(&arguments.locate(join)?, &arguments.on, by)?),
        _ => None,
    };
    arguments.check_outputs(input, &rankings)?;
    let output = arguments.execution.store.locate_optional(arguments.output.as_ref())?;
    if let Some(output) = &output {
        TableWriter::check(output, TableKind::Metrics)?; // fails before the evaluation, not after it
    }
    if let Some(data) = &arguments.data {
        set_data(&mut rankings, &input.dataset(data)?); // a table is converted when everything else is right
    }
    request.remote = arguments.execution.cluster(request.threads)?.map(|cluster| cluster.evaluator());
    let mut systems: Vec<EvaluatedSystem> = Vec::new();
    for (name, ranking) in rankings {
        tracing::info!("evaluating {name}: {ranking}");
        let progress = CountProgress::start(&format!("evaluating {name}"), Some(0), "rows", quiet);
        request.meter = progress.meter();
        let mut results = evaluate(&ranking, &request)?;
        progress.finish();
        if let Some(warning) = results.overlap.warning(results.unranked).filter(|_| !quiet) {
            super::message(format_args!("warning: {name}: {warning}"));
        }
        if results.seen_in_training && !quiet {
            super::message(format_args!("note: {name}: {TRAINING_ROWS_NOTE}"));
        }
        if let Some(join) = &join {
            let absent = join.assign(&mut results)?;
            if absent > 0 && !quiet {
                let count = counted(absent as u64, "query is", "queries are");
                super::message(format_args!("note: {count} missing from the table of --join"));
            }
        }
        if let Some(first) = systems.first() {
            check_same_queries(first, &name, &results)?;
        }
        let summary = EvaluationSummary::of(&results, &request.metrics, arguments.worst);
        let segments = arguments.by.is_some().then(|| SegmentSummary::of(&results, &request.metrics));
        let ranking = arguments.shown(&ranking)?;
        systems.push(EvaluatedSystem { name, ranking, results, summary, segments });
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
        super::message(format_args!("{} evaluated in {seconds:.2} s", counted(rows, "row", "rows")));
    }
    gate::check(&arguments.fail_below, &request.metrics, &request.convention, &systems)
}

impl EvaluateArguments {
    fn locate(&self, text: &str) -> Result<Location> {
        self.execution.store.locate(text)
    }

    fn request(&self, rankings: usize) -> Result<EvaluateRequest> {
        let convention: Convention = match (&self.convention, &self.qrels) {
            (Some(text), _) => text.parse()?,
            (None, Some(_)) => "trec".parse()?,
            (None, None) => Convention::default(),
        };
        let written: Vec<Metric> = self.metrics.split(',').map(str::parse).collect::<Result<_>>()?;
        if let Some((problem, remedy)) = convention.repeated(&written) {
            return Err(Error::usage(problem, remedy));
        }
        let metrics: Vec<Metric> = written.into_iter().map(|metric| convention.meant(metric)).collect();
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
        let run = self.write_run.as_ref().map(|text| {
            let location = self.locate(text)?;
            RUN_FORMATS.of(&location)?; // an unknown extension is found before tables are converted
            Ok((location, self.tag.clone()))
        });
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
