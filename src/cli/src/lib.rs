//! Parses the command line, turns the arguments into requests to the other crates, and prints the results.

#![warn(unreachable_pub)]

mod augment;
mod baselines;
mod blend;
#[cfg(feature = "cluster")]
mod cluster;
mod columns;
mod compare;
mod completions;
mod console;
mod convert;
mod cost;
mod cv;
mod describe;
mod evaluate;
mod execution;
mod exit_options;
mod export;
mod help;
mod import;
mod impute;
mod logging;
mod names;
mod options;
mod parameter_arguments;
mod predict;
mod predict_batch;
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
mod tables;
mod train;
mod usage;
mod verify_export;

pub use console::Console;

use clap::{CommandFactory, Parser, Subcommand};
use planetree_base::error::{Error, Result};
use planetree_base::panics;
use planetree_base::terminal::printable;
use planetree_run::pipeline;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Display order of the options that all commands share. It is larger than the number of options of any command, so
/// that these options come last, and smaller than the order of `--help` and `--version`, which is 999.
const GLOBAL_ORDER: usize = 900;

/// Learning to rank with boosted trees, random forests, linear models and neural nets
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

    /// Format of messages on stderr
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value = "text", display_order = GLOBAL_ORDER + 2)]
    log_format: logging::LogFormat,

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
    Export(export::ExportArguments),
    VerifyExport(verify_export::VerifyArguments),
    Import(import::ImportArguments),
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
fn abort(error: Option<Error>) {
    if let Some(error) = error {
        logging::print_line(&format!("error: {error}"));
    }
    std::process::exit(1);
}

/// Runs the program with the arguments of the process. Exit codes: 0 for success, 1 for failure, 2 for incorrect usage.
pub fn main() -> ExitCode {
    ExitCode::from(main_with(std::env::args_os()))
}

/// Runs the program with the given arguments, of which the first is the name of the program. Returns the exit code.
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let program = Arguments::command();
    let words = parameter_arguments::with_parameters(arguments.into_iter().collect(), &program);
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => return usage::report(error, &words, &program),
    };
    logging::start(arguments.log, arguments.log_format, arguments.quiet);
    panics::print_only_unguarded();
    if words.iter().any(|word| word.to_string_lossy().starts_with("--memory-limit")) {
        planetree_base::process_memory::return_freed_memory();
    }
    let as_step = arguments.as_step;
    let outcome = panics::guarded(|| {
        planetree_base::storage::interrupt::listen(abort);
        if as_step {
            planetree_base::storage::interrupt::listen_to_input();
        }
        run_command(arguments)
    });
    let outcome = outcome.unwrap_or_else(|panic| Err(panic.into_error("planetree")));
    if as_step {
        let usage = pipeline::StepUsage { peak_memory_bytes: planetree_base::process_memory::peak_bytes() };
        // The mark of the line is a control character, so it is printed as it is. A closed stream is not an error.
        let _ = writeln!(std::io::stderr(), "{}", pipeline::usage_line(&usage));
    }
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            print_error(&error);
            error.exit_code()
        }
    }
}

/// Runs a command inside another program, which handles signals and errors itself and receives the output. The
/// arguments do not include the name of the program.
pub fn run_inside(arguments: &[String], console: Arc<dyn Console>) -> Result<()> {
    let words = std::iter::once("planetree").chain(arguments.iter().map(String::as_str)).map(OsString::from);
    let program = Arguments::command();
    let words = parameter_arguments::with_parameters(words.collect(), &program);
    let arguments = Arguments::try_parse_from(&words)
        .map_err(|error| usage::as_error(&usage::with_tip(error, &words, &program)))?;
    console::with(console, || run_command(arguments))
}

fn run_command(arguments: Arguments) -> Result<()> {
    let (quiet, level, as_step) = (arguments.quiet, arguments.log, arguments.as_step);
    match arguments.command {
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
        Command::Export(arguments) => export::run(&arguments, quiet),
        Command::VerifyExport(arguments) => verify_export::run(&arguments),
        Command::Import(arguments) => import::run(&arguments, quiet),
        Command::Completions(arguments) => completions::completions(&arguments, Arguments::command()),
        Command::Man(arguments) => completions::man(&arguments, Arguments::command()),
        Command::Run(arguments) => run::run(&arguments, quiet, level),
        Command::Report(arguments) => report::run(&arguments, quiet, as_step),
        #[cfg(feature = "cluster")]
        Command::Scheduler(arguments) => cluster::scheduler(&arguments, quiet),
        #[cfg(feature = "cluster")]
        Command::Executor(arguments) => cluster::executor(&arguments, quiet),
    }
}

/// Returns the definition of all commands and options.
pub fn command_line() -> clap::Command {
    Arguments::command()
}

fn print_error(error: &Error) {
    match error.remedy() {
        Some(remedy) if logging::is_json() => message(format_args!("error: {error}; help: {remedy}")),
        Some(remedy) => message(format_args!("error: {error}\n  help: {remedy}")),
        None => message(format_args!("error: {error}")),
    }
}

/// Prints a line on standard error. A closed stream is not an error.
fn message(text: std::fmt::Arguments<'_>) {
    let text = text.to_string();
    match console::current() {
        Some(console) => console.message(&text),
        None => logging::print_line(&text),
    }
}

/// Prints a result on standard output. It is not an error if the reader closes the pipe early, as in `| head`.
fn print(text: &str) -> Result<()> {
    if let Some(console) = console::current() {
        console.result(text);
        return Ok(());
    }
    printed(std::io::stdout().lock().write_all(printable(text).as_bytes()))
}

/// Returns the error of writing to standard output, unless the reader closed the pipe.
fn printed(outcome: std::io::Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("standard output", "write", error))
        }
        _ => Ok(()),
    }
}
