//! Parses the command line, turns the arguments into requests to the other crates, and prints the results.

#![warn(unreachable_pub)]

mod augment;
mod baselines;
mod blend;
#[cfg(feature = "cluster")]
mod cluster;
mod compare;
mod completions;
mod convert;
mod cost;
mod cv;
mod describe;
mod evaluate;
mod exchange;
mod execution;
mod exit_options;
mod help;
mod impute;
mod logging;
mod names;
mod options;
mod predict;
mod progress;
#[cfg(feature = "cluster")]
mod remote;
#[cfg(not(feature = "cluster"))]
#[path = "no_remote.rs"]
mod remote;
mod report;
mod run;
mod sample;
mod select;
#[cfg(feature = "sql")]
mod sql;
mod stats;
mod train;

use clap::{CommandFactory, Parser, Subcommand};
use planetree_base::error::Error;
use planetree_run::pipeline;
use std::io::Write;
use std::process::ExitCode;

/// Display order of the options that all commands share. It is larger than the number of options of any command, so
/// that these options come last, and smaller than the order of `--help` and `--version`, which is 999.
const GLOBAL_ORDER: usize = 900;

/// Learning to rank with gradient-boosted trees and random forests
///
/// Converts judgments to Parquet datasets, trains models on them, scores and evaluates rankings, and tests whether one
/// ranking is better than another. Datasets, models, predictions and metrics are Parquet tables.
#[derive(Debug, Parser)]
#[command(name = "planetree", version, propagate_version = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Suppress progress messages, notes and warnings
    #[arg(long, short, global = true, display_order = GLOBAL_ORDER)]
    quiet: bool,

    /// Level of log messages on stderr: error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn", display_order = GLOBAL_ORDER + 1)]
    log: tracing::Level,

    /// Run as a step of a pipeline: stop when standard input closes, and print resource usage at the end
    #[arg(long = pipeline::AS_STEP, global = true, hide = true)]
    as_step: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Sample(sample::SampleArguments),
    Convert(Box<convert::ConvertArguments>),
    Describe(describe::DescribeArguments),
    Train(Box<train::TrainArguments>),
    Predict(predict::PredictArguments),
    Evaluate(Box<evaluate::EvaluateArguments>),
    Compare(compare::CompareArguments),
    Cv(Box<cv::CvArguments>),
    Blend(blend::BlendArguments),
    Augment(augment::AugmentArguments),
    Cost(cost::CostArguments),
    Impute(impute::ImputeArguments),
    Select(select::SelectArguments),
    #[cfg(feature = "sql")]
    Sql(Box<sql::SqlArguments>),
    Export(exchange::ExportArguments),
    Import(exchange::ImportArguments),
    Completions(completions::CompletionsArguments),
    Man(completions::ManArguments),
    Run(run::RunArguments),
    Report(report::ReportArguments),
    #[cfg(feature = "cluster")]
    Scheduler(cluster::SchedulerArguments),
    #[cfg(feature = "cluster")]
    Executor(cluster::ExecutorArguments),
}

/// Ends the process immediately after an interrupt. Prints `error` first, if there is one.
fn abort(error: Option<planetree_base::error::Error>) {
    if let Some(error) = error {
        let _ = writeln!(std::io::stderr(), "error: {error}"); // nowhere left to report a failure
    }
    std::process::exit(1);
}

/// Runs the program. Exit codes: 0 for success, 1 for failure, 2 for incorrect usage.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print(); // nowhere left to report a failure
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    logging::start(arguments.log, arguments.quiet);
    planetree_base::storage::interrupt::listen(abort);
    if arguments.as_step {
        planetree_base::storage::interrupt::listen_to_input();
    }
    let (quiet, level, as_step) = (arguments.quiet, arguments.log, arguments.as_step);
    let outcome = match arguments.command {
        Command::Sample(arguments) => sample::run(arguments, quiet),
        Command::Convert(arguments) => convert::run(&arguments, quiet),
        Command::Describe(arguments) => describe::run(arguments, quiet),
        Command::Train(arguments) => train::run(&arguments, quiet),
        Command::Predict(arguments) => predict::run(&arguments, quiet),
        Command::Evaluate(arguments) => evaluate::run(&arguments, quiet),
        Command::Compare(arguments) => compare::run(&arguments, quiet),
        Command::Cv(arguments) => cv::run(&arguments, quiet),
        Command::Blend(arguments) => blend::run(&arguments, quiet),
        Command::Augment(arguments) => augment::run(&arguments, quiet),
        Command::Cost(arguments) => cost::run(&arguments, quiet),
        Command::Impute(arguments) => impute::run(&arguments, quiet),
        Command::Select(arguments) => select::run(&arguments, quiet),
        #[cfg(feature = "sql")]
        Command::Sql(arguments) => sql::run(&arguments, quiet),
        Command::Export(arguments) => exchange::export(&arguments, quiet),
        Command::Import(arguments) => exchange::import(&arguments, quiet),
        Command::Completions(arguments) => completions::completions(&arguments, Arguments::command()),
        Command::Man(arguments) => completions::man(&arguments, Arguments::command()),
        Command::Run(arguments) => run::run(&arguments, quiet, level),
        Command::Report(arguments) => report::run(&arguments, quiet, as_step),
        #[cfg(feature = "cluster")]
        Command::Scheduler(arguments) => cluster::scheduler(&arguments, quiet),
        #[cfg(feature = "cluster")]
        Command::Executor(arguments) => cluster::executor(&arguments, quiet),
    };
    if as_step {
        let usage = pipeline::StepUsage { peak_memory_bytes: stats::peak_memory_bytes() };
        message(format_args!("{}", pipeline::usage_line(&usage)));
    }
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// Returns the definition of all commands and options.
pub fn command_line() -> clap::Command {
    Arguments::command()
}

fn print_error(error: &Error) {
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "error: {error}");
    if let Some(remedy) = error.remedy() {
        let _ = writeln!(stderr, "  help: {remedy}");
    }
}

/// Prints a line on standard error. A closed stream is not an error.
fn message(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints a result on standard output. It is not an error if the reader closes the pipe early, as in `| head`.
fn print(text: &str) -> planetree_base::error::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("standard output", "write", error))
        }
        _ => Ok(()),
    }
}
