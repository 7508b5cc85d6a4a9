//! Reads settings from TOML and from the command line. Each setting keeps its location for error messages.

use super::keys::{KEYS, Key};
use super::value::ValueError;
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// One `key = value` setting, as it was written.
#[derive(Clone)]
pub struct Setting {
    pub key: &'static Key,
    /// The name or alias that was used.
    pub written: String,
    /// The value as a string without quotes. List members are separated by commas.
    pub text: String,
    /// Location, name and value of the setting, as shown at the beginning of error messages.
    pub shown: String,
    /// Whether the user wrote the setting. Settings of presets are overridden without an error.
    pub chosen: bool,
}

impl Setting {
    pub fn fault(&self, fault: ValueError) -> Error {
        Error::usage(format_args!("{}: {}", self.shown, fault.problem), fault.remedy)
    }
}

/// A parsed TOML document.
pub struct ConfigDocument {
    /// Parameters, in the order of the document.
    pub settings: Vec<Setting>,
    /// Values of the keys that are allowed but are not parameters.
    pub others: BTreeMap<&'static str, Other>,
}

/// The value of a key that is not a parameter.
pub struct Other {
    /// The value as a string.
    pub text: String,
    /// Location in the document, for error messages.
    pub place: String,
}

/// Parses a TOML document, which error messages call `name`. `others` lists the keys that are allowed besides
/// parameters.
pub fn read_toml(name: &str, text: &str, others: &[&'static str]) -> Result<ConfigDocument> {
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
            "write key = value, with strings in quotes: candidates = \"static\"",
        )
    })?;
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut document = ConfigDocument { settings: Vec::new(), others: BTreeMap::new() };
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

/// Parses the `key=value` arguments of all `--set` options.
pub fn read_command(set: &[String]) -> Result<Vec<Setting>> {
    set.iter()
        .map(|argument| {
            let Some((written, text)) = argument.split_once('=') else {
                return Err(Error::usage(
                    format_args!("--set {argument}: no value given"),
                    "write --set key=value, such as --set num_trees=100",
                ));
            };
            let (written, text) = (written.trim(), text.trim());
            if written == "preset" {
                return Err(Error::usage(
                    "--set preset: a preset is not a parameter",
                    format_args!("write --preset {text}"),
                ));
            }
            let key = find_key(written, "")?;
            let shown = format!("--set {written}={text}");
            Ok(Setting { key, written: written.to_owned(), text: text.to_owned(), shown, chosen: true })
        })
        .collect()
}

/// Finds a parameter by name or alias. If there is none, the error message begins with `place`.
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

/// Formats a value as it would be written after `--set key=`; returns `None` for a table.
pub fn value_text(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        // Numbers stay as they were written, because 1 and 1.0 may differ in meaning.
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

/// Returns the line that contains an error, to be appended to the error message.
fn line_of(text: &str, span: Range<usize>) -> Option<String> {
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..)?.lines().next()?.trim();
    (!line.is_empty()).then(|| format!(", in `{line}`"))
}
