//! Parses and runs the commands of the shell. They start with a backslash as in psql, or with a dot as in DuckDB.

use super::{Shell, print_note};
use crate::functions::function_help;
use crate::output::{Destination, ResultFormat};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_base::suggest;
use std::io::Write;

/// What the shell does after an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellFlow {
    /// Read the next line.
    Continue,
    /// Leave the shell.
    Quit,
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellAction {
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

/// A command and its argument.
#[derive(Debug)]
pub(super) struct ShellCommand {
    action: ShellAction,
    argument: String,
}

/// Names, argument, action and description of each command.
const COMMANDS: [(&[&str], &str, ShellAction, &str); 9] = [
    (&["\\h", "\\?", ".help"], "", ShellAction::Help, "show this list"),
    (
        &[".tables", "\\dt"],
        "[TEXT]",
        ShellAction::Tables,
        "list all tables, or those whose names contain TEXT",
    ),
    (
        &["\\d", ".schema", ".describe"],
        "[TABLE]",
        ShellAction::Describe,
        "show the columns of a table; without one, list all tables",
    ),
    (
        &[".mode", "\\mode"],
        "FORMAT",
        ShellAction::Mode,
        "set the output format: table, csv, tsv, json, ndjson, markdown or parquet",
    ),
    (&[".timer", "\\timing"], "[on|off]", ShellAction::Timer, "show the time of each statement"),
    (&[".read", "\\i"], "FILE", ShellAction::Read, "run the SQL statements in a file"),
    (
        &[".output", "\\o"],
        "[FILE]",
        ShellAction::Output,
        "write results to a file in the format of its extension; without one, to the terminal",
    ),
    (&[".functions", "\\df"], "", ShellAction::Functions, "list the functions that planetree adds"),
    (&["\\q", ".quit", ".exit"], "", ShellAction::Quit, "leave the shell"),
];

/// Returns the names of all commands.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|(names, ..)| names.iter().copied())
}

impl ShellCommand {
    /// Parses an input as a command. Returns `None` if it is SQL.
    pub(super) fn read(input: &str) -> Option<Result<ShellCommand>> {
        if !input.starts_with(['.', '\\']) {
            return None;
        }
        let (name, argument) = input.split_once(char::is_whitespace).unwrap_or((input, ""));
        let name = name.trim_end_matches(';');
        let argument = argument.trim().trim_end_matches(';').trim_matches(['\'', '"']).to_owned();
        let found = COMMANDS.iter().find(|(names, ..)| names.contains(&name));
        Some(match found {
            Some((_, _, action, _)) => Ok(ShellCommand { action: *action, argument }),
            None => {
                let near = suggest::nearest(name, names());
                let remedy = suggest::did_you_mean(&near, "\\h lists all commands");
                Err(Error::place("shell", format_args!("unknown command {name}"), remedy))
            }
        })
    }
}

impl Shell {
    /// Runs a command.
    pub(super) fn run_command(&mut self, command: ShellCommand) -> Result<ShellFlow> {
        let ShellCommand { action, argument } = command;
        match action {
            ShellAction::Quit => return Ok(ShellFlow::Quit),
            ShellAction::Help => {
                for (names, argument, _, help) in COMMANDS {
                    self.print(&format!("{:<36}{help}", format!("{} {argument}", names.join(", "))))?;
                }
            }
            ShellAction::Functions => {
                for function in function_help() {
                    self.print(&format!("{}\n    {} ({})", function.usage, function.help, function.kind))?;
                }
            }
            ShellAction::Tables => self.print_tables(&argument)?,
            ShellAction::Describe if argument.is_empty() => self.print_tables("")?,
            ShellAction::Describe => {
                for (name, kind) in self.session.columns_of(&argument)? {
                    self.print(&format!("{name:<32}{kind}"))?;
                }
            }
            ShellAction::Mode => match ResultFormat::named(&argument) {
                Some(format) => (self.mode, self.printer.format) = (format, format),
                None => {
                    let near = suggest::nearest(&argument, ResultFormat::names());
                    let otherwise = format!("modes: {}", ResultFormat::names().join(", "));
                    let remedy = suggest::did_you_mean(&near, &otherwise);
                    return Err(Error::place("shell", format_args!("unknown mode {argument:?}"), remedy));
                }
            },
            ShellAction::Timer => match argument.as_str() {
                "on" => self.timer = true,
                "off" => self.timer = false,
                "" => {
                    self.timer = !self.timer;
                    print_note(if self.timer { "timer on" } else { "timer off" });
                }
                _ => {
                    return Err(Error::place(
                        "shell",
                        "the timer must be on or off",
                        "write .timer on or .timer off",
                    ));
                }
            },
            ShellAction::Read => {
                let location = Location::parse(&argument, self.access)?;
                let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
                self.query(&String::from_utf8_lossy(&bytes))?;
            }
            ShellAction::Output => {
                let (format, next) = match argument.as_str() {
                    "" | "stdout" => (None, Destination::stdout()),
                    file => {
                        let location = Location::parse(file, self.access)?;
                        let (format, compression) = ResultFormat::of_file(&location, None)?;
                        (format, Destination::file(&location, compression, self.session.replace())?)
                    }
                };
                std::mem::replace(&mut self.printer.destination, next).commit()?;
                self.printer.format = format.unwrap_or(self.mode);
            }
        }
        Ok(ShellFlow::Continue)
    }

    fn print_tables(&mut self, part: &str) -> Result<()> {
        let names = self.session.table_names();
        if names.is_empty() {
            print_note(
                "no named tables; put the path of a file in single quotes: SELECT * FROM 'predictions.parquet';",
            );
        }
        names.iter().filter(|name| name.contains(part)).try_for_each(|name| self.print(name))
    }

    /// Prints a line to the destination of query results.
    fn print(&mut self, line: &str) -> Result<()> {
        let output = &mut self.printer.destination;
        let written = writeln!(output, "{line}").and_then(|()| output.flush());
        written.map_err(|error| Error::io("the output", "write", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_recognised_by_all_their_names() {
        for (names, _, action, _) in COMMANDS {
            for name in names {
                let command = ShellCommand::read(&format!("{name} 'a file';")).unwrap().unwrap();
                assert_eq!((command.action, command.argument.as_str()), (action, "a file"));
            }
        }
        assert!(ShellCommand::read("SELECT 1;").is_none());
        let error = ShellCommand::read(".tabels").unwrap().unwrap_err();
        assert_eq!(error.remedy(), Some("did you mean .tables?"));
    }
}
