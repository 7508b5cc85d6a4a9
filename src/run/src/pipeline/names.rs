//! Resolves the inputs of steps. Where an input is expected, the pipeline file may name a step, an output of a step,
//! a path below such an output, or an external location.

use super::document::fault;
use super::draft::StepDraft;
use super::manifest::STEPS_TABLE;
use planetree_base::error::Result;
use planetree_data::catalog::RUN_MANIFEST;
use std::collections::BTreeMap;

/// A reference to an output of a step, or to a path below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputReference {
    /// Index of the step.
    pub step: usize,
    /// Index of the output.
    pub output: usize,
    /// Path below the output, which begins with a slash; empty for the output itself.
    pub below: String,
}

/// The names by which inputs can refer to outputs.
pub(super) struct OutputNames<'d> {
    drafts: &'d [StepDraft],
    known: BTreeMap<String, (usize, usize)>,
}

impl<'d> OutputNames<'d> {
    /// Collects the names. Returns an error if two steps write the same output.
    pub(super) fn of(drafts: &'d [StepDraft]) -> Result<Self> {
        check_outputs_distinct(drafts)?;
        let mut known: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (step, draft) in drafts.iter().enumerate() {
            known.insert(draft.name.clone(), (step, 0));
            for (output, written) in draft.outputs.iter().enumerate() {
                known.insert(format!("{}.{}", draft.name, written.key), (step, output));
            }
        }
        for (step, draft) in drafts.iter().enumerate() {
            for (output, written) in draft.outputs.iter().enumerate() {
                let text = written.text.trim_end_matches('/');
                match known.insert(text.to_owned(), (step, output)) {
                    Some((other, _)) if other != step => {
                        let named = &drafts[other].name;
                        return Err(fault(
                            &written.place,
                            format_args!("output {text} of step {} is the name of another step", draft.name),
                            format_args!("rename the output or step {named}"),
                        ));
                    }
                    _ => {}
                }
            }
        }
        Ok(OutputNames { drafts, known })
    }

    /// Returns the output that a string refers to; `None` if the string is an external location.
    pub(super) fn find(&self, text: &str) -> Option<OutputReference> {
        let text = text.trim_end_matches('/');
        let reference = |name: &str, below: &str| {
            self.known.get(name).map(|(step, output)| OutputReference {
                step: *step,
                output: *output,
                below: below.to_owned(),
            })
        };
        // If several names match, the longest one is used.
        let ends = text.match_indices('/').map(|(end, _)| end);
        let ends: Vec<usize> = ends.chain([text.len()]).collect();
        ends.into_iter().rev().find_map(|end| reference(&text[..end], &text[end..]))
    }

    /// Returns the main outputs of all steps whose names match a string with `*`. If there are none, returns all
    /// outputs whose names (`step.key`) match. Each output comes with the characters that `*` stands for. If a slash
    /// follows `*`, the text from that slash on is a path below each output. The result is empty if the string has no
    /// `*`.
    pub(super) fn matching(&self, text: &str) -> Vec<(String, OutputReference)> {
        let Some((before, after)) = text.split_once('*') else { return Vec::new() };
        let (after, below) = after.split_at(after.find('/').unwrap_or(after.len()));
        let below = below.trim_end_matches('/');
        let matched = |name: &str| {
            let inner = name.strip_prefix(before)?.strip_suffix(after)?;
            (!inner.is_empty()).then(|| inner.to_owned())
        };
        let mut found = Vec::new();
        for (step, draft) in self.drafts.iter().enumerate() {
            if let Some(inner) = matched(&draft.name) {
                found.push((inner, OutputReference { step, output: 0, below: below.to_owned() }));
            }
        }
        if found.is_empty() {
            for (step, draft) in self.drafts.iter().enumerate() {
                for (output, written) in draft.outputs.iter().enumerate() {
                    if let Some(inner) = matched(&format!("{}.{}", draft.name, written.key)) {
                        found.push((inner, OutputReference { step, output, below: below.to_owned() }));
                    }
                }
            }
        }
        found
    }

    /// Returns the draft of the step with this index.
    pub(crate) fn draft(&self, step: usize) -> &'d StepDraft {
        &self.drafts[step]
    }

    /// Returns all names that inputs can refer to.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }
}

/// Checks that no output is the same as another output or inside it.
fn check_outputs_distinct(drafts: &[StepDraft]) -> Result<()> {
    let mut written: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for draft in drafts {
        for output in &draft.outputs {
            let text = output.text.trim_end_matches('/').trim_start_matches("./");
            if text == RUN_MANIFEST || text == STEPS_TABLE {
                let problem =
                    format_args!("output {text} of step {} is reserved for the run itself", draft.name);
                return Err(fault(&output.place, problem, "rename the output"));
            }
            if let Some((other, place)) = written.insert(text, (&draft.name, &output.place)) {
                return Err(fault(
                    &output.place,
                    format_args!("{text} is written by both step {other} ({place}) and step {}", draft.name),
                    "rename one of the outputs",
                ));
            }
        }
    }
    for (outer, (step, _)) in &written {
        let prefix = format!("{outer}/");
        if let Some((inner, (other, place))) = written.iter().find(|(inner, _)| inner.starts_with(&prefix)) {
            return Err(fault(
                place,
                format_args!("output {inner} of step {other} is inside output {outer} of step {step}"),
                "choose a path outside it",
            ));
        }
    }
    Ok(())
}
