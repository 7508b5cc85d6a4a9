//! Creates drafts of the steps of a pipeline: expands `for_each`, replaces `{name}` by the value of a parameter, and
//! determines the outputs of every step. Inputs are resolved later, because they may refer to the outputs of any
//! step.

use super::document::{LocatedEntry, LocatedValue, PipelineDocument, PipelineValue, StepText, fault};
use super::kinds::{KINDS, OutputKey, Prints, StepKind};
use super::parameters::{Locals, PipelineParameters};
use planetree_base::error::Result;
use planetree_base::suggest;

/// Key of the output file to which the standard output of a step is written.
pub(crate) const PRINT: &str = "print";

/// A step whose outputs are known but whose inputs are not resolved yet.
#[derive(Debug)]
pub struct StepDraft {
    /// Name of the step, with the values of `for_each` appended.
    pub name: String,
    /// Position in the pipeline file of the section that defines the step.
    pub place: String,
    /// Command to run.
    pub kind: &'static StepKind,
    /// Options of the command, with parameters substituted.
    pub entries: Vec<LocatedEntry>,
    /// Names of steps that must finish first.
    pub after: Vec<LocatedValue>,
    /// Outputs, the main one first.
    pub outputs: Vec<StepOutput>,
}

/// One output of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepOutput {
    /// Option that names the output.
    pub key: String,
    /// Path or URL as written in the pipeline file. Relative paths are relative to the run directory.
    pub text: String,
    /// Position of the path in the file, or of the step if the path is a default.
    pub place: String,
}

impl StepDraft {
    /// Drafts all steps of a pipeline, in the order of the file.
    pub fn all(document: &PipelineDocument, parameters: &PipelineParameters) -> Result<Vec<StepDraft>> {
        let mut drafts: Vec<StepDraft> = Vec::new();
        for step in &document.steps {
            for (suffix, locals) in combinations(step, parameters)? {
                let draft = StepDraft::new(step, format!("{}{suffix}", step.name), parameters, &locals)?;
                if let Some(other) = drafts.iter().find(|other| other.name == draft.name) {
                    return Err(fault(
                        &draft.place,
                        format_args!("duplicate step {}, also at {}", draft.name, other.place),
                        "rename one of them, or remove duplicate values of for_each",
                    ));
                }
                drafts.push(draft);
            }
        }
        Ok(drafts)
    }

    fn new(
        step: &StepText,
        name: String,
        parameters: &PipelineParameters,
        locals: &Locals,
    ) -> Result<StepDraft> {
        let mut kind = None;
        let (mut after, mut print, mut entries) = (Vec::new(), None, Vec::new());
        for entry in parameters.substitute_entries(&step.entries, locals)? {
            match entry.key.as_str() {
                "kind" => kind = Some(kind_of(&entry)?),
                "for_each" => {}
                "after" => after = members(&entry.item),
                PRINT => print = Some(entry),
                _ => entries.push(LocatedEntry { key: entry.key.replace('-', "_"), ..entry }),
            }
        }
        let Some(kind) = kind else {
            return Err(fault(
                &step.place,
                format_args!("step {} has no kind", step.name),
                format_args!("write kind = \"...\": {}", kind_names()),
            ));
        };
        let mut draft =
            StepDraft { name, place: step.place.clone(), kind, entries, after, outputs: Vec::new() };
        draft.determine_outputs(print)?;
        Ok(draft)
    }

    /// Returns the value of an option, if it is set.
    pub fn option(&self, key: &str) -> Option<&LocatedValue> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    fn determine_outputs(&mut self, print: Option<LocatedEntry>) -> Result<()> {
        for output in self.kind.outputs {
            if output.named {
                let named = self.named_outputs(output)?;
                self.outputs.extend(named);
                continue;
            }
            let written = self.option(output.key);
            let (text, place) = match (written, output.default) {
                (Some(item), _) => match item.text() {
                    Some(text) if !text.is_empty() => (text.to_owned(), item.place.clone()),
                    _ => {
                        let problem = format_args!("{} must be a path", output.key);
                        return Err(item.fault(problem, "write a file name or URL"));
                    }
                },
                (None, Some(suffix)) => (self.default_output(suffix), self.place.clone()),
                (None, None) => continue,
            };
            self.outputs.push(StepOutput { key: output.key.to_owned(), text, place });
        }
        let prints = match self.kind.prints {
            Prints::Always => true,
            Prints::WithoutOutput => self.outputs.is_empty(),
            Prints::Nothing => false,
        };
        let (text, place) = match print {
            None if !prints => return Ok(()),
            None => (self.default_print(), self.place.clone()),
            Some(entry) => match (&entry.item.value, entry.item.text()) {
                (PipelineValue::Flag(false), _) => return self.check_has_output(),
                (PipelineValue::Flag(true), _) => (self.default_print(), entry.item.place),
                (_, Some(text)) if !text.is_empty() => (text.to_owned(), entry.item.place.clone()),
                _ => {
                    return Err(entry
                        .item
                        .fault("print must be a path", "write a file name, or print = false"));
                }
            },
        };
        self.outputs.push(StepOutput { key: PRINT.to_owned(), text, place });
        Ok(())
    }

    /// Returns the outputs of an option that takes several with names.
    fn named_outputs(&self, output: &OutputKey) -> Result<Vec<StepOutput>> {
        let Some(item) = self.option(output.key) else { return Ok(Vec::new()) };
        let PipelineValue::Table(entries) = &item.value else {
            let problem = format_args!("{} must be a table of names and paths", output.key);
            return Err(item.fault(problem, format_args!("write {} = {{ NAME = \"FILE\" }}", output.key)));
        };
        let named = |entry: &LocatedEntry| match entry.item.text() {
            Some(text) if !text.is_empty() => Ok(StepOutput {
                key: format!("{}.{}", output.key, entry.key),
                text: text.to_owned(),
                place: entry.item.place.clone(),
            }),
            _ => {
                let problem = format_args!("{}.{} must be a path", output.key, entry.key);
                Err(entry.item.fault(problem, "write a file name or URL"))
            }
        };
        entries.iter().map(named).collect()
    }

    fn check_has_output(&self) -> Result<()> {
        if self.outputs.is_empty() {
            let problem = format_args!("step {} has no output", self.name);
            return Err(fault(&self.place, problem, "add an output, or remove print = false"));
        }
        Ok(())
    }

    fn default_output(&self, suffix: &str) -> String {
        let format = self.option("format").and_then(LocatedValue::text);
        let suffix = if self.kind.name == "export" && format == Some("xgboost") { ".json" } else { suffix };
        format!("{}{suffix}", self.name)
    }

    fn default_print(&self) -> String {
        let json = self.option("json").is_some_and(|item| item.value == PipelineValue::Flag(true));
        format!("{}{}", self.name, if json { ".json" } else { ".txt" })
    }
}

fn kind_of(entry: &LocatedEntry) -> Result<&'static StepKind> {
    let written = entry.item.text().unwrap_or_default();
    StepKind::named(written).ok_or_else(|| {
        let near = suggest::nearest(written, KINDS.iter().map(|kind| kind.name));
        let remedy = suggest::did_you_mean(&near, &format!("available kinds: {}", kind_names()));
        entry.item.fault(format_args!("unknown kind {written:?}"), remedy)
    })
}

fn kind_names() -> String {
    super::document::listed(KINDS.iter().map(|kind| kind.name))
}

/// Returns the members of a list, or the value itself if it is not a list.
pub(super) fn members(item: &LocatedValue) -> Vec<LocatedValue> {
    match &item.value {
        PipelineValue::List(items) => items.clone(),
        _ => vec![item.clone()],
    }
}

/// Returns all combinations of the values of `for_each`, each with the suffix that is appended to the name of the
/// step. The last variable varies fastest. Without `for_each`, there is one combination without variables.
fn combinations(step: &StepText, parameters: &PipelineParameters) -> Result<Vec<(String, Locals)>> {
    let mut all = vec![(String::new(), Locals::new())];
    let Some(each) = step.entries.iter().find(|entry| entry.key == "for_each") else { return Ok(all) };
    let PipelineValue::Table(variables) = &each.item.value else {
        let remedy = "write for_each = { name = [1, 2, 3] } and refer to {name}";
        return Err(each.item.fault("for_each must be a table of variables", remedy));
    };
    for variable in variables {
        let filled = parameters.substitute(&variable.item, &Locals::new())?;
        let values = members(&filled);
        if values.is_empty() {
            return Err(
                filled.fault(format_args!("{} has no values", variable.key), "list at least one value")
            );
        }
        let mut extended = Vec::new();
        for (suffix, locals) in &all {
            for value in &values {
                let Some(text) = value.text() else {
                    return Err(value.fault("a value of for_each is a list", "write single values"));
                };
                let mut locals = locals.clone();
                locals.insert(variable.key.clone(), value.clone());
                extended.push((format!("{suffix}-{}", sanitised(text)), locals));
            }
        }
        all = extended;
    }
    Ok(all)
}

/// Replaces characters that are not allowed in names by `_`.
fn sanitised(text: &str) -> String {
    let keeps = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
    text.chars().map(|letter| if keeps(letter) { letter } else { '_' }).collect()
}
