//! Parses the TOML file of a pipeline. The position of every key and value is kept, so that later errors can report
//! it.

use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use planetree_train::config::value_text;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedValue {
    /// The value.
    pub value: PipelineValue,
    /// Position: file, line and column, or the command-line option that sets the value.
    pub place: String,
}

/// A value in a pipeline file.
#[derive(Debug, Clone, PartialEq)]
pub enum PipelineValue {
    /// A string.
    Text(String),
    /// A number or date, in the form that the command line expects.
    Plain(String),
    /// `true` or `false`.
    Flag(bool),
    /// An array.
    List(Vec<LocatedValue>),
    /// A table.
    Table(Vec<LocatedEntry>),
}

/// A key and its value, with their positions.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedEntry {
    /// The key.
    pub key: String,
    /// Position of the key.
    pub place: String,
    /// The value.
    pub item: LocatedValue,
}

/// A parsed pipeline file.
#[derive(Debug)]
pub struct PipelineDocument {
    /// Name of the file, for messages.
    pub file: String,
    /// Name of the pipeline, if the file sets it.
    pub name: Option<LocatedValue>,
    /// Description of the pipeline; may be empty.
    pub description: String,
    /// Run directory, if the file sets it.
    pub output: Option<LocatedValue>,
    /// Parameters, in the order of the file.
    pub parameters: Vec<LocatedEntry>,
    /// The paper whose tables the pipeline re-obtains, if any.
    pub paper: Option<LocatedValue>,
    /// Steps, in the order of the file.
    pub steps: Vec<StepText>,
}

/// A step as it is written in the file.
#[derive(Debug, Clone)]
pub struct StepText {
    /// Name of the step.
    pub name: String,
    /// Position of the TOML section that defines the step.
    pub place: String,
    /// All keys and values of the section, in the order of the file.
    pub entries: Vec<LocatedEntry>,
}

impl LocatedValue {
    /// Creates an error that refers to the position of this value.
    pub fn fault(&self, problem: impl std::fmt::Display, remedy: impl std::fmt::Display) -> Error {
        fault(&self.place, problem, remedy)
    }

    /// Returns the value as a string; `None` for lists and tables.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            PipelineValue::Text(text) | PipelineValue::Plain(text) => Some(text),
            PipelineValue::Flag(true) => Some("true"),
            PipelineValue::Flag(false) => Some("false"),
            PipelineValue::List(_) | PipelineValue::Table(_) => None,
        }
    }

    /// Returns the value as a string, in which the members of a list are joined by commas. Returns `None` for tables.
    pub fn joined(&self) -> Option<String> {
        match &self.value {
            PipelineValue::List(items) => {
                items.iter().map(LocatedValue::text).collect::<Option<Vec<_>>>().map(|texts| texts.join(","))
            }
            _ => self.text().map(str::to_owned),
        }
    }
}

/// Creates a usage error that refers to a position in the pipeline file.
pub(super) fn fault(place: &str, problem: impl std::fmt::Display, remedy: impl std::fmt::Display) -> Error {
    Error::usage(format_args!("{place}: {problem}"), remedy)
}

/// Joins names as `a, b and c`.
pub(super) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match &names[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

struct PipelineText<'a> {
    name: &'a str,
    text: &'a str,
}

impl PipelineText<'_> {
    fn place(&self, offset: usize) -> String {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        format!("{}:{}:{}", self.name, 1 + before.matches('\n').count(), 1 + line.chars().count())
    }

    fn item(&self, value: &Spanned<DeValue<'_>>) -> LocatedValue {
        let place = self.place(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => PipelineValue::Text(text.to_string()),
            DeValue::Boolean(truth) => PipelineValue::Flag(*truth),
            DeValue::Array(items) => PipelineValue::List(items.iter().map(|item| self.item(item)).collect()),
            DeValue::Table(table) => PipelineValue::Table(self.entries(table)),
            other => PipelineValue::Plain(value_text(other).unwrap_or_default()),
        };
        LocatedValue { value, place }
    }

    /// Returns the entries of a table, in the order of the file.
    fn entries(&self, table: &DeTable<'_>) -> Vec<LocatedEntry> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry =
            |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| LocatedEntry {
                key: key.get_ref().to_string(),
                place: self.place(key.span().start),
                item: self.item(value),
            };
        entries.into_iter().map(entry).collect()
    }
}

impl PipelineDocument {
    /// Parses the content of a pipeline file. `file` is its name in messages.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let source = PipelineText { name: file, text };
        let table = DeTable::parse(text).map_err(|error| {
            let place = error.span().map_or(file.to_owned(), |span| source.place(span.start));
            let line =
                error.span().and_then(|span| text.get(..span.start)).map_or(0, |t| t.matches('\n').count());
            let line =
                text.lines().nth(line).map(|line| format!(", in `{}`", line.trim())).unwrap_or_default();
            fault(
                &place,
                format_args!("{}{line}", error.message()),
                "a pipeline is TOML: [step.NAME], then key = value, with strings in quotes",
            )
        })?;
        let mut document = PipelineDocument {
            file: file.to_owned(),
            name: None,
            description: String::new(),
            output: None,
            parameters: Vec::new(),
            paper: None,
            steps: Vec::new(),
        };
        for entry in source.entries(table.get_ref()) {
            match entry.key.as_str() {
                "pipeline" => document.read_pipeline(entry)?,
                "parameters" => document.parameters = table_of(entry)?,
                "paper" => {
                    let place = entry.place.clone();
                    let value = PipelineValue::Table(table_of(entry)?);
                    document.paper = Some(LocatedValue { value, place });
                }
                "step" => {
                    let of_step = |entry: LocatedEntry| {
                        check_name(&entry, "step")?;
                        let (name, place) = (entry.key.clone(), entry.place.clone());
                        Ok(StepText { name, place, entries: table_of(entry)? })
                    };
                    document.steps = table_of(entry)?.into_iter().map(of_step).collect::<Result<_>>()?;
                }
                other => {
                    let near = suggest::nearest(other, ["pipeline", "parameters", "step", "paper"]);
                    let remedy =
                        "a pipeline has [pipeline], [parameters], one [step.NAME] per step, and [paper]";
                    return Err(fault(
                        &entry.place,
                        format_args!("unknown section {other:?}"),
                        suggest::did_you_mean(&near, remedy),
                    ));
                }
            }
        }
        if document.steps.is_empty() {
            return Err(fault(
                file,
                "no steps",
                "add at least one: [step.NAME], then kind = \"train\" and the command's options",
            ));
        }
        document.parameters.iter().try_for_each(|entry| check_name(entry, "parameter"))?;
        Ok(document)
    }

    fn read_pipeline(&mut self, entry: LocatedEntry) -> Result<()> {
        for LocatedEntry { key, place, item } in table_of(entry)? {
            let text = item
                .text()
                .ok_or_else(|| item.fault(format_args!("{key} must be a string"), "write a string"));
            match key.as_str() {
                "name" => self.name = Some(text.map(|_| item.clone())?),
                "output" => self.output = Some(text.map(|_| item.clone())?),
                "description" => self.description = text?.trim().to_owned(),
                other => {
                    let near = suggest::nearest(other, ["name", "description", "output"]);
                    return Err(fault(
                        &place,
                        format_args!("unknown key {other:?} in [pipeline]"),
                        suggest::did_you_mean(&near, "the keys are name, description and output"),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn table_of(entry: LocatedEntry) -> Result<Vec<LocatedEntry>> {
    match entry.item.value {
        PipelineValue::Table(entries) => Ok(entries),
        PipelineValue::List(_) if entry.key == "step" => Err(fault(
            &entry.place,
            "[[step]] is not supported: steps need names",
            "write [step.NAME] instead of [[step]]",
        )),
        _ => {
            let problem = format_args!("{} must be a section, not a value", entry.key);
            Err(fault(&entry.place, problem, "write a [section] with key = value lines"))
        }
    }
}

/// Checks that the name of a step or parameter has only allowed characters. Names are used in paths and references,
/// so other characters could be misinterpreted.
fn check_name(entry: &LocatedEntry, what: &str) -> Result<()> {
    let plain = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    if !entry.key.is_empty() && entry.key.chars().all(plain) && !entry.key.starts_with('-') {
        return Ok(());
    }
    let problem = format_args!("invalid {what} name {:?}", entry.key);
    Err(fault(&entry.place, problem, "use letters, digits, - and _"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(text: &str) -> String {
        let error = PipelineDocument::parse("p.toml", text).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        format!("{error} / {}", error.remedy().unwrap_or_default())
    }

    #[test]
    fn positions_are_line_and_column() {
        let text =
            "[pipeline]\nname = \"x\"\n[step.b]\nkind = \"train\"\n  data = [\"ä\", \"z\"]\n[step.a]\n";
        let document = PipelineDocument::parse("p.toml", text).unwrap();
        let names: Vec<&str> = document.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["b", "a"], "steps keep the order of the text");
        let data = &document.steps[0].entries[1];
        assert_eq!((data.key.as_str(), data.place.as_str()), ("data", "p.toml:5:3"));
        let PipelineValue::List(items) = &data.item.value else { panic!("a list") };
        assert_eq!(items[1].place, "p.toml:5:16");
        assert_eq!(data.item.joined().as_deref(), Some("ä,z"));
    }

    #[test]
    fn invalid_files_are_rejected_with_their_position() {
        for (text, expected) in [
            ("[step.a\n", "p.toml:1:8: "),
            ("x = 1\n", "p.toml:1:1: unknown section \"x\""),
            ("[paramters]\n[step.a]\n", "did you mean parameters?"),
            (
                "[pipeline]\nnme = \"x\"\n[step.a]\n",
                "p.toml:2:1: unknown key \"nme\" in [pipeline] / did you mean name?",
            ),
            ("[pipeline]\nname = []\n[step.a]\n", "p.toml:2:8: name must be a string"),
            ("[pipeline]\n", "no steps"),
            ("[[step]]\nname = \"a\"\n", "write [step.NAME] instead"),
            ("step = 3\n", "p.toml:1:1: step must be a section, not a value"),
            ("[step.\"a b\"]\n", "p.toml:1:7: invalid step name \"a b\""),
            ("[parameters]\n\"\" = 3\n[step.a]\n", "p.toml:2:1: invalid parameter name \"\""),
        ] {
            let message = rejected(text);
            assert!(message.contains(expected), "{message}");
        }
    }
}
