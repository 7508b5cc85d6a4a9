//! Runs the steps of a pipeline. As soon as the inputs of a step are ready, it is decided whether the step must run,
//! and if so it is started as a separate process. Several processes may run at a time. The state of the run is saved
//! to `run.json` after every change.

use super::child::{FinishedStep, StepProcess};
use super::decide::{IdentityCache, RunReason, StepDecision};
use super::graph::PipelineStep;
use super::identity::{IdentityCheck, identify, rows_of};
use super::manifest::{RunManifest, RunStatus, StepStatus};
use super::options::Commands;
use super::plan::PipelinePlan;
use super::steps_table::write_steps;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{
    FileOutput, Guard, Location, PlaceLock, foreign, interrupt, redacted, redacted_message,
};
use planetree_data::table::{TableKind, TableReader};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// Resources of a run, and options for all its steps.
#[derive(Debug, Clone)]
pub struct RunBudget {
    /// Maximum number of concurrent steps.
    pub jobs: NonZeroUsize,
    /// Number of threads for all steps together.
    pub threads: NonZeroUsize,
    /// Memory limit for all steps together, in bytes.
    pub memory_limit: Option<u64>,
    /// Arguments that are passed to every step, such as `--quiet` or `--log debug`.
    pub words: Vec<String>,
    /// Whether steps may request credentials from the metadata service of the cloud instance.
    pub instance_credentials: bool,
}

/// Receives the progress of a run.
pub trait RunObserver: Send + Sync {
    /// Called when a step starts, with the reason why it runs.
    fn started(&self, step: &str, kind: &str, reason: &RunReason);
    /// Called for every line that a step writes to stderr.
    fn message(&self, step: &str, line: &str);
    /// Called when a step is done. `printed` is its standard output, if the standard output is a result of the step.
    fn done(&self, step: &str, seconds: f64, printed: Option<&[u8]>);
    /// Called when a step is skipped. `printed` is its standard output from an earlier run, if the standard output is
    /// a result of the step.
    fn skipped(&self, step: &str, printed: Option<&[u8]>);
    /// Called when a step fails, while other steps may still be running. `printed` is its standard output, if the step
    /// has a result nevertheless: one that is worse than the user allows.
    fn failed(&self, step: &str, printed: Option<&[u8]>);
    /// Called with any message that does not belong to a step.
    fn note(&self, text: &str);
}

/// Numbers of steps by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCounts {
    /// Number of steps that ran.
    pub done: usize,
    /// Number of steps that were skipped.
    pub skipped: usize,
}

/// Runs all steps of a plan that must run. Returns an error if a step fails.
pub fn run(
    plan: &PipelinePlan,
    commands: &Commands,
    budget: &RunBudget,
    observer: &Arc<dyn RunObserver>,
) -> Result<RunCounts> {
    let lock = PlaceLock::take(&plan.run, &mut |text| observer.note(text))?;
    let mut manifest = RunManifest::new(&plan.name, &plan.description);
    manifest.parameters = plan.parameters.clone();
    manifest.paper = plan.paper.clone();
    manifest.steps = plan.steps.iter().map(|step| plan.record(step)).collect();
    let mut identities = IdentityCache::default();
    plan.check_inputs(&mut identities)?;
    let runner = Runner {
        plan,
        commands,
        budget,
        observer,
        lock: &lock,
        identities,
        manifest,
        running: BTreeMap::new(),
        finished: BTreeSet::new(),
        failure: None,
    };
    runner.run()
}

struct Runner<'r> {
    plan: &'r PipelinePlan,
    commands: &'r Commands,
    budget: &'r RunBudget,
    observer: &'r Arc<dyn RunObserver>,
    lock: &'r PlaceLock,
    identities: IdentityCache,
    manifest: RunManifest,
    /// Running processes, by the index of the step.
    running: BTreeMap<usize, StepProcess>,
    /// Indices of the steps that are done or skipped.
    finished: BTreeSet<usize>,
    /// The first failure. No step starts after it.
    failure: Option<Error>,
}

impl Runner<'_> {
    fn run(mut self) -> Result<RunCounts> {
        self.record()?;
        while self.finished.len() < self.plan.steps.len() {
            self.check_interrupts();
            if self.failure.is_none() {
                let started = self.start_ready();
                self.keep_first_failure(started);
            }
            if self.running.is_empty() && (self.failure.is_some() || !self.has_ready()) {
                break;
            }
            if !self.collect_finished()? {
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
                "interrupted; finished steps are kept",
                "run the same command again to resume",
            )),
            Some(error) => Err(error),
            None => {
                let count = |status| self.manifest.steps.iter().filter(|step| step.status == status).count();
                Ok(RunCounts { done: count(StepStatus::Done), skipped: count(StepStatus::Skipped) })
            }
        }
    }

    fn record(&self) -> Result<()> {
        self.manifest.write(&self.plan.run)
    }

    fn keep_first_failure(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.failure.get_or_insert(error);
        }
    }

    /// Stops all processes if the run is interrupted or has lost the lock of the run directory.
    fn check_interrupts(&mut self) {
        let outcome = interrupt::check().and_then(|()| self.lock.check());
        if outcome.is_err() {
            for process in self.running.values_mut() {
                process.stop();
            }
            self.keep_first_failure(outcome);
        }
    }

    fn is_ready(&self, index: usize) -> bool {
        !self.finished.contains(&index)
            && !self.running.contains_key(&index)
            && self.plan.steps[index].needs.is_subset(&self.finished)
    }

    fn has_ready(&self) -> bool {
        (0..self.plan.steps.len()).any(|index| self.is_ready(index))
    }

    /// Decides which of the ready steps must run, and starts them, up to the maximum number of concurrent steps.
    fn start_ready(&mut self) -> Result<()> {
        let mut index = 0;
        while index < self.plan.steps.len() {
            if self.running.len() >= self.budget.jobs.get() {
                return Ok(());
            }
            if !self.is_ready(index) {
                index += 1;
                continue;
            }
            self.begin(index)?;
            index = 0; // if this step was skipped, an earlier one may be ready now
        }
        Ok(())
    }

    fn begin(&mut self, index: usize) -> Result<()> {
        let step = &self.plan.steps[index];
        let StepDecision { reason, fingerprint, inputs } =
            self.plan.decide(step, &self.manifest.steps[index], &mut self.identities)?;
        let Some(reason) = reason else {
            self.manifest.steps[index].status = StepStatus::Skipped;
            self.finished.insert(index);
            let printed = match PipelinePlan::printed(step) {
                Some(output) => self.plan.output(step, output)?.read_all()?,
                None => None,
            };
            self.observer.skipped(&step.name, printed.as_deref());
            return Ok(());
        };
        let is_own = self.has_run_before(index);
        let is_foreign_cv = step.kind.name == "cv" && !is_own;
        if is_foreign_cv && self.plan.output(step, 0)?.join("cv.json").found()?.is_some() {
            return Err(Error::place(
                redacted(&self.plan.output_text(step, 0)),
                format_args!("step {}: contains a cross-validation that this run did not create", step.name),
                "choose another output, or remove the directory",
            ));
        }
        let wrote = self.wrote_outputs_before(index);
        let record = &mut self.manifest.steps[index];
        // A training step that was started with the same inputs and options but did not finish resumes from its
        // checkpoint.
        let resumes = record.fingerprint == fingerprint && record.output_checksums.is_empty();
        let arguments = self.plan.arguments(step);
        let earlier = EarlierOutputs { resumes, wrote };
        let resources = resource_options(self.plan, step, self.commands, self.budget, &earlier);
        record.fingerprint = fingerprint;
        record.input_checksums = inputs;
        record.output_checksums = BTreeMap::new();
        record.arguments = arguments.iter().chain(&resources).map(|word| redacted(word)).collect();
        (record.seconds, record.rows, record.bytes, record.peak_memory_bytes) = (None, None, None, None);
        self.record()?;
        if !resumes {
            remove_stale_state(step, &self.plan.output(step, 0)?, is_own)?;
        }
        self.observer.started(&step.name, step.kind.name, &reason);
        let words: Vec<String> =
            arguments.into_iter().chain(resources).chain(self.budget.words.clone()).collect();
        let (observer, name) = (self.observer.clone(), step.name.clone());
        let process = StepProcess::start(&words, move |line| observer.message(&name, line))?;
        self.running.insert(index, process);
        Ok(())
    }

    /// Whether an earlier run started this step with the same outputs.
    fn has_run_before(&self, index: usize) -> bool {
        let record = &self.manifest.steps[index];
        let earlier = self.plan.earlier.as_ref().and_then(|earlier| earlier.step(&record.name));
        earlier.is_some_and(|earlier| {
            earlier.kind == record.kind
                && !earlier.fingerprint.is_empty()
                && earlier.outputs == record.outputs
        })
    }

    /// Whether all outputs of this step are outputs of steps that an earlier run started, and may thus be replaced.
    fn wrote_outputs_before(&self, index: usize) -> bool {
        let earlier = self.plan.earlier.iter().flat_map(|earlier| &earlier.steps);
        let started = earlier.filter(|step| !step.fingerprint.is_empty());
        let written: BTreeSet<&String> = started.flat_map(|step| step.outputs.values()).collect();
        self.manifest.steps[index].outputs.values().all(|output| written.contains(output))
    }

    /// Collects the outcomes of finished processes. Returns `false` if no process has finished.
    fn collect_finished(&mut self) -> Result<bool> {
        let mut finished = Vec::new();
        for (index, process) in &mut self.running {
            if let Some(outcome) = process.poll()? {
                finished.push((*index, outcome));
            }
        }
        for (index, outcome) in &finished {
            self.running.remove(index);
            let recorded = self.finish_step(*index, outcome);
            if recorded.is_err() && self.manifest.steps[*index].status == StepStatus::Failed {
                let step = &self.plan.steps[*index];
                let is_shown = outcome.is_gate && PipelinePlan::printed(step).is_some();
                self.observer.failed(&step.name, is_shown.then_some(outcome.printed.as_slice()));
            }
            self.keep_first_failure(recorded);
            self.record()?;
        }
        Ok(!finished.is_empty())
    }

    fn finish_step(&mut self, index: usize, finished: &FinishedStep) -> Result<()> {
        let step = &self.plan.steps[index];
        self.identities.forget(self.plan, step);
        self.manifest.steps[index].seconds = Some(finished.seconds);
        self.manifest.steps[index].peak_memory_bytes =
            finished.usage.and_then(|usage| usage.peak_memory_bytes);
        if let Some((problem, remedy)) = &finished.failure {
            interrupt::check()?; // if interrupted, the run stopped the step, so it did not fail
            let error = self.fail(index, problem, remedy);
            if !finished.is_gate {
                return Err(error);
            }
            // The result is worse than allowed, but it is a result.
            let mut problem = error.to_string();
            if let Err(unwritten) = self.keep_printed(index, &finished.printed) {
                problem = format!("{problem}; {unwritten}");
            }
            return Err(Error::QualityGate { problem });
        }
        let printed = PipelinePlan::printed(step);
        self.keep_printed(index, &finished.printed)?;
        let (mut checksums, mut bytes) = (BTreeMap::new(), 0);
        for (output, written) in step.outputs.iter().enumerate() {
            match identify(&self.plan.output(step, output)?, IdentityCheck::Quick)? {
                Some(identity) => {
                    checksums.insert(written.key.clone(), identity.digest);
                    bytes += identity.bytes;
                }
                None => {
                    let problem = format!("output {} was not written", written.text);
                    return Err(self.fail(
                        index,
                        &problem,
                        "this is a bug in planetree: please report it with the command and its output",
                    ));
                }
            }
        }
        let record = &mut self.manifest.steps[index];
        record.rows = rows_of(&self.plan.output(step, 0)?);
        record.bytes = Some(bytes);
        record.output_checksums = checksums;
        record.status = StepStatus::Done;
        self.finished.insert(index);
        let shown = printed.map(|_| finished.printed.as_slice());
        self.observer.done(&step.name, finished.seconds, shown);
        Ok(())
    }

    /// Writes the standard output of a step to a file, if it is a result of the step.
    fn keep_printed(&self, index: usize, printed: &[u8]) -> Result<()> {
        let step = &self.plan.steps[index];
        let Some(output) = PipelinePlan::printed(step) else { return Ok(()) };
        write_printed(&self.plan.output(step, output)?, printed, self.wrote_outputs_before(index))
    }

    fn fail(&mut self, index: usize, problem: &str, remedy: &str) -> Error {
        let record = &mut self.manifest.steps[index];
        record.status = StepStatus::Failed;
        record.error = Some(redacted_message(problem));
        Error::place(format_args!("step {}", self.plan.steps[index].name), problem, remedy)
    }
}

/// Removes files from which a step would resume although its inputs or options have changed: the checkpoint of a
/// training run and, if this pipeline wrote it, the output directory of a cross-validation.
fn remove_stale_state(step: &PipelineStep, output: &Location, is_own: bool) -> Result<()> {
    match step.kind.name {
        "train" => {
            let checkpoint = output.with_suffix("", ".checkpoint");
            match TableReader::kind_of(&checkpoint)? {
                Some(TableKind::Model) => checkpoint.remove(),
                _ => Ok(()),
            }
        }
        "cv" if is_own && output.join("cv.json").found()?.is_some() => output.remove_tree(),
        _ => Ok(()),
    }
}

/// Facts about the outputs that an earlier run left for a step.
struct EarlierOutputs {
    /// Whether the earlier run started the step with the same inputs and options, so that the step resumes.
    resumes: bool,
    /// Whether the earlier run wrote the outputs of the step, or started to write them.
    wrote: bool,
}

/// Returns the options that the run adds to the command line of a step. Options that the pipeline file sets are not
/// added.
fn resource_options(
    plan: &PipelinePlan,
    step: &PipelineStep,
    commands: &Commands,
    budget: &RunBudget,
    earlier: &EarlierOutputs,
) -> Vec<String> {
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
        "convert" | "augment" | "impute" | "select" => words.push("--overwrite".to_owned()),
        // The content of a text file does not show whether planetree wrote it, but the record of the earlier run
        // does.
        "sql" if earlier.wrote => words.push("--overwrite".to_owned()),
        "train" => {
            if wants("checkpoint_every", "checkpoint-every") {
                words.extend(["--checkpoint-every", "60s"].map(str::to_owned));
            }
            if earlier.resumes {
                words.push("--resume".to_owned());
            }
        }
        _ => {}
    }
    words
}

/// Writes the standard output of a step to a file. The content of an existing file does not show whether planetree
/// wrote it, so `is_recorded` says whether the file is an earlier output and may be replaced.
fn write_printed(location: &Location, printed: &[u8], is_recorded: bool) -> Result<()> {
    let guard: Guard = Arc::new(move |location| if is_recorded { Ok(()) } else { Err(foreign(location)) });
    let mut output = FileOutput::guarded(location, guard)?;
    output.write_all(printed).map_err(|error| Error::io(location, "write", error))?;
    output.commit()
}
