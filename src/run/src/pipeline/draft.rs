//! Steps as they are meant: `for_each` made into a step each, `{name}` replaced, and what every step
//! writes settled. What it reads can be told only when all of them are known.

use super::document::{Document, Entry, Item, StepText, Value, fault};
use super::kinds::{KINDS, Kind, Prints};
use super::parameters::{Locals, Parameters};
use planetree_base::error::Result;
use planetree_base::suggest;

/// The output that is what a step prints.
pub const PRINT: &str = "print";

/// A step whose outputs are known.
#[derive(Debug)]
pub struct Draft {
    /// Its name, with the values of `for_each` behind it.
    pub name: String,
    /// Where it begins.
    pub place: String,
    /// What it runs.
    pub kind: &'static Kind,
    /// The command's options, filled.
    pub entries: Vec<Entry>,
    /// Steps that must be done before.
    pub after: Vec<Item>,
    /// What it writes, the main output first.
    pub outputs: Vec<StepOutput>,
}

/// One output of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepOutput {
    /// The key that names it.
    pub key: String,
    /// Path or URL as written; relative ones lie in the run directory.
    pub text: String,
    /// Where it is written; the step's place for a default.
    pub place: String,
}

impl Draft {
    /// All steps of a pipeline, in its order.
    pub fn all(document: &Document, parameters: &Parameters) -> Result<Vec<Draft>> {
        let mut drafts: Vec<Draft> = Vec::new();
        for step in &document.steps {
            for (suffix, locals) in combinations(step, parameters)? {
                let draft = Draft::new(step, format!("{}{suffix}", step.name), parameters, &locals)?;
                if let Some(other) = drafts.iter().find(|other| other.name == draft.name) {
                    return Err(fault(
                        &draft.place,
                        format_args!("two steps are called {}, see {}", draft.name, other.place),
                        "rename one of them, or name every value of for_each once",
                    ));
                }
                drafts.push(draft);
            }
        }
        Ok(drafts)
    }

    fn new(step: &StepText, name: String, parameters: &Parameters, locals: &Locals) -> Result<Draft> {
        let mut kind = None;
        let (mut after, mut print, mut entries) = (Vec::new(), None, Vec::new());
        for entry in parameters.filled_entries(&step.entries, locals)? {
            match entry.key.as_str() {
                "kind" => kind = Some(kind_of(&entry)?),
                "for_each" => {}
                "after" => after = members(&entry.item),
                PRINT => print = Some(entry),
                _ => entries.push(Entry { key: entry.key.replace('-', "_"), ..entry }),
            }
        }
        let Some(kind) = kind else {
            return Err(fault(
                &step.place,
                format_args!("step {} has no kind", step.name),
                format_args!("write kind = \"...\": {}", kind_names()),
            ));
        };
        let mut draft = Draft { name, place: step.place.clone(), kind, entries, after, outputs: Vec::new() };
        draft.settle_outputs(print)?;
        Ok(draft)
    }

    /// The value of an option.
    pub fn option(&self, key: &str) -> Option<&Item> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    fn settle_outputs(&mut self, print: Option<Entry>) -> Result<()> {
        for output in self.kind.outputs {
            let written = self.option(output.key);
            let (text, place) = match (written, output.default) {
                (Some(item), _) => match item.text() {
                    Some(text) if !text.is_empty() => (text.to_owned(), item.place.clone()),
                    _ => {
                        let problem = format_args!("{} is no path", output.key);
                        return Err(item.fault(problem, "name a file or a URL"));
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
                (Value::Flag(false), _) => return self.refuse_nothing(),
                (Value::Flag(true), _) => (self.default_print(), entry.item.place),
                (_, Some(text)) if !text.is_empty() => (text.to_owned(), entry.item.place.clone()),
                _ => return Err(entry.item.fault("print is no path", "name a file, or write print = false")),
            },
        };
        self.outputs.push(StepOutput { key: PRINT.to_owned(), text, place });
        Ok(())
    }

    fn refuse_nothing(&self) -> Result<()> {
        if self.outputs.is_empty() {
            let problem = format_args!("step {} writes nothing", self.name);
            return Err(fault(&self.place, problem, "name an output, or remove print = false"));
        }
        Ok(())
    }

    fn default_output(&self, suffix: &str) -> String {
        let form = self.option("format").and_then(Item::text);
        let suffix = if self.kind.name == "export" && form == Some("xgboost") { ".json" } else { suffix };
        format!("{}{suffix}", self.name)
    }

    fn default_print(&self) -> String {
        let json = self.option("json").is_some_and(|item| item.value == Value::Flag(true));
        format!("{}{}", self.name, if json { ".json" } else { ".txt" })
    }
}

fn kind_of(entry: &Entry) -> Result<&'static Kind> {
    let written = entry.item.text().unwrap_or_default();
    Kind::named(written).ok_or_else(|| {
        let near = suggest::nearest(written, KINDS.iter().map(|kind| kind.name));
        let remedy = suggest::did_you_mean(&near, &format!("the kinds are {}", kind_names()));
        entry.item.fault(format_args!("unknown kind of step {written:?}"), remedy)
    })
}

fn kind_names() -> String {
    super::document::listed(KINDS.iter().map(|kind| kind.name))
}

/// The members of a list, or the one value that is no list.
pub fn members(item: &Item) -> Vec<Item> {
    match &item.value {
        Value::List(items) => items.clone(),
        _ => vec![item.clone()],
    }
}

/// Every combination of the values of `for_each`, the last variable fastest, each with what it adds to
/// the step's name. One without variables where there is no `for_each`.
fn combinations(step: &StepText, parameters: &Parameters) -> Result<Vec<(String, Locals)>> {
    let mut all = vec![(String::new(), Locals::new())];
    let Some(each) = step.entries.iter().find(|entry| entry.key == "for_each") else { return Ok(all) };
    let Value::Table(variables) = &each.item.value else {
        let remedy = "write for_each = { name = [1, 2, 3] }; then {name} is each of them in turn";
        return Err(each.item.fault("for_each names no variables", remedy));
    };
    for variable in variables {
        let filled = parameters.filled(&variable.item, &Locals::new())?;
        let values = members(&filled);
        if values.is_empty() {
            return Err(filled.fault(format_args!("{} has no values", variable.key), "name at least one"));
        }
        let mut longer = Vec::new();
        for (suffix, locals) in &all {
            for value in &values {
                let Some(text) = value.text() else {
                    return Err(value.fault("a value of for_each is a list", "name single values"));
                };
                let mut locals = locals.clone();
                locals.insert(variable.key.clone(), value.clone());
                longer.push((format!("{suffix}-{}", plain(text)), locals));
            }
        }
        all = longer;
    }
    Ok(all)
}

/// A value as part of a name.
fn plain(text: &str) -> String {
    let keeps = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
    text.chars().map(|letter| if keeps(letter) { letter } else { '_' }).collect()
}
