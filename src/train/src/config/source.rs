//! Reads settings from TOML and from the command line. Each setting keeps its location for error messages.

use super::foreign::foreign_answer;
use super::keys::{Key, keys};
use super::plan_keys::{PLAN_KEYS, PlanKey};
use super::value::{ValueError, quoted};
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

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
#[derive(Default)]
pub(super) struct ConfigDocument {
    /// Parameters, in the order of the document.
    pub settings: Vec<Setting>,
    /// Keys of the training plan.
    pub plan: Vec<PlanSetting>,
    /// The `[[stage]]` tables.
    pub stages: Vec<StageDocument>,
    /// Values of the keys that are allowed but are not parameters.
    pub others: BTreeMap<&'static str, Other>,
}

/// A `[[stage]]` table.
pub(super) struct StageDocument {
    /// The preset of the stage.
    pub preset: Option<Other>,
    /// Parameters, in the order of the document.
    pub settings: Vec<Setting>,
    /// Location in the document, for error messages.
    pub place: String,
}

/// A key of the training plan and its value, as it was written.
pub(super) struct PlanSetting {
    pub key: &'static PlanKey,
    /// The value as a string without quotes. List members are separated by commas.
    pub text: String,
    /// Location, name and value of the setting, as shown at the beginning of error messages.
    pub shown: String,
}

/// The settings of the command line.
#[derive(Default)]
pub(super) struct CommandSettings {
    /// Parameters that do not name a stage.
    pub all: Vec<Setting>,
    /// Parameters of a stage, with its number.
    pub stages: Vec<(usize, Setting)>,
    /// Keys of the training plan.
    pub plan: Vec<PlanSetting>,
}

impl CommandSettings {
    /// Returns the parameters of a stage.
    pub(super) fn of_stage(&self, number: usize) -> Vec<Setting> {
        let own = self.stages.iter().filter(|(stage, _)| *stage == number);
        own.map(|(_, setting)| setting.clone()).collect()
    }
}

/// The value of a key that is not a parameter.
pub(super) struct Other {
    /// The value as a string.
    pub text: String,
    /// Location in the document, for error messages.
    pub place: String,
}

/// Parses a TOML document, which error messages call `name`. `others` lists the keys that are allowed besides
/// parameters.
pub(super) fn read_toml(name: &str, text: &str, others: &[&'static str]) -> Result<ConfigDocument> {
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
    let mut document = ConfigDocument::default();
    for (key, value) in in_order(table.get_ref()) {
        let (written, place) = (key.get_ref().as_ref(), at(key.span().start));
        if written == "stage" {
            document.stages = read_stages(value, &place, &at)?;
            continue;
        }
        let text = plain_value(written, value, &place)?;
        if let Some(other) = others.iter().find(|other| **other == written) {
            document.others.insert(other, Other { text, place });
        } else if let Some(key) = PlanKey::named(written) {
            let shown = format!("{place}: {written} = {text}");
            document.plan.push(PlanSetting { key, text, shown });
        } else {
            document.settings.push(setting_of(written, text, &place)?);
        }
    }
    Ok(document)
}

/// Returns the entries of a table in the order of the document.
fn in_order<'t, 'd>(table: &'t DeTable<'d>) -> Vec<(&'t Spanned<DeString<'d>>, &'t Spanned<DeValue<'d>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Reads the `[[stage]]` tables. `at` returns the place of an offset in the document.
fn read_stages(
    value: &Spanned<DeValue<'_>>,
    place: &str,
    at: &dyn Fn(usize) -> String,
) -> Result<Vec<StageDocument>> {
    let wrong = || {
        Error::usage(
            format_args!("{place}: stage is not a list of tables"),
            "write a [[stage]] table for every stage",
        )
    };
    let DeValue::Array(tables) = value.get_ref() else { return Err(wrong()) };
    let stage = |table: &Spanned<DeValue<'_>>| {
        let DeValue::Table(entries) = table.get_ref() else { return Err(wrong()) };
        let mut stage = StageDocument { preset: None, settings: Vec::new(), place: at(table.span().start) };
        for (key, value) in in_order(entries) {
            let (written, place) = (key.get_ref().as_ref(), at(key.span().start));
            let text = plain_value(written, value, &place)?;
            if written == "preset" {
                stage.preset = Some(Other { text, place });
            } else if PlanKey::named(written).is_some() {
                return Err(Error::usage(
                    format_args!("{place}: {written} applies to all stages together"),
                    "write it before the first [[stage]]",
                ));
            } else {
                stage.settings.push(setting_of(written, text, &place)?);
            }
        }
        Ok(stage)
    };
    tables.iter().map(stage).collect()
}

/// Returns a value as a string, or an error if it is a table and the parameter accepts none.
fn plain_value(written: &str, value: &Spanned<DeValue<'_>>, place: &str) -> Result<String> {
    if let DeValue::Table(table) = value.get_ref()
        && Key::named(written).is_some_and(|key| key.accepts_table)
    {
        return table_text(table).ok_or_else(|| {
            Error::usage(
                format_args!("{place}: {written} has a table or a list in place of a number"),
                "write name = number, with quotes around names that contain a dot",
            )
        });
    }
    value_text(value.get_ref()).ok_or_else(|| {
        Error::usage(
            format_args!("{place}: {written} is a table, not a value"),
            "write parameters as key = value, without a [section]",
        )
    })
}

fn setting_of(written: &str, text: String, place: &str) -> Result<Setting> {
    let key = find_key(written, &format!("{place}: "))?;
    let shown = format!("{place}: {written} = {text}");
    Ok(Setting { key, written: written.to_owned(), text, shown, chosen: true })
}

/// Parses the `key=value` arguments of all `--set` options. `stage.2.key=value` sets a parameter of one stage.
pub(super) fn read_command(set: &[String]) -> Result<CommandSettings> {
    let mut command = CommandSettings::default();
    for argument in set {
        let Some((written, text)) = argument.split_once('=') else {
            return Err(Error::usage(
                format_args!("--set {argument}: no value given"),
                "write --set key=value, such as --set num_trees=100",
            ));
        };
        let (written, text) = (written.trim(), text.trim());
        let shown = format!("--set {written}={text}");
        if let Some(key) = PlanKey::named(written) {
            command.plan.push(PlanSetting { key, text: text.to_owned(), shown });
            continue;
        }
        let (stage, name) = match written.strip_prefix("stage.") {
            None => (None, written),
            Some(rest) => {
                let parts = rest.split_once('.').and_then(|(stage, name)| Some((stage.parse().ok()?, name)));
                let Some((stage, name)) = parts.filter(|(stage, _)| *stage > 0) else {
                    return Err(Error::usage(
                        format_args!("--set {argument}: no number of a stage"),
                        "write --set stage.N.key=value, such as --set stage.2.num_trees=500",
                    ));
                };
                (Some(stage), name)
            }
        };
        if name == "preset" {
            let remedy = match stage {
                None => format!("write --preset {text}"),
                Some(_) => format!("write preset = {text:?} in a [[stage]] table of --config"),
            };
            return Err(Error::usage(format_args!("--set {written}: a preset is not a parameter"), remedy));
        }
        let key = find_key(name, "")?;
        let setting = Setting { key, written: name.to_owned(), text: text.to_owned(), shown, chosen: true };
        match stage {
            None => command.all.push(setting),
            Some(stage) => command.stages.push((stage, setting)),
        }
    }
    Ok(command)
}

/// Finds a parameter by name or alias. If there is none, the error message begins with `place`.
pub(super) fn find_key(written: &str, place: &str) -> Result<&'static Key> {
    Key::named(written).ok_or_else(|| {
        if let Some(answer) = foreign_answer(written) {
            return Error::usage(format_args!("{place}planetree has no parameter {written:?}"), answer);
        }
        let names = keys().flat_map(Key::names).chain(PLAN_KEYS.iter().map(|key| key.name));
        let mut suggestions = suggest::nearest(written, names);
        suggestions.dedup_by_key(|name| Key::named(name).map_or(*name, |key| key.name));
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

/// Formats a table of names and plain values; returns `None` if a value is a table or a list.
fn table_text(table: &DeTable<'_>) -> Option<String> {
    let entries = in_order(table).into_iter().map(|(name, value)| {
        let is_plain = !matches!(value.get_ref(), DeValue::Array(_));
        let value = value_text(value.get_ref()).filter(|_| is_plain)?;
        Some(format!("{}={value}", quoted(name.get_ref())))
    });
    Some(entries.collect::<Option<Vec<String>>>()?.join(","))
}

/// Returns the line that contains an error, to be appended to the error message.
fn line_of(text: &str, span: Range<usize>) -> Option<String> {
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..)?.lines().next()?.trim();
    (!line.is_empty()).then(|| format!(", in `{line}`"))
}
