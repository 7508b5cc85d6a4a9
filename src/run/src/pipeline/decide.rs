//! Must a step run? It need not if its inputs, its options and the program are what they were when it last
//! ran to its end, and its outputs are as it wrote them.

use super::graph::{Step, StepInput, WordText};
use super::identity::{Identity, Look, identify, identify_outside};
use super::manifest::RunStep;
use super::plan::{Plan, public};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, digest_of};
use std::collections::BTreeMap;

const PROGRAM: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"));

/// Why a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It has not run here yet.
    New,
    /// It has not run to its end.
    Unfinished,
    /// The user wants it.
    Forced,
    /// Another version of the program did it.
    Program,
    /// Its arguments are others.
    Arguments,
    /// An input has changed.
    Input(String),
    /// An output is not there.
    OutputMissing(String),
    /// An output is not what the step wrote.
    OutputChanged(String),
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Why::New => f.write_str("it has not run yet"),
            Why::Unfinished => f.write_str("it has not run to its end"),
            Why::Forced => f.write_str("--force"),
            Why::Program => write!(f, "another version of planetree did it, this is {PROGRAM}"),
            Why::Arguments => f.write_str("its options have changed"),
            Why::Input(label) => write!(f, "{label} has changed"),
            Why::OutputMissing(key) => write!(f, "{key} is missing"),
            Why::OutputChanged(key) => write!(f, "{key} was changed by hand"),
        }
    }
}

/// What is known of a step before it runs.
pub struct Decision {
    /// Why it runs; `None` if it need not.
    pub why: Option<Why>,
    /// Its fingerprint.
    pub fingerprint: String,
    /// The content of its inputs.
    pub inputs: BTreeMap<String, Digest>,
}

/// What is at places that were looked at already.
#[derive(Default)]
pub struct Known(BTreeMap<String, Option<Identity>>);

impl Known {
    /// Forgets what a step's outputs were.
    pub fn forget(&mut self, plan: &Plan, step: &Step) {
        let texts: Vec<String> = (0..step.outputs.len()).map(|place| plan.output_text(step, place)).collect();
        self.0.retain(|key, _| !texts.iter().any(|text| key.contains(text.as_str())));
    }
}

impl Plan {
    /// What an input is; `None` if there is nothing.
    pub(super) fn identify_input(
        &self,
        step: &Step,
        input: &StepInput,
        known: &mut Known,
    ) -> Result<Option<Identity>> {
        let text = self.input_text(input);
        let key = format!("{} {text}", if input.from.is_none() { step.kind.name } else { "" });
        if let Some(identity) = known.0.get(&key) {
            return Ok(*identity);
        }
        let identity = match &input.from {
            None => identify_outside(input, step.kind.name, self.access)?,
            Some(_) => identify(&Location::parse(&text, self.access)?, Look::Quick)?,
        };
        known.0.insert(key, identity);
        Ok(identity)
    }

    /// Decides about a step whose inputs are all there.
    pub fn decide(&self, step: &Step, record: &RunStep, known: &mut Known) -> Result<Decision> {
        let mut inputs = BTreeMap::new();
        for input in &step.inputs {
            let Some(identity) = self.identify_input(step, input, known)? else {
                let problem =
                    format_args!("step {}: {} is not there", step.name, public(&self.input_text(input)));
                return Err(Error::place(&input.place, problem, "run the pipeline again"));
            };
            inputs.insert(input.label.clone(), identity.digest);
        }
        let arguments = self.counted(step);
        let parts = [PROGRAM, &arguments.join("\n"), &format!("{inputs:?}")].join("\n\n");
        let fingerprint =
            format!("{} {}", digest_of(parts.as_bytes()), digest_of(arguments.join("\n").as_bytes()));
        let why = self.why(step, record, &fingerprint, &inputs)?;
        Ok(Decision { why, fingerprint, inputs })
    }

    /// The arguments that matter for what comes out. Outputs count by their name within the run, so that
    /// a run directory may be moved.
    fn counted(&self, step: &Step) -> Vec<String> {
        let words = step.words.iter().filter(|word| word.counts).map(|word| match &word.text {
            WordText::Plain(text) => text.clone(),
            WordText::Input { before, input } => match &step.inputs[*input].from {
                Some(from) => {
                    let name = &self.steps[from.step].outputs[from.output].text;
                    format!("{before}{name}{}", from.below)
                }
                None => format!("{before}{}", step.inputs[*input].text),
            },
            WordText::Output(place) => step.outputs[*place].text.clone(),
            WordText::Run => String::new(),
        });
        let printed = Self::printed(step).map(|place| step.outputs[place].text.clone());
        std::iter::once(step.kind.name.to_owned()).chain(words).chain(printed).collect()
    }

    /// Whether a step would run whatever its inputs turn out to be.
    pub fn must_run(&self, step: &Step, record: &RunStep) -> Result<bool> {
        let options = digest_of(self.counted(step).join("\n").as_bytes()).to_string();
        let same = record.fingerprint.split(' ').nth(1) == Some(options.as_str());
        if !same || record.output_checksums.is_empty() || self.forced.contains(&step.name) {
            return Ok(true);
        }
        for place in 0..step.outputs.len() {
            if identify(&self.output(step, place)?, Look::Quick)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn why(
        &self,
        step: &Step,
        record: &RunStep,
        fingerprint: &str,
        inputs: &BTreeMap<String, Digest>,
    ) -> Result<Option<Why>> {
        if self.forced.contains(&step.name) {
            return Ok(Some(Why::Forced));
        }
        if record.fingerprint.is_empty() {
            return Ok(Some(Why::New));
        }
        if record.fingerprint != fingerprint {
            let options = |fingerprint: &str| fingerprint.split(' ').nth(1).map(str::to_owned);
            if options(&record.fingerprint) != options(fingerprint) {
                return Ok(Some(Why::Arguments));
            }
            let changed =
                inputs.iter().find(|(label, digest)| record.input_checksums.get(*label) != Some(digest));
            return Ok(Some(match changed {
                Some((label, _)) => Why::Input(label.clone()),
                None => Why::Program,
            }));
        }
        if record.output_checksums.is_empty() {
            return Ok(Some(Why::Unfinished));
        }
        for (place, output) in step.outputs.iter().enumerate() {
            let wrote = record.output_checksums.get(&output.key);
            match identify(&self.output(step, place)?, Look::Close)? {
                None => return Ok(Some(Why::OutputMissing(output.key.clone()))),
                Some(there) if Some(&there.digest) != wrote => {
                    return Ok(Some(Why::OutputChanged(output.key.clone())));
                }
                Some(_) => {}
            }
        }
        Ok(None)
    }
}
