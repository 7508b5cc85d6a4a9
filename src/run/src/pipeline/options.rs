//! Maps the keys of a step in a pipeline file to the options of its command. The options come from the definition of
//! the command line, so that keys and options always have the same names.

use super::document::{LocatedEntry, LocatedValue, PipelineValue, fault, listed};
use super::draft::{PRINT, StepDraft};
use super::kinds::{RUN_CONTROLLED, StepKind};
use clap::ArgAction;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use planetree_train::config;

/// The commands of the program, with their options.
#[derive(Debug, Clone)]
pub struct Commands {
    root: clap::Command,
}

/// How many values an option accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionArity {
    /// No value, as in `--json`.
    Flag,
    /// No value, or values after `=`, as in `--zero-as-missing=f1,f2`.
    Optional,
    /// One value.
    Single,
    /// Any number of values.
    Many,
}

/// An option of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOption {
    /// Name of the option, such as `--data`; empty for positional arguments.
    pub name: String,
    /// How many values the option accepts.
    pub arity: OptionArity,
}

impl Commands {
    /// Wraps the definition of the program's command line.
    pub fn new(mut root: clap::Command) -> Self {
        root.build();
        Commands { root }
    }

    fn command(&self, kind: &StepKind) -> Option<&clap::Command> {
        self.root.find_subcommand(kind.name)
    }

    /// Whether a command has the option `--long`.
    pub fn has(&self, kind: &StepKind, long: &str) -> bool {
        self.command(kind)
            .is_some_and(|command| command.get_arguments().any(|argument| argument.get_long() == Some(long)))
    }

    /// Checks that this build of planetree has the command of the step.
    pub(crate) fn check_kind(&self, draft: &StepDraft) -> Result<()> {
        match self.command(draft.kind) {
            Some(_) => Ok(()),
            None => Err(fault(
                &draft.place,
                format_args!(
                    "step {}: this build of planetree has no command {}",
                    draft.name, draft.kind.name
                ),
                "build planetree with all features",
            )),
        }
    }

    /// Returns the option for a key of a step.
    pub fn option(&self, draft: &StepDraft, entry: &LocatedEntry) -> Result<CommandOption> {
        let kind = draft.kind;
        let arguments = || self.command(kind).into_iter().flat_map(clap::Command::get_arguments);
        if kind.positional == Some(entry.key.as_str()) {
            let many = arguments().any(|argument| argument.is_positional() && is_many(argument));
            return Ok(CommandOption {
                name: String::new(),
                arity: if many { OptionArity::Many } else { OptionArity::Single },
            });
        }
        if RUN_CONTROLLED.contains(&entry.key.as_str()) {
            return Err(fault(
                &entry.place,
                format_args!("{} is set by the run and cannot be used in pipelines", entry.key),
                "remove the line",
            ));
        }
        let key_of = |argument: &clap::Arg| argument.get_long().map(|long| long.replace('-', "_"));
        match arguments().find(|argument| key_of(argument).as_deref() == Some(entry.key.as_str())) {
            Some(argument) => Ok(CommandOption {
                name: format!("--{}", argument.get_long().unwrap_or_default()),
                arity: match argument.get_action() {
                    ArgAction::Set | ArgAction::Append if argument.is_require_equals_set() => {
                        OptionArity::Optional
                    }
                    ArgAction::Set | ArgAction::Append if is_many(argument) => OptionArity::Many,
                    ArgAction::Set | ArgAction::Append => OptionArity::Single,
                    _ => OptionArity::Flag,
                },
            }),
            None => {
                let mut names: Vec<String> = arguments().filter_map(key_of).collect();
                names.retain(|name| !RUN_CONTROLLED.contains(&name.as_str()));
                names.extend(kind.positional.map(str::to_owned));
                names.extend(["kind", "after", "for_each", PRINT].map(str::to_owned));
                let near = suggest::nearest(&entry.key, names.iter().map(String::as_str));
                let otherwise = format!("`planetree {} --help` lists its options", kind.name);
                let takes_parameters = names.iter().any(|name| name == "set");
                // Names of other tools are parameters, too, so a similar option is more likely to be meant.
                let remedy = match takes_parameters && near.is_empty() && config::is_parameter(&entry.key) {
                    true => in_set(entry),
                    false => match OTHER_NAMES.iter().find(|(other, _)| *other == entry.key) {
                        Some((_, key)) => suggest::did_you_mean(&[*key], &otherwise),
                        None => suggest::did_you_mean(&near, &otherwise),
                    },
                };
                Err(fault(
                    &entry.place,
                    format_args!("unknown key {:?} in step {} of kind {}", entry.key, draft.name, kind.name),
                    remedy,
                ))
            }
        }
    }

    /// Checks that the command accepts the arguments of the step.
    pub fn check(&self, draft: &StepDraft, words: &[String]) -> Result<()> {
        let line = std::iter::once("planetree").chain(words.iter().map(String::as_str));
        let Err(error) = self.root.clone().try_get_matches_from(line) else { return Ok(()) };
        let keys: Vec<String> =
            named_arguments(&error).iter().map(|shown| key_of_shown(shown, draft.kind)).collect();
        if error.kind() == ErrorKind::MissingRequiredArgument && !keys.is_empty() {
            return Err(missing_keys(draft, &keys));
        }
        let entry = keys.iter().find_map(|key| draft.entries.iter().find(|entry| entry.key == *key));
        let place = entry.map_or(&draft.place, |entry| &entry.place);
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let mut paragraphs =
            text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
        let message = paragraphs.next().unwrap_or_default();
        let tip = paragraphs.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
        let remedy =
            tip.unwrap_or_else(|| format!("`planetree {} --help` lists its options", draft.kind.name));
        Err(fault(place, format_args!("step {}: {message}", draft.name), remedy))
    }
}

/// Keys of other programs' pipelines, each with the key of planetree.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("needs", "after"),
    ("depends", "after"),
    ("depends_on", "after"),
    ("dependencies", "after"),
    ("requires", "after"),
    ("matrix", "for_each"),
];

/// Keys that may take the place of the positional key of a command.
const ALTERNATIVES: [(&str, &[&str]); 3] =
    [("evaluate", &["predictions", "scores", "run"]), ("compare", &["run"]), ("blend", &["predictions"])];

/// Returns the arguments that an error of the parser is about, as help shows them, such as `--data <DATASET>`.
fn named_arguments(error: &clap::Error) -> Vec<String> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(several)) => several.clone(),
        _ => Vec::new(),
    }
}

/// Returns the key for an argument as help shows it: `memory_limit` for `--memory-limit <SIZE>`.
fn key_of_shown(shown: &str, kind: &StepKind) -> String {
    match shown.strip_prefix("--") {
        Some(option) => option.split([' ', '=', '[', '<']).next().unwrap_or_default().replace('-', "_"),
        None => kind.positional.unwrap_or(shown).to_owned(),
    }
}

/// Returns the error of a step that lacks keys.
fn missing_keys(draft: &StepDraft, keys: &[String]) -> Error {
    let kind = draft.kind;
    let is_positional = |key: &&String| kind.positional == Some(key.as_str());
    let others =
        ALTERNATIVES.iter().find(|(name, _)| *name == kind.name).map(|(_, others)| others.join(", "));
    let instead = match (keys.iter().find(is_positional), others) {
        (Some(_), Some(others)) => format!(" (or {others})"),
        _ => String::new(),
    };
    let lines: Vec<String> = keys.iter().map(|key| format!("{key} = \"...\"")).collect();
    fault(
        &draft.place,
        format_args!(
            "step {} of kind {} has no {}{instead}",
            draft.name,
            kind.name,
            listed(keys.iter().map(String::as_str))
        ),
        format_args!("add {}; `planetree {} --help` describes its options", lines.join(", "), kind.name),
    )
}

/// Says that a key is a training parameter.
fn in_set(entry: &LocatedEntry) -> String {
    let value = match &entry.item.value {
        PipelineValue::Plain(number) => number.clone(),
        PipelineValue::Flag(flag) => flag.to_string(),
        PipelineValue::Text(text) => format!("{text:?}"),
        _ => "...".to_owned(),
    };
    format!("{} is a training parameter: write set = {{ {} = {value} }}", entry.key, entry.key)
}

fn is_many(argument: &clap::Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
        || argument.get_num_args().is_some_and(|count| count.max_values() > 1)
}

/// Returns the command-line arguments for an option that names neither inputs nor outputs.
pub(crate) fn plain_words(option: &CommandOption, entry: &LocatedEntry) -> Result<Vec<String>> {
    let item = &entry.item;
    let invalid =
        || item.fault(format_args!("{} does not accept a table", entry.key), "write a value or a list");
    let texts: Vec<String> = match (&option.arity, &item.value) {
        (OptionArity::Flag | OptionArity::Optional, PipelineValue::Flag(true)) => {
            return Ok(vec![option.name.clone()]);
        }
        (OptionArity::Flag | OptionArity::Optional, PipelineValue::Flag(false)) => return Ok(Vec::new()),
        (OptionArity::Flag, _) => {
            let problem = format_args!("{} must be true or false", entry.key);
            return Err(item.fault(problem, format_args!("write {} = true", entry.key)));
        }
        (_, PipelineValue::Table(settings)) if entry.key == "set" => settings
            .iter()
            .map(|setting| match setting.item.joined() {
                Some(text) => Ok(format!("{}={text}", setting.key)),
                None => Err(setting
                    .item
                    .fault(format_args!("{} must be a plain value", setting.key), "write a value")),
            })
            .collect::<Result<_>>()?,
        (OptionArity::Optional, _) => {
            return Ok(vec![format!("{}={}", option.name, item.joined().ok_or_else(invalid)?)]);
        }
        (OptionArity::Single, _) => vec![item.joined().ok_or_else(invalid)?],
        (OptionArity::Many, PipelineValue::List(items)) => items
            .iter()
            .map(LocatedValue::text)
            .map(|text| text.map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(invalid)?,
        (OptionArity::Many, _) => vec![item.text().ok_or_else(invalid)?.to_owned()],
    };
    Ok(texts.iter().flat_map(|text| with_option(&option.name, text)).collect())
}

/// Returns the command-line arguments for an option and its value. If the value begins with `-`, option and value are
/// joined to one argument, such as `--option=-1`.
pub(crate) fn with_option(name: &str, text: &str) -> Vec<String> {
    if name.is_empty() {
        vec![text.to_owned()]
    } else if text.starts_with('-') {
        vec![format!("{name}={text}")]
    } else {
        vec![name.to_owned(), text.to_owned()]
    }
}
