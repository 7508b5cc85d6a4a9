//! Decides whether a step must run. It is skipped if its inputs, its options and the program are unchanged since it last
//! finished, and its outputs are as it wrote them.

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
    /// It has not run in this directory yet.
    New,
    /// It started but did not finish.
    Unfinished,
    /// `--force` names it.
    Forced,
    /// Another version of the program ran it.
    Program,
    /// Its options have changed.
    Arguments,
    /// The content of an input has changed.
    Input(String),
    /// An output is missing.
    OutputMissing(String),
    /// An output was modified since the step wrote it.
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

/// The decision about a step.
pub struct StepDecision {
    /// Why the step runs; `None` if it is skipped.
    pub reason: Option<RunReason>,
    /// Its fingerprint.
    pub fingerprint: String,
    /// The identities of its inputs.
    pub inputs: BTreeMap<String, Digest>,
}

/// Caches the identities of locations.
#[derive(Default)]
pub struct IdentityCache(BTreeMap<String, Option<ContentIdentity>>);

impl IdentityCache {
    /// Drops the identities of a step's outputs.
    pub fn forget(&mut self, plan: &PipelinePlan, step: &PipelineStep) {
        let texts: Vec<String> = (0..step.outputs.len()).map(|index| plan.output_text(step, index)).collect();
        self.0.retain(|key, _| !texts.iter().any(|text| key.contains(text.as_str())));
    }
}

impl PipelinePlan {
    /// The identity of an input; `None` if it does not exist.
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

    /// Decides about a step whose inputs all exist.
    pub fn decide(
        &self,
        step: &PipelineStep,
        record: &RunStep,
        identities: &mut IdentityCache,
    ) -> Result<StepDecision> {
        let mut inputs = BTreeMap::new();
        for input in &step.inputs {
            let Some(identity) = self.identify_input(step, input, identities)? else {
                let problem =
                    format_args!("step {}: {} does not exist", step.name, redacted(&self.input_text(input)));
                return Err(Error::place(&input.place, problem, "run the pipeline again"));
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

    /// The arguments that affect the outputs. Outputs are named relative to the run directory, so that it can be moved.
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
            WordContent::Output(index) => step.outputs[*index].text.clone(),
            WordContent::Run => String::new(),
        });
        let printed = Self::printed(step).map(|index| step.outputs[index].text.clone());
        std::iter::once(step.kind.name.to_owned()).chain(words).chain(printed).collect()
    }

    /// Whether a step runs regardless of its inputs.
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
