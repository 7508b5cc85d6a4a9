//! Implements `planetree run`.

use super::options::{StoreOptions, parse_count};
use clap::Args;
use planetree_base::error::Result;
use planetree_base::size::parse_size;
use planetree_base::storage::redacted;
use planetree_data::sample::{SampleOptions, SampleShape, sample};
use planetree_run::pipeline::{
    self, Commands, IdentityCache, PipelinePlan, PipelineStep, RunBudget, RunObserver, RunReason, RunRequest,
    RunStep, SHIPPED, ShippedPipeline,
};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Run a pipeline: the steps of a TOML file, skipping those that are up to date
///
/// A step is a command with its options: convert, describe, train, predict, evaluate, compare, cv, blend,
/// cost, augment, impute, select, sql, report, export or import. Steps are ordered by their inputs and outputs. A step is skipped if its inputs, its options, its
/// outputs and the version of the program have not changed since it completed, so running the same command again
/// resumes a run that was interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree run quickstart
  planetree run --list
  planetree run quickstart --dry-run
  planetree run pipelines/letor_cv.toml --set data=MQ2008 --set trees=500
  planetree run pipelines/compare_rankers.toml --set presets=mart,lambdamart --jobs 2
  planetree run pipelines/nightly_s3.toml --set bucket=s3://ranking --set date=2026-11-07
  planetree run pipelines/quickstart.toml --force 'model-*'

A pipeline:
  [parameters]
  trees = 100

  [step.train]
  kind = \"convert\"
  input = \"train.txt\"

  [step.ranker]
  kind = \"train\"
  data = \"train\"                        # the step above
  preset = \"lambdamart\"
  set = { num_trees = \"{trees}\" }")]
pub(crate) struct RunArguments {
    /// Pipeline: a TOML file, a URL, or a name of --list
    #[arg(value_name = "PIPELINE", required_unless_present_any = ["list", "show"])]
    pipeline: Option<String>,

    /// List the built-in pipelines
    #[arg(long, exclusive = true)]
    list: bool,

    /// Print the TOML file of a built-in pipeline, as a starting point for your own
    #[arg(long, value_name = "NAME", exclusive = true)]
    show: Option<String>,

    /// Set a parameter of the pipeline; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Run directory: a path or a URL [default: the pipeline's output, else runs/NAME]
    #[arg(long, short, value_name = "DIR|URL")]
    output: Option<String>,

    /// Resume the existing run with its parameters; --set overrides them
    #[arg(long)]
    resume: bool,

    /// Print which steps would run and why, without running them
    #[arg(long)]
    dry_run: bool,

    /// Run these steps even if they are up to date; `model-*` matches all names with this prefix
    #[arg(long, value_name = "STEP", num_args = 1..)]
    force: Vec<String>,

    /// Maximum number of steps that run concurrently
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    jobs: NonZeroUsize,

    /// Number of threads shared by all running steps [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,

    /// Memory limit shared by all running steps, such as 4GiB; each step gets an equal part as its --memory-limit
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    #[command(flatten)]
    store: StoreOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &RunArguments, quiet: bool, level: tracing::Level) -> Result<()> {
    if arguments.list {
        return super::print(&list()?);
    }
    if let Some(name) = &arguments.show {
        return super::print(ShippedPipeline::find(name)?.text);
    }
    let started = Instant::now();
    let pipeline = arguments.pipeline.clone().unwrap_or_default(); // required by the command line
    make_sample_data(&pipeline, &arguments.set, quiet)?;
    let commands = Commands::new(super::command_line());
    let request = RunRequest {
        pipeline,
        output: arguments.output.clone(),
        set: arguments.set.clone(),
        force: arguments.force.clone(),
        resume: arguments.resume,
        access: arguments.store.access(),
    };
    let plan = PipelinePlan::new(&request, &commands)?;
    if arguments.dry_run {
        return super::print(&dry_run(&plan)?);
    }
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let mut words = vec!["--log".to_owned(), level.to_string().to_lowercase()];
    words.extend(quiet.then(|| "--quiet".to_owned()));
    let budget = RunBudget {
        jobs: arguments.jobs,
        threads: arguments.threads.unwrap_or(cores),
        memory_limit: arguments.memory_limit,
        words,
        instance_credentials: arguments.store.instance_credentials(),
    };
    let is_concurrent = arguments.jobs.get() > 1;
    let watcher: Arc<dyn RunObserver> = Arc::new(RunConsole::new(quiet, is_concurrent));
    let ran = pipeline::run(&plan, &commands, &budget, &watcher)?;
    if !quiet {
        super::message(format_args!(
            "{}: {} run, {} skipped, in {:.1} s; {}",
            plan.name,
            shown_steps(ran.done),
            ran.skipped,
            started.elapsed().as_secs_f64(),
            plan.run
        ));
    }
    Ok(())
}

fn shown_steps(count: usize) -> String {
    if count == 1 { "1 step".to_owned() } else { format!("{count} steps") }
}

/// Returns the names and descriptions of the pipelines that the program contains.
fn list() -> Result<String> {
    let (papers, others): (Vec<_>, Vec<_>) = SHIPPED.iter().partition(|pipeline| pipeline.is_of_paper());
    let mut text = String::new();
    for (heading, pipelines) in [("", others), ("\nresults of papers (docs/papers.md)\n", papers)] {
        text.push_str(heading);
        for pipeline in pipelines {
            let _ = writeln!(text, "{:<24} {}", pipeline.name(), pipeline.description()?); // writing to a String cannot fail
        }
    }
    Ok(text)
}

/// The directory that shipped pipelines read by default.
const SAMPLE_DATA: &str = "sample_data";

/// Generates the sample data in the current directory if a pipeline that the program contains would read them and they
/// are not there.
fn make_sample_data(pipeline: &str, set: &[String], quiet: bool) -> Result<()> {
    let Some(shipped) = ShippedPipeline::named(pipeline) else { return Ok(()) };
    let reads_sample = shipped.text.contains(&format!("\"{SAMPLE_DATA}\"")) && !Path::new(pipeline).exists();
    let is_set = set.iter().any(|setting| setting.starts_with("data="));
    if !reads_sample || is_set || Path::new(SAMPLE_DATA).exists() {
        return Ok(());
    }
    if !quiet {
        super::message(format_args!(
            "note: generating sample data in ./{SAMPLE_DATA}; pass --set data=DIR for your own"
        ));
    }
    let options =
        SampleOptions { shape: SampleShape::Letor, rows: 3000, seed: 1, output: SAMPLE_DATA.into() };
    sample(&options, &mut |_| {})?;
    Ok(())
}

/// Returns the text of `--dry-run`: which steps would run, and why.
fn dry_run(plan: &PipelinePlan) -> Result<String> {
    let mut known = IdentityCache::default();
    plan.check_inputs(&mut known)?;
    let mut text = format!("pipeline {}\nrun directory {}\n", plan.name, plan.run);
    for (name, value) in &plan.parameters {
        let _ = writeln!(text, "  {name} = {value}"); // writing to a String cannot fail
    }
    // Indices of the steps whose outputs may change.
    let mut uncertain: BTreeSet<usize> = BTreeSet::new();
    let (mut will, mut may) = (0, 0);
    for (index, step) in plan.steps.iter().enumerate() {
        let waits_for: Vec<&str> = step
            .needs
            .iter()
            .filter(|need| uncertain.contains(need))
            .map(|need| plan.steps[*need].name.as_str())
            .collect();
        let decision = if waits_for.is_empty() {
            match plan.decide(step, &plan.record(step), &mut known)?.reason {
                Some(why) => {
                    will += 1;
                    uncertain.insert(index);
                    format!("run: {why}")
                }
                None => "skip: up to date".to_owned(),
            }
        } else {
            uncertain.insert(index);
            let record = plan.record(step);
            if plan.must_run(step, &record)? {
                will += 1;
                format!("run: after {}", waits_for.join(", "))
            } else {
                may += 1;
                format!("run if the output of {} changes", waits_for.join(", "))
            }
        };
        let _ = writeln!(text, "\n{:>3}  {:<24} {:<9} {decision}", index + 1, step.name, step.kind.name);
        for (label, from) in inputs_of(plan, step, &plan.record(step)) {
            let _ = writeln!(text, "       reads  {label:<14} {from}");
        }
        for output in 0..step.outputs.len() {
            let key = &step.outputs[output].key;
            let _ = writeln!(text, "       writes {key:<14} {}", redacted(&plan.output_text(step, output)));
        }
    }
    let skipped = plan.steps.len() - will - may;
    let maybe = if may > 0 { format!(", {may} may") } else { String::new() };
    let _ = writeln!(
        text,
        "\n{}: {will} would run{maybe}, {skipped} would be skipped",
        shown_steps(plan.steps.len())
    );
    Ok(text)
}

/// Returns the labels and paths of a step's inputs, with the names of the steps that write them.
fn inputs_of(plan: &PipelinePlan, step: &PipelineStep, record: &RunStep) -> Vec<(String, String)> {
    let shown = |(label, path): (&String, &String)| {
        let input = step.inputs.iter().find(|input| input.label == *label);
        let from = input.and_then(|input| input.from.as_ref()).map(|from| &plan.steps[from.step].name);
        let from = from.map(|name| format!("  (step {name})")).unwrap_or_default();
        (label.clone(), format!("{path}{from}"))
    };
    record.inputs.iter().map(shown).collect()
}

/// Shows the progress of a run on standard error. On a terminal, the latest line of a step is rewritten in place.
/// Otherwise, or if steps run concurrently, every line is printed with the name of its step.
struct RunConsole {
    quiet: bool,
    live: bool,
    line_open: Mutex<bool>,
}

impl RunConsole {
    fn new(quiet: bool, is_concurrent: bool) -> Self {
        RunConsole {
            quiet,
            live: std::io::stderr().is_terminal() && !is_concurrent,
            line_open: Mutex::new(false),
        }
    }

    fn print_line(&self, text: std::fmt::Arguments<'_>) {
        if self.quiet {
            return;
        }
        let mut open = self.line_open.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *open) {
            let _ = write!(std::io::stderr(), "\r\x1b[K"); // a closed stream is not an error
        }
        super::message(text);
    }

    fn print_output(&self, printed: Option<&[u8]>) {
        if let Some(printed) = printed {
            let _ = super::print(&String::from_utf8_lossy(printed)); // the output is also saved in the run directory
        }
    }
}

impl RunObserver for RunConsole {
    fn started(&self, step: &str, kind: &str, why: &RunReason) {
        self.print_line(format_args!("{step}: {kind}, {why}"));
    }

    fn message(&self, step: &str, line: &str) {
        let level = ["warning: ", "note: ", "error: "].into_iter().find(|level| line.starts_with(level));
        if let Some(level) = level {
            // The level comes first, as in all other messages.
            return self.print_line(format_args!("{level}{step} | {}", &line[level.len()..]));
        }
        if !self.live {
            return self.print_line(format_args!("{step} | {line}"));
        }
        if !self.quiet {
            let mut open = self.line_open.lock().unwrap_or_else(PoisonError::into_inner);
            *open = true;
            // The text is shortened, because a line that wraps cannot be rewritten.
            let text: String = format!("{step} | {line}").chars().take(79).collect();
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}"); // a closed stream is not an error
        }
    }

    fn done(&self, step: &str, seconds: f64, printed: Option<&[u8]>) {
        self.print_line(format_args!("{step}: done in {seconds:.1} s"));
        self.print_output(printed);
    }

    fn skipped(&self, step: &str, printed: Option<&[u8]>) {
        self.print_line(format_args!("{step}: skipped, up to date"));
        self.print_output(printed);
    }

    fn failed(&self, step: &str, printed: Option<&[u8]>) {
        self.print_line(format_args!("{step}: failed"));
        self.print_output(printed);
    }

    fn note(&self, text: &str) {
        self.print_line(format_args!("{text}"));
    }
}
