//! Keys of a step as options of its command. Which options there are, the command line itself says, so
//! that whoever knows it knows the pipeline.

use super::document::{Entry, Item, Value, fault};
use super::draft::{Draft, PRINT};
use super::kinds::{DECIDED, Kind};
use clap::ArgAction;
use planetree_base::error::Result;
use planetree_base::suggest;

/// The program's commands.
#[derive(Debug, Clone)]
pub struct Commands {
    root: clap::Command,
}

/// How the command line takes a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// By itself: `--json`.
    Flag,
    /// With one value.
    Single,
    /// With any number of values.
    Many,
}

/// An option of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOption {
    /// What stands before the value: `--data`; empty for what has no option.
    pub name: String,
    /// How it takes values.
    pub form: Form,
}

impl Commands {
    /// Wraps the program's command line.
    pub fn new(mut root: clap::Command) -> Self {
        root.build();
        Commands { root }
    }

    fn command(&self, kind: &Kind) -> Option<&clap::Command> {
        self.root.find_subcommand(kind.name)
    }

    /// Whether a command has an option.
    pub fn has(&self, kind: &Kind, long: &str) -> bool {
        self.command(kind)
            .is_some_and(|command| command.get_arguments().any(|argument| argument.get_long() == Some(long)))
    }

    /// An error if this program lacks a step's command.
    pub fn check_kind(&self, draft: &Draft) -> Result<()> {
        match self.command(draft.kind) {
            Some(_) => Ok(()),
            None => Err(fault(
                &draft.place,
                format_args!("step {}: this planetree was built without {}", draft.name, draft.kind.name),
                "build it with all features",
            )),
        }
    }

    /// The option that a key of a step stands for.
    pub fn option(&self, draft: &Draft, entry: &Entry) -> Result<CommandOption> {
        let kind = draft.kind;
        let arguments = || self.command(kind).into_iter().flat_map(clap::Command::get_arguments);
        if kind.positional == Some(entry.key.as_str()) {
            let many = arguments().any(|argument| argument.is_positional() && is_many(argument));
            return Ok(CommandOption {
                name: String::new(),
                form: if many { Form::Many } else { Form::Single },
            });
        }
        if DECIDED.contains(&entry.key.as_str()) {
            return Err(fault(
                &entry.place,
                format_args!("{} is not for pipelines: a run decides about it", entry.key),
                "remove the line",
            ));
        }
        let key_of = |argument: &clap::Arg| argument.get_long().map(|long| long.replace('-', "_"));
        match arguments().find(|argument| key_of(argument).as_deref() == Some(entry.key.as_str())) {
            Some(argument) => Ok(CommandOption {
                name: format!("--{}", argument.get_long().unwrap_or_default()),
                form: match argument.get_action() {
                    ArgAction::Set | ArgAction::Append if is_many(argument) => Form::Many,
                    ArgAction::Set | ArgAction::Append => Form::Single,
                    _ => Form::Flag,
                },
            }),
            None => {
                let mut names: Vec<String> = arguments().filter_map(key_of).collect();
                names.retain(|name| !DECIDED.contains(&name.as_str()));
                names.extend(kind.positional.map(str::to_owned));
                names.extend(["kind", "after", "for_each", PRINT].map(str::to_owned));
                let near = suggest::nearest(&entry.key, names.iter().map(String::as_str));
                let otherwise = format!("`planetree {} --help` lists its options", kind.name);
                Err(fault(
                    &entry.place,
                    format_args!("unknown key {:?} of step {}, a {} step", entry.key, draft.name, kind.name),
                    suggest::did_you_mean(&near, &otherwise),
                ))
            }
        }
    }

    /// An error if the command would not understand a step's arguments.
    pub fn check(&self, draft: &Draft, words: &[String]) -> Result<()> {
        let line = std::iter::once("planetree").chain(words.iter().map(String::as_str));
        let Err(error) = self.root.clone().try_get_matches_from(line) else { return Ok(()) };
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let said: Vec<&str> = text.split("\n\n").next().unwrap_or_default().split_whitespace().collect();
        let remedy = format!("`planetree {} --help` tells what it takes", draft.kind.name);
        Err(fault(&draft.place, format_args!("step {}: {}", draft.name, said.join(" ")), remedy))
    }
}

fn is_many(argument: &clap::Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
        || argument.get_num_args().is_some_and(|count| count.max_values() > 1)
}

/// The values of a plain option as words of a command line.
pub fn plain_words(option: &CommandOption, entry: &Entry) -> Result<Vec<String>> {
    let item = &entry.item;
    let no_value = || item.fault(format_args!("{} takes no table", entry.key), "write a value or a list");
    let texts: Vec<String> = match (&option.form, &item.value) {
        (Form::Flag, Value::Flag(true)) => return Ok(vec![option.name.clone()]),
        (Form::Flag, Value::Flag(false)) => return Ok(Vec::new()),
        (Form::Flag, _) => {
            let problem = format_args!("{} is true or false", entry.key);
            return Err(item.fault(problem, format_args!("write {} = true", entry.key)));
        }
        (_, Value::Table(settings)) if entry.key == "set" => settings
            .iter()
            .map(|setting| match setting.item.joined() {
                Some(text) => Ok(format!("{}={text}", setting.key)),
                None => Err(setting.item.fault(format_args!("{} is no value", setting.key), "write a value")),
            })
            .collect::<Result<_>>()?,
        (Form::Single, _) => vec![item.joined().ok_or_else(no_value)?],
        (Form::Many, Value::List(items)) => items
            .iter()
            .map(Item::text)
            .map(|text| text.map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(no_value)?,
        (Form::Many, _) => vec![item.text().ok_or_else(no_value)?.to_owned()],
    };
    Ok(texts.iter().flat_map(|text| with_option(&option.name, text)).collect())
}

/// An option and its value. A value that looks like an option stays in one word with it.
pub fn with_option(name: &str, text: &str) -> Vec<String> {
    if name.is_empty() {
        vec![text.to_owned()]
    } else if text.starts_with('-') {
        vec![format!("{name}={text}")]
    } else {
        vec![name.to_owned(), text.to_owned()]
    }
}
