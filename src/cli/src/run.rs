//! `planetree run`

use clap::Args;
use planetree_base::error::Result;
use planetree_base::size::parse_size;
use planetree_base::storage::Access;
use planetree_run::pipeline::{self, Budget, Commands, Known, Plan, RunRequest, RunStep, Step, Watcher, Why};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Run a pipeline: steps of a TOML file, each only if something that it depends on has changed
///
/// A step is a command of this program with its options: convert, describe, train, predict, evaluate,
/// compare, cv, sql, report, export or import. What one step writes and another reads makes the order. A step is
/// skipped when its inputs, its options and the program are what they were, and its outputs are as it
/// wrote them; so a run that was stopped goes on when the same command is run again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree run pipelines/quickstart.toml
  planetree run pipelines/quickstart.toml --dry-run
  planetree run pipelines/letor_cv.toml --set data=MQ2008 --set trees=500
  planetree run pipelines/compare_rankers.toml --set presets=mart,lambdamart --jobs 2
  planetree run pipelines/nightly_s3.toml --set bucket=s3://ranking --set date=2026-11-07
  planetree run pipelines/quickstart.toml --force lambdamart

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
pub struct RunArguments {
    /// The pipeline: a TOML file or a URL
    #[arg(value_name = "PIPELINE.toml")]
    pipeline: String,

    /// A parameter of the pipeline; repeat as needed
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// The run directory: a path or a URL [default: the pipeline's output, else runs/NAME]
    #[arg(long, short, value_name = "DIR|URL")]
    output: Option<String>,

    /// Go on with the run that is there, with its parameters where --set does not say otherwise
    #[arg(long)]
    resume: bool,

    /// Print what would be done and why, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Steps that run even if nothing has changed; `model-*` is all whose name begins so
    #[arg(long, value_name = "STEP", num_args = 1..)]
    force: Vec<String>,

    /// Steps that may run at a time
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,

    /// Threads of all steps together [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Memory of all steps together, such as 4GiB; each gets its share as its --memory-limit
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
}

/// Runs the command.
pub fn run(arguments: &RunArguments, quiet: bool, level: tracing::Level) -> Result<()> {
    let begun = Instant::now();
    let commands = Commands::new(super::command_line());
    let request = RunRequest {
        pipeline: arguments.pipeline.clone(),
        output: arguments.output.clone(),
        set: arguments.set.clone(),
        force: arguments.force.clone(),
        resume: arguments.resume,
        access: if arguments.instance_credentials { Access::InstanceCredentials } else { Access::Explicit },
    };
    let plan = Plan::make(&request, &commands)?;
    if arguments.dry_run {
        return super::print(&dry_run(&plan)?);
    }
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let mut words = vec!["--log".to_owned(), level.to_string().to_lowercase()];
    words.extend(quiet.then(|| "--quiet".to_owned()));
    let budget = Budget {
        jobs: arguments.jobs,
        threads: arguments.threads.unwrap_or(cores),
        memory_limit: arguments.memory_limit,
        words,
        instance_credentials: arguments.instance_credentials,
    };
    let several = arguments.jobs.get() > 1;
    let watcher: Arc<dyn Watcher> = Arc::new(Screen::new(quiet, several));
    let ran = pipeline::run(&plan, &commands, &budget, &watcher)?;
    if !quiet {
        super::say(format_args!(
            "{}: {} run, {} skipped, in {:.1} s; {}",
            plan.name,
            steps(ran.done),
            ran.skipped,
            begun.elapsed().as_secs_f64(),
            plan.run
        ));
    }
    Ok(())
}

fn steps(count: usize) -> String {
    if count == 1 { "1 step".to_owned() } else { format!("{count} steps") }
}

/// What would be done and why.
fn dry_run(plan: &Plan) -> Result<String> {
    let mut known = Known::default();
    plan.check_inputs(&mut known)?;
    let mut text = format!("pipeline {}\nrun directory {}\n", plan.name, plan.run);
    for (name, value) in &plan.parameters {
        let _ = writeln!(text, "  {name} = {value}"); // a String takes everything
    }
    // Steps whose outputs may be others than they are now.
    let mut uncertain: BTreeSet<usize> = BTreeSet::new();
    let (mut will, mut may) = (0, 0);
    for (place, step) in plan.steps.iter().enumerate() {
        let waits: Vec<&str> = step
            .needs
            .iter()
            .filter(|need| uncertain.contains(need))
            .map(|need| plan.steps[*need].name.as_str())
            .collect();
        let verdict = if waits.is_empty() {
            match plan.decide(step, &plan.record(step), &mut known)?.why {
                Some(why) => {
                    will += 1;
                    uncertain.insert(place);
                    format!("run: {why}")
                }
                None => "skip: nothing has changed".to_owned(),
            }
        } else {
            uncertain.insert(place);
            let record = plan.record(step);
            if plan.must_run(step, &record)? {
                will += 1;
                format!("run: after {}", waits.join(", "))
            } else {
                may += 1;
                format!("run if {} comes out otherwise than before", waits.join(", "))
            }
        };
        let _ = writeln!(text, "\n{:>3}  {:<24} {:<9} {verdict}", place + 1, step.name, step.kind.name);
        for (label, from) in inputs_of(plan, step, &plan.record(step)) {
            let _ = writeln!(text, "       reads  {label:<14} {from}");
        }
        for output in 0..step.outputs.len() {
            let key = &step.outputs[output].key;
            let _ = writeln!(
                text,
                "       writes {key:<14} {}",
                pipeline::public(&plan.output_text(step, output))
            );
        }
    }
    let skipped = plan.steps.len() - will - may;
    let maybe = if may > 0 { format!(", {may} may") } else { String::new() };
    let _ =
        writeln!(text, "\n{}: {will} would run{maybe}, {skipped} would be skipped", steps(plan.steps.len()));
    Ok(text)
}

/// What a step reads, and from which step.
fn inputs_of(plan: &Plan, step: &Step, record: &RunStep) -> Vec<(String, String)> {
    let shown = |(label, path): (&String, &String)| {
        let input = step.inputs.iter().find(|input| input.label == *label);
        let from = input.and_then(|input| input.from.as_ref()).map(|from| &plan.steps[from.step].name);
        let from = from.map(|name| format!("  (step {name})")).unwrap_or_default();
        (label.clone(), format!("{path}{from}"))
    };
    record.inputs.iter().map(shown).collect()
}

/// Tells the user how it goes. On a terminal the last thing a step said is rewritten in place; else, or
/// when several run at a time, every line is shown, with its step before it.
struct Screen {
    quiet: bool,
    live: bool,
    line_open: Mutex<bool>,
}

impl Screen {
    fn new(quiet: bool, several: bool) -> Self {
        Screen { quiet, live: std::io::stderr().is_terminal() && !several, line_open: Mutex::new(false) }
    }

    fn say(&self, text: std::fmt::Arguments<'_>) {
        if self.quiet {
            return;
        }
        let mut open = self.line_open.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *open) {
            let _ = write!(std::io::stderr(), "\r\x1b[K"); // nobody listens: no failure
        }
        super::say(text);
    }

    fn show(&self, printed: Option<&[u8]>) {
        if let Some(printed) = printed {
            let _ = super::print(&String::from_utf8_lossy(printed)); // the record has it
        }
    }
}

impl Watcher for Screen {
    fn begins(&self, step: &str, kind: &str, why: &Why) {
        self.say(format_args!("{step}: {kind}, {why}"));
    }

    fn says(&self, step: &str, line: &str) {
        let lasting = ["warning", "note"].iter().any(|word| line.starts_with(word));
        if !self.live || lasting {
            return self.say(format_args!("{step} | {line}"));
        }
        if !self.quiet {
            let mut open = self.line_open.lock().unwrap_or_else(PoisonError::into_inner);
            *open = true;
            // A line that wraps could not be rewritten.
            let text: String = format!("{step} | {line}").chars().take(79).collect();
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}"); // nobody listens: no failure
        }
    }

    fn done(&self, step: &str, seconds: f64, printed: Option<&[u8]>) {
        self.say(format_args!("{step}: done in {seconds:.1} s"));
        self.show(printed);
    }

    fn skipped(&self, step: &str, printed: Option<&[u8]>) {
        self.say(format_args!("{step}: skipped, nothing has changed"));
        self.show(printed);
    }

    fn failed(&self, step: &str) {
        self.say(format_args!("{step}: failed"));
    }

    fn note(&self, text: &str) {
        self.say(format_args!("{text}"));
    }
}
