//! What a text in place of a path refers to: a step, an output of a step, something below it, or a
//! place outside of the pipeline.

use super::document::fault;
use super::draft::Draft;
use super::manifest::STEPS_TABLE;
use planetree_base::error::Result;
use planetree_data::catalog::RUN_MANIFEST;
use std::collections::BTreeMap;

/// An output of a step, and a path below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Which step.
    pub step: usize,
    /// Which of its outputs.
    pub output: usize,
    /// What is behind the output's name; empty for the output itself.
    pub below: String,
}

/// Every name that stands for an output.
pub struct Names<'d> {
    drafts: &'d [Draft],
    known: BTreeMap<String, (usize, usize)>,
}

impl<'d> Names<'d> {
    /// Collects the names; an output that two steps write is an error.
    pub fn of(drafts: &'d [Draft]) -> Result<Self> {
        refuse_twice(drafts)?;
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
                            format_args!("step {} writes {text}, which is another step's name", draft.name),
                            format_args!("call the output or step {named} something else"),
                        ));
                    }
                    _ => {}
                }
            }
        }
        Ok(Names { drafts, known })
    }

    /// What a text refers to; `None` for a place outside of the pipeline.
    pub fn find(&self, text: &str) -> Option<Reference> {
        let text = text.trim_end_matches('/');
        let at = |name: &str, below: &str| {
            self.known.get(name).map(|(step, output)| Reference {
                step: *step,
                output: *output,
                below: below.to_owned(),
            })
        };
        // The longest name wins.
        let ends = text.match_indices('/').map(|(end, _)| end);
        let ends: Vec<usize> = ends.chain([text.len()]).collect();
        ends.into_iter().rev().find_map(|end| at(&text[..end], &text[end..]))
    }

    /// The steps or outputs that a text with a star stands for, each with what the star stands for;
    /// none if it is no such text. What is behind a slash is a path below each of them.
    pub fn matching(&self, text: &str) -> Vec<(String, Reference)> {
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
                found.push((inner, Reference { step, output: 0, below: below.to_owned() }));
            }
        }
        if found.is_empty() {
            for (step, draft) in self.drafts.iter().enumerate() {
                for (output, written) in draft.outputs.iter().enumerate() {
                    if let Some(inner) = matched(&format!("{}.{}", draft.name, written.key)) {
                        found.push((inner, Reference { step, output, below: below.to_owned() }));
                    }
                }
            }
        }
        found
    }

    /// A step.
    pub fn draft(&self, step: usize) -> &'d Draft {
        &self.drafts[step]
    }

    /// All names.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }
}

/// An error if two outputs are one, or one lies within another.
fn refuse_twice(drafts: &[Draft]) -> Result<()> {
    let mut written: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for draft in drafts {
        for output in &draft.outputs {
            let text = output.text.trim_end_matches('/').trim_start_matches("./");
            if text == RUN_MANIFEST || text == STEPS_TABLE {
                let problem = format_args!("step {} writes {text}, which the run itself writes", draft.name);
                return Err(fault(&output.place, problem, "choose another name"));
            }
            if let Some((other, place)) = written.insert(text, (&draft.name, &output.place)) {
                return Err(fault(
                    &output.place,
                    format_args!(
                        "{text} is written twice: by step {other} ({place}) and by step {}",
                        draft.name
                    ),
                    "give every output a name of its own",
                ));
            }
        }
    }
    for (outer, (step, _)) in &written {
        let prefix = format!("{outer}/");
        if let Some((inner, (other, place))) = written.iter().find(|(inner, _)| inner.starts_with(&prefix)) {
            return Err(fault(
                place,
                format_args!("step {other} writes {inner} into {outer}, which step {step} writes as a whole"),
                "write it beside it",
            ));
        }
    }
    Ok(())
}
