//! Where settings are written: a TOML text, or the command line. A setting keeps its place, so that
//! whatever is wrong with it later can be pointed at.

use super::keys::{KEYS, Key};
use super::value::Fault;
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// One `key = value`, as written.
#[derive(Clone)]
pub struct Setting {
    /// The parameter that is meant.
    pub key: &'static Key,
    /// The name it was given under.
    pub written: String,
    /// The value as text, without quotes; the members of a list with commas between them.
    pub text: String,
    /// Place, name and value, as an error begins.
    pub shown: String,
    /// Whether somebody chose it; a preset's settings give way silently.
    pub chosen: bool,
}

impl Setting {
    /// An error about this setting.
    pub fn fault(&self, fault: Fault) -> Error {
        Error::usage(format_args!("{}: {}", self.shown, fault.problem), fault.remedy)
    }
}

/// What a TOML text says.
pub struct Document {
    /// The parameters, in the order of the text.
    pub settings: Vec<Setting>,
    /// Keys that are no parameters.
    pub others: BTreeMap<&'static str, Other>,
}

/// The value of a key that is no parameter.
pub struct Other {
    /// The value as text.
    pub text: String,
    /// Where it is.
    pub place: String,
}

/// Reads a TOML text called `name`. `others` are keys that it may have besides parameters.
pub fn read_toml(name: &str, text: &str, others: &[&'static str]) -> Result<Document> {
    let at = |offset: usize| {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        format!("{name}:{}:{}", 1 + before.matches('\n').count(), 1 + line.len())
    };
    let table = DeTable::parse(text).map_err(|error| {
        let place = error.span().map_or(name.to_owned(), |span| at(span.start));
        let line = error.span().and_then(|span| line_of(text, span)).unwrap_or_default();
        Error::usage(
            format_args!("{place}: {}{line}", error.message()),
            "a line is key = value, with words in quotes: candidates = \"static\"",
        )
    })?;
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut document = Document { settings: Vec::new(), others: BTreeMap::new() };
    for (key, value) in entries {
        let (written, place) = (key.get_ref().as_ref(), at(key.span().start));
        let Some(value) = value_text(value.get_ref()) else {
            return Err(Error::usage(
                format_args!("{place}: {written} is a table, not a value"),
                "write parameters as key = value, without a [section]",
            ));
        };
        if let Some(other) = others.iter().find(|other| **other == written) {
            document.others.insert(other, Other { text: value, place });
            continue;
        }
        let key = find_key(written, &format!("{place}: "))?;
        let shown = format!("{place}: {written} = {value}");
        document.settings.push(Setting {
            key,
            written: written.to_owned(),
            text: value,
            shown,
            chosen: true,
        });
    }
    Ok(document)
}

/// Reads the `key=value` of every `--set`.
pub fn read_command(set: &[String]) -> Result<Vec<Setting>> {
    set.iter()
        .map(|argument| {
            let Some((written, text)) = argument.split_once('=') else {
                return Err(Error::usage(
                    format_args!("--set {argument}: there is no value"),
                    "write --set key=value, such as --set num_trees=100",
                ));
            };
            let (written, text) = (written.trim(), text.trim());
            if written == "preset" {
                return Err(Error::usage(
                    "--set preset: a preset is no parameter",
                    format_args!("write --preset {text}"),
                ));
            }
            let key = find_key(written, "")?;
            let shown = format!("--set {written}={text}");
            Ok(Setting { key, written: written.to_owned(), text: text.to_owned(), shown, chosen: true })
        })
        .collect()
}

/// The parameter of a name; an unknown one is an error that begins with `place`.
pub fn find_key(written: &str, place: &str) -> Result<&'static Key> {
    Key::named(written).ok_or_else(|| {
        let mut suggestions = suggest::nearest(written, KEYS.iter().flat_map(Key::names));
        suggestions.dedup_by_key(|name| Key::named(name).map(|key| key.name));
        Error::usage(
            format_args!("{place}unknown parameter {written:?}"),
            suggest::did_you_mean(&suggestions, "`planetree train --help` lists all parameters"),
        )
    })
}

/// A value as it would be written after `--set key=`; `None` for a table.
pub fn value_text(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        // Numbers keep their text, for 1 and 1.0 may mean different things.
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.to_string(),
            Err(_) => number.as_str().to_owned(),
        },
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(values) => {
            let texts: Option<Vec<String>> = values.iter().map(|value| value_text(value.get_ref())).collect();
            texts?.join(",")
        }
        DeValue::Table(_) => return None,
    })
}

/// The line of a fault, to be shown after it.
fn line_of(text: &str, span: Range<usize>) -> Option<String> {
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..)?.lines().next()?.trim();
    (!line.is_empty()).then(|| format!(", in `{line}`"))
}
