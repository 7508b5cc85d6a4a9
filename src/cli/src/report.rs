//! `planetree report`

use clap::Args;
use planetree_base::error::Result;
use planetree_base::size::shown_size;
use planetree_base::storage::{Access, Location};
use planetree_metric::{Convention, Metric};
use planetree_report::{ReportRequest, RunSource, write_report};
use std::num::NonZeroUsize;
use std::time::Instant;

/// Make a report of a run: one HTML file with charts, to look at and to pass on
///
/// Reads the tables in a run directory: that of `planetree run` or `planetree cv`, or any directory with
/// models, predictions, rounds and metrics. Shows what came out, how it was learned, which queries are bad
/// and why, what the model relies on, and whether one ranking is better than another. Rankings of the same
/// queries are compared, within a run and between runs. The file needs no network and nothing beside it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree report runs/quickstart --output report.html
  planetree report monday=runs/0412 tuesday=runs/0413 --output week.html
  planetree report cv --output cv.html --metric err --convention trec
  planetree report s3://runs/nightly --output s3://reports/nightly.html
  planetree report runs/stopped --unfinished --output so-far.html")]
pub struct ReportArguments {
    /// Run directories or URLs, with names of your own if you like
    #[arg(value_name = "[NAME=]RUN", required = true)]
    runs: Vec<String>,

    /// The report: an HTML file or a URL; an earlier report is replaced
    #[arg(long, short, value_name = "FILE.html")]
    output: String,

    /// The metric that ranks queries and decides between systems
    #[arg(long, value_name = "METRIC", default_value = "ndcg@10")]
    metric: String,

    /// The rules of metrics [default: those of the runs' own metrics, else planetree]
    #[arg(long, value_name = "NAME")]
    convention: Option<String>,

    /// The heading [default: the name of the pipeline or the directory]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Also report runs that are not complete; the report says so at its top
    #[arg(long)]
    unfinished: bool,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
}

/// Runs the command.
pub fn run(arguments: &ReportArguments, quiet: bool, as_step: bool) -> Result<()> {
    let started = Instant::now();
    let access = if arguments.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
    let output = Location::parse(&arguments.output, access)?;
    let request = ReportRequest {
        runs: arguments.runs.iter().map(|text| source(text, access)).collect::<Result<_>>()?,
        metric: arguments.metric.parse::<Metric>()?,
        convention: arguments.convention.as_deref().map(str::parse::<Convention>).transpose()?,
        title: arguments.title.clone(),
        unfinished: arguments.unfinished,
        within_run: as_step,
        threads: arguments.threads.map_or(0, NonZeroUsize::get),
    };
    let written = write_report(&request, &output)?;
    if !quiet {
        let rankings = if written.systems == 1 { "ranking" } else { "rankings" };
        let models = if written.models == 1 { "model" } else { "models" };
        super::say(format_args!(
            "{output}: {} {rankings} and {} {models} in {}; {:.1} s",
            written.systems,
            written.models,
            shown_size(written.bytes as u64),
            started.elapsed().as_secs_f64()
        ));
    }
    Ok(())
}

/// What was named, and what it is called: a name has no separators; `s3://bucket/a=b` is all path.
fn source(text: &str, access: Access) -> Result<RunSource> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !name.contains(['/', ':', '.']) => (Some(name), path),
        _ => (None, text),
    };
    Ok(RunSource { name: name.map(str::to_owned), location: Location::parse(path, access)? })
}
