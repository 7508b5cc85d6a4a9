//! Decides whether a step of a pipeline must run. A step is skipped if its inputs, its options and the version of the
//! program have not changed since it last finished, and if its outputs are still as it wrote them.

use super::graph::{PipelineStep, StepInput, WordContent};
use super::identity::{ContentIdentity, IdentityCheck, identify, identify_external};
use super::manifest::RunStep;
use super::plan::PipelinePlan;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, digest_of, redacted};
use std::collections::BTreeMap;

const PROGRAM: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"));

/// Why a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunReason {
    /// The step has not run in this directory yet.
    New,
    /// The step started but did not finish.
    Unfinished,
    /// `--force` names the step.
    Forced,
    /// The step was last run by another version of the program.
    Program,
    /// The options of the step have changed.
    Arguments,
    /// The content of the input with this label has changed.
    Input(String),
    /// The output with this key is missing.
    OutputMissing(String),
    /// The output with this key was modified after the step wrote it.
    OutputChanged(String),
}

impl std::fmt::Display for RunReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunReason::New => f.write_str("not run yet"),
            RunReason::Unfinished => f.write_str("not finished"),
            RunReason::Forced => f.write_str("--force"),
            RunReason::Program => write!(f, "last run by another version; this is {PROGRAM}"),
            RunReason::Arguments => f.write_str("options changed"),
            RunReason::Input(label) => write!(f, "{label} changed"),
            RunReason::OutputMissing(key) => write!(f, "{key} is missing"),
            RunReason::OutputChanged(key) => write!(f, "{key} was modified"),
        }
    }
}

/// Whether a step runs, and the state of its inputs.
pub struct StepDecision {
    /// Why the step runs; `None` if it is skipped.
    pub reason: Option<RunReason>,
    /// Fingerprint of the step: a hash of its inputs, its options and the version of the program, followed by a hash
    /// of its options alone.
    pub fingerprint: String,
    /// Hashes of the contents of the inputs, by label.
    pub inputs: BTreeMap<String, Digest>,
}

/// A cache of content hashes by location, so that each location is read only once.
#[derive(Default)]
pub struct IdentityCache(BTreeMap<String, Option<ContentIdentity>>);

impl IdentityCache {
    /// Removes the hashes of a step's outputs from the cache, because the step has just rewritten the outputs.
    pub fn forget(&mut self, plan: &PipelinePlan, step: &PipelineStep) {
        let texts: Vec<String> = (0..step.outputs.len()).map(|index| plan.output_text(step, index)).collect();
        self.0.retain(|key, _| !texts.iter().any(|text| key.contains(text.as_str())));
    }
}

impl PipelinePlan {
    /// Returns the identity (content hash and size) of an input; `None` if the input does not exist.
    pub(super) fn identify_input(
        &self,
        step: &PipelineStep,
        input: &StepInput,
        identities: &mut IdentityCache,
    ) -> Result<Option<ContentIdentity>> {
        let text = self.input_text(input);
        let key = format!("{} {text}", if input.from.is_none() { step.kind.name } else { "" });
        if let Some(identity) = identities.0.get(&key) {
            return Ok(*identity);
        }
        let identity = match &input.from {
            None => identify_external(input, step.kind.name, self.access)?,
            Some(_) => identify(&Location::parse(&text, self.access)?, IdentityCheck::Quick)?,
        };
        identities.0.insert(key, identity);
        Ok(identity)
    }

    /// Decides whether a step runs. All its inputs must exist.
    pub fn decide(
        &self,
        step: &PipelineStep,
        record: &RunStep,
        identities: &mut IdentityCache,
    ) -> Result<StepDecision> {
        let mut inputs = BTreeMap::new();
        for input in &step.inputs {
            let Some(identity) = self.identify_input(step, input, identities)? else {
                let problem = format_args!(
                    "step {}: its input {} no longer exists",
                    step.name,
                    redacted(&self.input_text(input))
                );
                let remedy = "restore it if it is not written by the pipeline, then run the pipeline again";
                return Err(Error::place(&input.place, problem, remedy));
            };
            inputs.insert(input.label.clone(), identity.digest);
        }
        let arguments = self.relevant_arguments(step);
        let parts = [PROGRAM, &arguments.join("\n"), &format!("{inputs:?}")].join("\n\n");
        let fingerprint =
            format!("{} {}", digest_of(parts.as_bytes()), digest_of(arguments.join("\n").as_bytes()));
        let reason = self.reason(step, record, &fingerprint, &inputs)?;
        Ok(StepDecision { reason, fingerprint, inputs })
    }

    /// Returns the command-line arguments that affect the outputs of a step. Paths of outputs are relative to the run
    /// directory, so that moving the directory does not change the arguments.
    fn relevant_arguments(&self, step: &PipelineStep) -> Vec<String> {
        let words = step.words.iter().filter(|word| word.affects_output).map(|word| match &word.text {
            WordContent::Plain(text) => text.clone(),
            WordContent::Input { prefix, input } => match &step.inputs[*input].from {
                Some(from) => {
                    let name = &self.steps[from.step].outputs[from.output].text;
                    format!("{prefix}{name}{}", from.below)
                }
                None => format!("{prefix}{}", step.inputs[*input].text),
            },
            WordContent::Output { prefix, output } => format!("{prefix}{}", step.outputs[*output].text),
            WordContent::Run => String::new(),
        });
        let printed = Self::printed(step).map(|index| step.outputs[index].text.clone());
        // A report shows the paper's figures, which are not an option of its command.
        let paper =
            self.paper.as_ref().filter(|_| step.kind.name == "report").map(|paper| format!("{paper:?}"));
        std::iter::once(step.kind.name.to_owned()).chain(words).chain(printed).chain(paper).collect()
    }

    /// Whether a step must run even if its inputs have not changed.
    pub fn must_run(&self, step: &PipelineStep, record: &RunStep) -> Result<bool> {
        let options = digest_of(self.relevant_arguments(step).join("\n").as_bytes()).to_string();
        let is_same = record.fingerprint.split(' ').nth(1) == Some(options.as_str());
        if !is_same || record.output_checksums.is_empty() || self.forced.contains(&step.name) {
            return Ok(true);
        }
        for index in 0..step.outputs.len() {
            if identify(&self.output(step, index)?, IdentityCheck::Quick)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn reason(
        &self,
        step: &PipelineStep,
        record: &RunStep,
        fingerprint: &str,
        inputs: &BTreeMap<String, Digest>,
    ) -> Result<Option<RunReason>> {
        if self.forced.contains(&step.name) {
            return Ok(Some(RunReason::Forced));
        }
        if record.fingerprint.is_empty() {
            return Ok(Some(RunReason::New));
        }
        if record.fingerprint != fingerprint {
            let options = |fingerprint: &str| fingerprint.split(' ').nth(1).map(str::to_owned);
            if options(&record.fingerprint) != options(fingerprint) {
                return Ok(Some(RunReason::Arguments));
            }
            let changed =
                inputs.iter().find(|(label, digest)| record.input_checksums.get(*label) != Some(digest));
            return Ok(Some(match changed {
                Some((label, _)) => RunReason::Input(label.clone()),
                None => RunReason::Program,
            }));
        }
        if record.output_checksums.is_empty() {
            return Ok(Some(RunReason::Unfinished));
        }
        for (index, output) in step.outputs.iter().enumerate() {
            let written = record.output_checksums.get(&output.key);
            match identify(&self.output(step, index)?, IdentityCheck::Thorough)? {
                None => return Ok(Some(RunReason::OutputMissing(output.key.clone()))),
                Some(found) if Some(&found.digest) != written => {
                    return Ok(Some(RunReason::OutputChanged(output.key.clone())));
                }
                Some(_) => {}
            }
        }
        Ok(None)
    }
}
