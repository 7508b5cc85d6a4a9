//! Implements `planetree report`.

use super::options::{StoreOptions, ThreadOptions, split_name};
use clap::Args;
use planetree_base::error::Result;
use planetree_base::size::{counted, shown_size};
use planetree_metric::{Convention, Metric};
use planetree_report::{ReportRequest, RunSource, write_report};
use std::time::Instant;

/// Write a report of one or more runs: a single HTML file with charts
///
/// Reads the tables of a run directory, written by `planetree run` or `planetree cv`, or of any directory with
/// models, predictions, rounds and metrics. Shows metrics, learning curves, the worst and best queries, feature
/// importance, trees, and significance tests between rankings of the same queries, within a run and between runs.
/// The file is self-contained and needs no network.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree report runs/quickstart --output report.html
  planetree report monday=runs/0412 tuesday=runs/0413 --output week.html
  planetree report cv --output cv.html --metric err --convention trec
  planetree report runs/quickstart --output report.html --display queries.csv --date 2026-11-18
  planetree report s3://runs/nightly --output s3://reports/nightly.html
  planetree report runs/stopped --unfinished --output so-far.html")]
pub(crate) struct ReportArguments {
    /// Run directories or URLs, optionally with names
    #[arg(value_name = "[NAME=]RUN", required = true)]
    runs: Vec<String>,

    /// HTML file to write, or a URL; an earlier report is replaced
    #[arg(long, short, value_name = "FILE.html")]
    output: String,

    /// Primary metric: it orders the queries and is tested for significance
    #[arg(long, value_name = "METRIC", default_value = "ndcg@10")]
    metric: String,

    /// Metric convention [default: the convention of the runs' metrics tables if they agree, else planetree]
    #[arg(long, value_name = "NAME")]
    convention: Option<String>,

    /// Labels that replace those of the rankings, such as 0,1,2=0;3,4=1 [default: the map of the runs' metrics tables if they
    /// agree, else none]
    #[arg(long, value_name = "OLD,...=NEW;...")]
    label_map: Option<String>,

    /// Heading [default: name of the pipeline or directory]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Date to show, such as 2026-11-18; without it the report has none, so that equal runs give equal bytes
    #[arg(long, value_name = "TEXT")]
    date: Option<String>,

    /// Table with texts of queries, titles and links of documents, and segments: Parquet or CSV with query_id, doc_id or
    /// both; repeatable
    #[arg(long, value_name = "FILE")]
    display: Vec<String>,

    /// Also write all disputed labels as CSV: documents that score above documents with better labels
    #[arg(long, value_name = "FILE.csv")]
    disputed: Option<String>,

    /// Accept incomplete runs; the report then has a notice at the top
    #[arg(long)]
    unfinished: bool,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &ReportArguments, quiet: bool, as_step: bool) -> Result<()> {
    let started = Instant::now();
    let output = arguments.store.locate(&arguments.output)?;
    let source = |text: &String| {
        let (name, path) = split_name(text);
        Ok(RunSource { name: name.map(str::to_owned), location: arguments.store.locate(path)? })
    };
    let request = ReportRequest {
        runs: arguments.runs.iter().map(source).collect::<Result<_>>()?,
        metric: arguments.metric.parse::<Metric>()?,
        convention: arguments.convention.as_deref().map(str::parse::<Convention>).transpose()?,
        label_map: arguments.label_map.as_deref().map(str::parse).transpose()?,
        title: arguments.title.clone(),
        date: arguments.date.clone(),
        display: arguments.display.iter().map(|path| arguments.store.locate(path)).collect::<Result<_>>()?,
        disputed: arguments.disputed.as_deref().map(|path| arguments.store.locate(path)).transpose()?,
        unfinished: arguments.unfinished,
        within_run: as_step,
        threads: arguments.threads.requested(),
    };
    for run in &request.runs {
        tracing::info!("reading {}", run.location);
    }
    tracing::info!("metric: {}", request.metric);
    let written = write_report(&request, &output)?;
    tracing::info!("wrote {output}");
    if !quiet {
        written.notes.iter().for_each(|note| super::message(format_args!("note: {note}")));
        super::message(format_args!(
            "{output}: {} and {} in {}; {:.1} s",
            counted(written.systems as u64, "ranking", "rankings"),
            counted(written.models as u64, "model", "models"),
            shown_size(written.bytes as u64),
            started.elapsed().as_secs_f64()
        ));
    }
    Ok(())
}
