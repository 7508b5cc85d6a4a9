//! Running a plan: steps whose inputs are there are decided about one after another, and those that must
//! run do so as processes, some at a time. The record is written anew whenever something has changed.

use super::child::{Ended, Process};
use super::decide::{Decision, Known, Why};
use super::graph::Step;
use super::identity::{Look, identify, rows_of};
use super::manifest::{RunManifest, RunStatus, StepStatus};
use super::options::Commands;
use super::plan::{Plan, public};
use super::steps_table::write_steps;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{FileOutput, Guard, Location, PlaceLock, foreign, interrupt};
use planetree_data::table::{TableKind, TableReader};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// What a run may use.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Steps at a time.
    pub jobs: NonZeroUsize,
    /// Threads of all of them together.
    pub threads: NonZeroUsize,
    /// Memory of all of them together.
    pub memory_limit: Option<u64>,
    /// Words for every step: `--quiet`, `--log debug`.
    pub words: Vec<String>,
    /// Whether steps may ask the metadata service for credentials.
    pub instance_credentials: bool,
}

/// Who is told how it goes.
pub trait Watcher: Send + Sync {
    /// A step runs, and why.
    fn begins(&self, step: &str, kind: &str, why: &Why);
    /// What a step says.
    fn says(&self, step: &str, line: &str);
    /// A step has run; what it printed, if that is its result.
    fn done(&self, step: &str, seconds: f64, printed: Option<&[u8]>);
    /// A step need not run; what it printed when it did.
    fn skipped(&self, step: &str, printed: Option<&[u8]>);
    /// A step has failed; others may still be at work.
    fn failed(&self, step: &str);
    /// Something else.
    fn note(&self, text: &str);
}

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// Steps that ran.
    pub done: usize,
    /// Steps that need not.
    pub skipped: usize,
}

/// Runs a plan to its end.
pub fn run(plan: &Plan, commands: &Commands, budget: &Budget, watcher: &Arc<dyn Watcher>) -> Result<Ran> {
    let lock = PlaceLock::take(&plan.run, &mut |text| watcher.note(text))?;
    let mut manifest = RunManifest::new(&plan.name, &plan.description);
    manifest.parameters = plan.parameters.clone();
    manifest.steps = plan.steps.iter().map(|step| plan.record(step)).collect();
    let mut known = Known::default();
    plan.check_inputs(&mut known)?;
    let runner = Runner {
        plan,
        commands,
        budget,
        watcher,
        lock: &lock,
        known,
        manifest,
        running: BTreeMap::new(),
        settled: BTreeSet::new(),
        failure: None,
    };
    runner.run()
}

struct Runner<'r> {
    plan: &'r Plan,
    commands: &'r Commands,
    budget: &'r Budget,
    watcher: &'r Arc<dyn Watcher>,
    lock: &'r PlaceLock,
    known: Known,
    manifest: RunManifest,
    /// Processes at work, by step.
    running: BTreeMap<usize, Process>,
    /// Steps that are done or need not run.
    settled: BTreeSet<usize>,
    /// The first failure; nothing starts after it.
    failure: Option<Error>,
}

impl Runner<'_> {
    fn run(mut self) -> Result<Ran> {
        self.record()?;
        while self.settled.len() < self.plan.steps.len() {
            self.watch_for_trouble();
            if self.failure.is_none() {
                let started = self.start_ready();
                self.failed_early(started);
            }
            if self.running.is_empty() && (self.failure.is_some() || !self.has_ready()) {
                break;
            }
            if !self.reap()? {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let status = if self.failure.is_some() { RunStatus::Failed } else { RunStatus::Complete };
        self.manifest.status = status;
        if !matches!(self.failure, Some(Error::Interrupted)) {
            write_steps(&self.manifest, &self.plan.run)?;
        }
        self.record()?;
        match self.failure.take() {
            Some(Error::Interrupted) => Err(Error::place(
                &self.plan.run,
                "interrupted; steps that were done stay done",
                "run the same command again to go on",
            )),
            Some(error) => Err(error),
            None => {
                let count = |status| self.manifest.steps.iter().filter(|step| step.status == status).count();
                Ok(Ran { done: count(StepStatus::Done), skipped: count(StepStatus::Skipped) })
            }
        }
    }

    fn record(&self) -> Result<()> {
        self.manifest.write(&self.plan.run)
    }

    /// Keeps the first failure.
    fn failed_early(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.failure.get_or_insert(error);
        }
    }

    /// Stops everything when the user wants that, or when the run directory is lost.
    fn watch_for_trouble(&mut self) {
        let outcome = interrupt::check().and_then(|()| self.lock.check());
        if outcome.is_err() {
            for process in self.running.values_mut() {
                process.stop();
            }
            self.failed_early(outcome);
        }
    }

    fn is_ready(&self, place: usize) -> bool {
        !self.settled.contains(&place)
            && !self.running.contains_key(&place)
            && self.plan.steps[place].needs.is_subset(&self.settled)
    }

    fn has_ready(&self) -> bool {
        (0..self.plan.steps.len()).any(|place| self.is_ready(place))
    }

    /// Decides about steps that are ready, and starts those that must run while there is room.
    fn start_ready(&mut self) -> Result<()> {
        let mut place = 0;
        while place < self.plan.steps.len() {
            if self.running.len() >= self.budget.jobs.get() {
                return Ok(());
            }
            if !self.is_ready(place) {
                place += 1;
                continue;
            }
            self.begin(place)?;
            place = 0; // a step that need not run may have made an earlier one ready
        }
        Ok(())
    }

    fn begin(&mut self, place: usize) -> Result<()> {
        let step = &self.plan.steps[place];
        let Decision { why, fingerprint, inputs } =
            self.plan.decide(step, &self.manifest.steps[place], &mut self.known)?;
        let Some(why) = why else {
            self.manifest.steps[place].status = StepStatus::Skipped;
            self.settled.insert(place);
            let printed = match Plan::printed(step) {
                Some(output) => self.plan.output(step, output)?.read_all()?,
                None => None,
            };
            self.watcher.skipped(&step.name, printed.as_deref());
            return Ok(());
        };
        let ours = self.made_before(place);
        let is_other = step.kind.name == "cv" && !ours;
        if is_other && self.plan.output(step, 0)?.join("cv.json").found()?.is_some() {
            return Err(Error::place(
                public(&self.plan.output_text(step, 0)),
                format_args!("step {}: here is a cross-validation that this run did not make", step.name),
                "choose another output, or remove the directory",
            ));
        }
        let wrote = self.wrote_before(place);
        let record = &mut self.manifest.steps[place];
        // A training that began with the same inputs and options goes on from its checkpoint.
        let goes_on = record.fingerprint == fingerprint && record.output_checksums.is_empty();
        let arguments = self.plan.arguments(step);
        let before = Before { goes_on, wrote };
        let means = means(self.plan, step, self.commands, self.budget, before);
        record.fingerprint = fingerprint;
        record.input_checksums = inputs;
        record.output_checksums = BTreeMap::new();
        record.arguments = arguments.iter().chain(&means).map(|word| public(word)).collect();
        (record.seconds, record.rows, record.bytes, record.peak_memory_bytes) = (None, None, None, None);
        self.record()?;
        if !goes_on {
            clear(step, &self.plan.output(step, 0)?, ours)?;
        }
        self.watcher.begins(&step.name, step.kind.name, &why);
        let words: Vec<String> =
            arguments.into_iter().chain(means).chain(self.budget.words.clone()).collect();
        let (watcher, name) = (self.watcher.clone(), step.name.clone());
        let process = Process::start(&words, move |line| watcher.says(&name, line))?;
        self.running.insert(place, process);
        Ok(())
    }

    /// Whether an earlier run of this step began to write to the same places.
    fn made_before(&self, place: usize) -> bool {
        let record = &self.manifest.steps[place];
        let earlier = self.plan.earlier.as_ref().and_then(|earlier| earlier.step(&record.name));
        earlier.is_some_and(|earlier| {
            earlier.kind == record.kind
                && !earlier.fingerprint.is_empty()
                && earlier.outputs == record.outputs
        })
    }

    /// Whether an earlier run began to write to all places of this step, by whichever step.
    fn wrote_before(&self, place: usize) -> bool {
        let earlier = self.plan.earlier.iter().flat_map(|earlier| &earlier.steps);
        let begun = earlier.filter(|step| !step.fingerprint.is_empty());
        let written: BTreeSet<&String> = begun.flat_map(|step| step.outputs.values()).collect();
        self.manifest.steps[place].outputs.values().all(|output| written.contains(output))
    }

    /// Takes in processes that have ended; whether there were any.
    fn reap(&mut self) -> Result<bool> {
        let mut ended = Vec::new();
        for (place, process) in &mut self.running {
            if let Some(outcome) = process.poll()? {
                ended.push((*place, outcome));
            }
        }
        for (place, outcome) in &ended {
            self.running.remove(place);
            let taken = self.take_in(*place, outcome);
            if taken.is_err() && self.manifest.steps[*place].status == StepStatus::Failed {
                self.watcher.failed(&self.plan.steps[*place].name);
            }
            self.failed_early(taken);
            self.record()?;
        }
        Ok(!ended.is_empty())
    }

    fn take_in(&mut self, place: usize, ended: &Ended) -> Result<()> {
        let step = &self.plan.steps[place];
        self.known.forget(self.plan, step);
        self.manifest.steps[place].seconds = Some(ended.seconds);
        self.manifest.steps[place].peak_memory_bytes =
            ended.figures.and_then(|figures| figures.peak_memory_bytes);
        if let Some((problem, remedy)) = &ended.failure {
            interrupt::check()?; // we asked it to stop; it did not fail
            return Err(self.fail(place, problem, remedy));
        }
        let printed = Plan::printed(step);
        if let Some(output) = printed {
            write_printed(&self.plan.output(step, output)?, &ended.printed, self.wrote_before(place))?;
        }
        let (mut checksums, mut bytes) = (BTreeMap::new(), 0);
        for (output, written) in step.outputs.iter().enumerate() {
            match identify(&self.plan.output(step, output)?, Look::Quick)? {
                Some(identity) => {
                    checksums.insert(written.key.clone(), identity.digest);
                    bytes += identity.bytes;
                }
                None => {
                    let problem = format!("it has not written {}", written.text);
                    return Err(self.fail(place, &problem, "report this: it is a fault of planetree"));
                }
            }
        }
        let record = &mut self.manifest.steps[place];
        record.rows = rows_of(&self.plan.output(step, 0)?);
        record.bytes = Some(bytes);
        record.output_checksums = checksums;
        record.status = StepStatus::Done;
        self.settled.insert(place);
        let shown = printed.map(|_| ended.printed.as_slice());
        self.watcher.done(&step.name, ended.seconds, shown);
        Ok(())
    }

    fn fail(&mut self, place: usize, problem: &str, remedy: &str) -> Error {
        let record = &mut self.manifest.steps[place];
        record.status = StepStatus::Failed;
        record.error = Some(public(problem));
        Error::place(format_args!("step {}", self.plan.steps[place].name), problem, remedy)
    }
}

/// Removes what a step would go on from although it began otherwise: a training's checkpoint, and the folds
/// of a cross-validation, if it was this pipeline that made them.
fn clear(step: &Step, output: &Location, ours: bool) -> Result<()> {
    match step.kind.name {
        "train" => {
            let checkpoint = output.with_suffix("", ".checkpoint");
            match TableReader::kind_of(&checkpoint)? {
                Some(TableKind::Model) => checkpoint.remove(),
                _ => Ok(()),
            }
        }
        "cv" if ours && output.join("cv.json").found()?.is_some() => output.remove_tree(),
        _ => Ok(()),
    }
}

/// What an earlier run left.
struct Before {
    /// Whether the step began with the same inputs and options.
    goes_on: bool,
    /// Whether it wrote, or began to write, to the step's places.
    wrote: bool,
}

/// Words that say how a step runs, as far as the pipeline does not.
fn means(plan: &Plan, step: &Step, commands: &Commands, budget: &Budget, before: Before) -> Vec<String> {
    let jobs = budget.jobs.get();
    let wants = |key: &str, long: &str| !step.keys.contains(key) && commands.has(step.kind, long);
    let mut words = Vec::new();
    if wants("threads", "threads") {
        words.extend(["--threads".to_owned(), (budget.threads.get() / jobs).max(1).to_string()]);
    }
    if let Some(limit) = budget.memory_limit.filter(|_| wants("memory_limit", "memory-limit")) {
        words.extend(["--memory-limit".to_owned(), (limit / jobs as u64).max(1).to_string()]);
    }
    if budget.instance_credentials && wants("instance_credentials", "instance-credentials") {
        words.push("--instance-credentials".to_owned());
    }
    if let Location::Local(path) = &plan.run
        && wants("cache", "cache")
    {
        words.extend(["--cache".to_owned(), path.join(".bins").to_string_lossy().into_owned()]);
    }
    match step.kind.name {
        "convert" => words.push("--overwrite".to_owned()),
        // Text does not say who wrote it, but the record does.
        "sql" if before.wrote => words.push("--overwrite".to_owned()),
        "train" => {
            if wants("checkpoint_every", "checkpoint-every") {
                words.extend(["--checkpoint-every", "60s"].map(str::to_owned));
            }
            if before.goes_on {
                words.push("--resume".to_owned());
            }
        }
        _ => {}
    }
    words
}

/// Keeps what a step printed. Text does not say who wrote it, but the record does.
fn write_printed(place: &Location, printed: &[u8], is_recorded: bool) -> Result<()> {
    let guard: Guard = Arc::new(move |place| if is_recorded { Ok(()) } else { Err(foreign(place)) });
    let mut output = FileOutput::guarded(place, guard)?;
    output.write_all(printed).map_err(|error| Error::io(place, "write", &error))?;
    output.commit()
}
