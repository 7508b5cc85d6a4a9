//! What the shell obeys beside SQL: commands after a backslash as psql has them, after a dot as DuckDB does.

use super::{Shell, say};
use crate::functions::function_help;
use crate::output::{Destination, Format};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_base::suggest;
use std::io::Write;

/// What comes after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The next line.
    Line,
    /// Nothing.
    Leave,
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Help,
    Tables,
    Describe,
    Mode,
    Timer,
    Read,
    Output,
    Functions,
    Quit,
}

/// A command and its words.
#[derive(Debug)]
pub struct Command {
    action: Action,
    argument: String,
}

/// Names, what follows them, what they do, and their help.
const COMMANDS: [(&[&str], &str, Action, &str); 9] = [
    (&["\\h", "\\?", ".help"], "", Action::Help, "this list"),
    (&[".tables", "\\dt"], "[TEXT]", Action::Tables, "all tables, or those whose name has a text in it"),
    (
        &["\\d", ".schema", ".describe"],
        "[TABLE]",
        Action::Describe,
        "the columns of a table; all tables without one",
    ),
    (&[".mode", "\\mode"], "FORMAT", Action::Mode, "table, csv, tsv, json, ndjson, markdown or parquet"),
    (&[".timer", "\\timing"], "[on|off]", Action::Timer, "say how long statements take"),
    (&[".read", "\\i"], "FILE", Action::Read, "run the statements of a file"),
    (
        &[".output", "\\o"],
        "[FILE]",
        Action::Output,
        "write results to a file in the format of its extension; back to the terminal without one",
    ),
    (&[".functions", "\\df"], "", Action::Functions, "the functions that planetree adds"),
    (&["\\q", ".quit", ".exit"], "", Action::Quit, "leave"),
];

/// All names of commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|(names, ..)| names.iter().copied())
}

impl Command {
    /// The command of an input; `None` if it is SQL.
    pub fn read(input: &str) -> Option<Result<Command>> {
        if !input.starts_with(['.', '\\']) {
            return None;
        }
        let (name, argument) = input.split_once(char::is_whitespace).unwrap_or((input, ""));
        let name = name.trim_end_matches(';');
        let argument = argument.trim().trim_end_matches(';').trim_matches(['\'', '"']).to_owned();
        let found = COMMANDS.iter().find(|(names, ..)| names.contains(&name));
        Some(match found {
            Some((_, _, action, _)) => Ok(Command { action: *action, argument }),
            None => {
                let near = suggest::nearest(name, names());
                let remedy = suggest::did_you_mean(&near, "\\h lists all commands");
                Err(Error::place("shell", format_args!("unknown command {name}"), remedy))
            }
        })
    }
}

impl Shell {
    /// Does what a command says.
    pub(super) fn obey(&mut self, command: Command) -> Result<Next> {
        let Command { action, argument } = command;
        match action {
            Action::Quit => return Ok(Next::Leave),
            Action::Help => {
                for (names, argument, _, help) in COMMANDS {
                    self.print(&format!("{:<36}{help}", format!("{} {argument}", names.join(", "))))?;
                }
            }
            Action::Functions => {
                for function in function_help() {
                    self.print(&format!("{}\n    {} ({})", function.usage, function.help, function.kind))?;
                }
            }
            Action::Tables => self.print_tables(&argument)?,
            Action::Describe if argument.is_empty() => self.print_tables("")?,
            Action::Describe => {
                for (name, kind) in self.session.columns_of(&argument)? {
                    self.print(&format!("{name:<32}{kind}"))?;
                }
            }
            Action::Mode => match Format::named(&argument) {
                Some(format) => (self.mode, self.printer.format) = (format, format),
                None => {
                    let near = suggest::nearest(&argument, Format::names());
                    let otherwise = format!("there are {}", Format::names().join(", "));
                    let remedy = suggest::did_you_mean(&near, &otherwise);
                    return Err(Error::place("shell", format_args!("unknown mode {argument:?}"), remedy));
                }
            },
            Action::Timer => match argument.as_str() {
                "on" => self.timer = true,
                "off" => self.timer = false,
                "" => {
                    self.timer = !self.timer;
                    say(if self.timer { "timer on" } else { "timer off" });
                }
                _ => return Err(Error::place("shell", "a timer is on or off", "write .timer on")),
            },
            Action::Read => {
                let location = Location::parse(&argument, self.access)?;
                let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
                self.query(&String::from_utf8_lossy(&bytes))?;
            }
            Action::Output => {
                let (format, next) = match argument.as_str() {
                    "" | "stdout" => (None, Destination::stdout()),
                    file => {
                        let location = Location::parse(file, self.access)?;
                        let (format, compression) = Format::of_file(&location, None)?;
                        (format, Destination::file(&location, compression, self.session.replace())?)
                    }
                };
                std::mem::replace(&mut self.printer.destination, next).commit()?;
                self.printer.format = format.unwrap_or(self.mode);
            }
        }
        Ok(Next::Line)
    }

    fn print_tables(&mut self, part: &str) -> Result<()> {
        let names = self.session.table_names();
        if names.is_empty() {
            say("no table has a name; name files in quotes: SELECT * FROM 'predictions.parquet';");
        }
        names.iter().filter(|name| name.contains(part)).try_for_each(|name| self.print(name))
    }

    /// Prints a line where results go.
    fn print(&mut self, line: &str) -> Result<()> {
        let output = &mut self.printer.destination;
        let written = writeln!(output, "{line}").and_then(|()| output.flush());
        written.map_err(|error| Error::io("the output", "write", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_by_all_their_names() {
        for (names, _, action, _) in COMMANDS {
            for name in names {
                let command = Command::read(&format!("{name} 'a file';")).unwrap().unwrap();
                assert_eq!((command.action, command.argument.as_str()), (action, "a file"));
            }
        }
        assert!(Command::read("SELECT 1;").is_none());
        let error = Command::read(".tabels").unwrap().unwrap_err();
        assert_eq!(error.remedy(), Some("did you mean .tables?"));
    }
}
