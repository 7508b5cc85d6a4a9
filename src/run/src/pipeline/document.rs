//! The text of a pipeline. Every key and value keeps its place, so that whatever is wrong with it later
//! can be pointed at.

use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use planetree_train::config::value_text;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value, and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The value.
    pub value: Value,
    /// File, line and column; or the option of the command line.
    pub place: String,
}

/// What may be written behind a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Words in quotes.
    Text(String),
    /// A number, a date or a truth, as it would be written on a command line.
    Plain(String),
    /// `true` or `false`.
    Flag(bool),
    /// Values with commas between them, in brackets.
    List(Vec<Item>),
    /// Keys with values, in braces.
    Table(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where it is.
    pub place: String,
    /// What is behind it.
    pub item: Item,
}

/// A pipeline, as written.
#[derive(Debug)]
pub struct Document {
    /// The file.
    pub file: String,
    /// What it is called.
    pub name: Option<Item>,
    /// What it is for.
    pub description: String,
    /// The run directory.
    pub output: Option<Item>,
    /// The parameters in their order.
    pub parameters: Vec<Entry>,
    /// The steps in their order.
    pub steps: Vec<StepText>,
}

/// A step, as written.
#[derive(Debug, Clone)]
pub struct StepText {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub place: String,
    /// All its keys.
    pub entries: Vec<Entry>,
}

impl Item {
    /// An error about this value.
    pub fn fault(&self, problem: impl std::fmt::Display, remedy: impl std::fmt::Display) -> Error {
        fault(&self.place, problem, remedy)
    }

    /// A value that is neither list nor table, as text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Plain(text) => Some(text),
            Value::Flag(true) => Some("true"),
            Value::Flag(false) => Some("false"),
            Value::List(_) | Value::Table(_) => None,
        }
    }

    /// The value's text, or its members' texts with commas between them.
    pub fn joined(&self) -> Option<String> {
        match &self.value {
            Value::List(items) => {
                items.iter().map(Item::text).collect::<Option<Vec<_>>>().map(|texts| texts.join(","))
            }
            _ => self.text().map(str::to_owned),
        }
    }
}

/// An error about a place of the pipeline: it is the pipeline that is misused.
pub fn fault(place: &str, problem: impl std::fmt::Display, remedy: impl std::fmt::Display) -> Error {
    Error::usage(format_args!("{place}: {problem}"), remedy)
}

/// Names as a person would read them out.
pub fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match &names[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn place(&self, offset: usize) -> String {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        format!("{}:{}:{}", self.name, 1 + before.matches('\n').count(), 1 + line.chars().count())
    }

    fn item(&self, value: &Spanned<DeValue<'_>>) -> Item {
        let place = self.place(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(truth) => Value::Flag(*truth),
            DeValue::Array(items) => Value::List(items.iter().map(|item| self.item(item)).collect()),
            DeValue::Table(table) => Value::Table(self.entries(table)),
            other => Value::Plain(value_text(other).unwrap_or_default()),
        };
        Item { value, place }
    }

    /// The entries of a table in the order of the text.
    fn entries(&self, table: &DeTable<'_>) -> Vec<Entry> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| Entry {
            key: key.get_ref().to_string(),
            place: self.place(key.span().start),
            item: self.item(value),
        };
        entries.into_iter().map(entry).collect()
    }
}

impl Document {
    /// Reads the text of a pipeline called `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let source = Source { name: file, text };
        let table = DeTable::parse(text).map_err(|error| {
            let place = error.span().map_or(file.to_owned(), |span| source.place(span.start));
            let line =
                error.span().and_then(|span| text.get(..span.start)).map_or(0, |t| t.matches('\n').count());
            let line =
                text.lines().nth(line).map(|line| format!(", in `{}`", line.trim())).unwrap_or_default();
            fault(
                &place,
                format_args!("{}{line}", error.message()),
                "a pipeline is TOML: [step.NAME], then key = value, with words in quotes",
            )
        })?;
        let mut document = Document {
            file: file.to_owned(),
            name: None,
            description: String::new(),
            output: None,
            parameters: Vec::new(),
            steps: Vec::new(),
        };
        for entry in source.entries(table.get_ref()) {
            match entry.key.as_str() {
                "pipeline" => document.read_pipeline(entry)?,
                "parameters" => document.parameters = table_of(entry)?,
                "step" => {
                    let of_step = |entry: Entry| {
                        check_name(&entry, "step")?;
                        let (name, place) = (entry.key.clone(), entry.place.clone());
                        Ok(StepText { name, place, entries: table_of(entry)? })
                    };
                    document.steps = table_of(entry)?.into_iter().map(of_step).collect::<Result<_>>()?;
                }
                other => {
                    let near = suggest::nearest(other, ["pipeline", "parameters", "step"]);
                    let remedy = "a pipeline has [pipeline], [parameters] and a [step.NAME] for each step";
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
                "there are no steps",
                "write at least one: [step.NAME], then kind = \"train\" and the command's options",
            ));
        }
        document.parameters.iter().try_for_each(|entry| check_name(entry, "parameter"))?;
        Ok(document)
    }

    fn read_pipeline(&mut self, entry: Entry) -> Result<()> {
        for Entry { key, place, item } in table_of(entry)? {
            let text =
                item.text().ok_or_else(|| item.fault(format_args!("{key} is no text"), "write one text"));
            match key.as_str() {
                "name" => self.name = Some(text.map(|_| item.clone())?),
                "output" => self.output = Some(text.map(|_| item.clone())?),
                "description" => self.description = text?.trim().to_owned(),
                other => {
                    let near = suggest::nearest(other, ["name", "description", "output"]);
                    return Err(fault(
                        &place,
                        format_args!("unknown key {other:?} of [pipeline]"),
                        suggest::did_you_mean(&near, "it has name, description and output"),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn table_of(entry: Entry) -> Result<Vec<Entry>> {
    match entry.item.value {
        Value::Table(entries) => Ok(entries),
        Value::List(_) if entry.key == "step" => Err(fault(
            &entry.place,
            "steps are not a list: each has its name",
            "write [step.NAME] instead of [[step]]",
        )),
        _ => {
            let problem = format_args!("{} is a value, not a section", entry.key);
            Err(fault(&entry.place, problem, "write it as a [section] of key = value lines"))
        }
    }
}

/// Names are parts of paths and of references, so they are plain.
fn check_name(entry: &Entry, what: &str) -> Result<()> {
    let plain = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    if !entry.key.is_empty() && entry.key.chars().all(plain) && !entry.key.starts_with('-') {
        return Ok(());
    }
    let problem = format_args!("{:?} is no name of a {what}", entry.key);
    Err(fault(&entry.place, problem, "use letters, digits, - and _"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let error = Document::parse("p.toml", text).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        format!("{error} / {}", error.remedy().unwrap_or_default())
    }

    #[test]
    fn places_are_line_and_column() {
        let text =
            "[pipeline]\nname = \"x\"\n[step.b]\nkind = \"train\"\n  data = [\"ä\", \"z\"]\n[step.a]\n";
        let document = Document::parse("p.toml", text).unwrap();
        let names: Vec<&str> = document.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["b", "a"], "steps keep the order of the text");
        let data = &document.steps[0].entries[1];
        assert_eq!((data.key.as_str(), data.place.as_str()), ("data", "p.toml:5:3"));
        let Value::List(items) = &data.item.value else { panic!("a list") };
        assert_eq!(items[1].place, "p.toml:5:16");
        assert_eq!(data.item.joined().as_deref(), Some("ä,z"));
    }

    #[test]
    fn what_is_no_pipeline_is_refused_with_its_place() {
        for (text, says) in [
            ("[step.a\n", "p.toml:1:8: "),
            ("x = 1\n", "p.toml:1:1: unknown section \"x\""),
            ("[paramters]\n[step.a]\n", "did you mean parameters?"),
            (
                "[pipeline]\nnme = \"x\"\n[step.a]\n",
                "p.toml:2:1: unknown key \"nme\" of [pipeline] / did you mean name?",
            ),
            ("[pipeline]\nname = []\n[step.a]\n", "p.toml:2:8: name is no text"),
            ("[pipeline]\n", "there are no steps"),
            ("[[step]]\nname = \"a\"\n", "write [step.NAME] instead"),
            ("step = 3\n", "p.toml:1:1: step is a value, not a section"),
            ("[step.\"a b\"]\n", "p.toml:1:7: \"a b\" is no name of a step"),
            ("[parameters]\n\"\" = 3\n[step.a]\n", "p.toml:2:1: \"\" is no name of a parameter"),
        ] {
            let said = refused(text);
            assert!(said.contains(says), "{said}");
        }
    }
}
