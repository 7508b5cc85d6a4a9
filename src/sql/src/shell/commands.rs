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
    Headers,
    Expanded,
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
const COMMANDS: [(&[&str], &str, ShellAction, &str); 11] = [
    (&["\\h", "\\?", ".help", "help"], "", ShellAction::Help, "show this list"),
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
        "show the columns of a table; without one, list all tables with their kinds and rows",
    ),
    (
        &[".mode", "\\mode"],
        "FORMAT",
        ShellAction::Mode,
        "set the output format: table, line, csv, tsv, json, ndjson, markdown or parquet",
    ),
    (&["\\x"], "[on|off]", ShellAction::Expanded, "show one line per value, for rows of many columns"),
    (&[".headers", ".header"], "[on|off]", ShellAction::Headers, "show the names of columns"),
    (&[".timer", "\\timing"], "[on|off]", ShellAction::Timer, "show the time of each statement"),
    (&[".read", "\\i"], "FILE", ShellAction::Read, "run the SQL statements in a file"),
    (
        &[".output", "\\o"],
        "[FILE]",
        ShellAction::Output,
        "write results to a file in the format of its extension; without one, to the terminal",
    ),
    (&[".functions", "\\df"], "", ShellAction::Functions, "list the functions that planetree adds"),
    (&["\\q", ".quit", ".exit", "exit", "quit"], "", ShellAction::Quit, "leave the shell"),
];

/// The commands that are words.
const WORDS: [&str; 3] = ["exit", "quit", "help"];

/// Printed if there are no named tables.
const NO_TABLES: &str =
    "no named tables; put the path of a file in single quotes: SELECT * FROM 'predictions.parquet';";

/// Returns the new state of a switch: that of the argument or, without one, the opposite of the current state.
fn switched(what: &str, is_on: bool, argument: &str) -> Result<bool> {
    match argument {
        "on" => Ok(true),
        "off" => Ok(false),
        "" => {
            print_note(&format!("{what} {}", if is_on { "off" } else { "on" }));
            Ok(!is_on)
        }
        _ => Err(Error::place("shell", format_args!("{what}: found {argument:?}"), "write on or off")),
    }
}

/// Returns the names of all commands.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|(names, ..)| names.iter().copied())
}

/// Checks whether an input is a command. It is SQL otherwise.
pub(super) fn is_command(input: &str) -> bool {
    let word = input.trim_end_matches(';').trim_end();
    input.starts_with(['.', '\\']) || WORDS.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns the command in the last line of an input of several lines, which ends an unfinished statement. The word `help`
/// does not count, because it may be the name of a column.
pub(super) fn last_command(input: &str) -> Option<&str> {
    let (_, last) = input.trim_end().rsplit_once('\n')?;
    let last = last.trim();
    match ShellCommand::read(last)? {
        Ok(command) if last.starts_with(['.', '\\']) || command.action == ShellAction::Quit => Some(last),
        _ => None,
    }
}

impl ShellCommand {
    /// Parses an input as a command. Returns `None` if it is SQL.
    pub(super) fn read(input: &str) -> Option<Result<ShellCommand>> {
        if !is_command(input) {
            return None;
        }
        let lower = input.to_lowercase();
        let input = if input.starts_with(['.', '\\']) { input } else { lower.as_str() };
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
            ShellAction::Describe if argument.is_empty() => self.print_table_list()?,
            ShellAction::Describe => {
                for (name, kind) in self.session.columns_of(&argument)? {
                    self.print(&format!("{name:<32}{kind}"))?;
                }
            }
            ShellAction::Mode => match ResultFormat::named(&argument) {
                Some(format) => self.set_mode(format),
                None => {
                    let near = suggest::nearest(&argument, ResultFormat::names());
                    let otherwise = format!("modes: {}", ResultFormat::names().join(", "));
                    let remedy = suggest::did_you_mean(&near, &otherwise);
                    return Err(Error::place("shell", format_args!("unknown mode {argument:?}"), remedy));
                }
            },
            ShellAction::Timer => self.timer = switched("timer", self.timer, &argument)?,
            ShellAction::Headers => {
                self.printer.headers = switched("headers", self.printer.headers, &argument)?;
            }
            ShellAction::Expanded => {
                let is_on = self.mode == ResultFormat::Line;
                if switched("expanded display", is_on, &argument)? {
                    self.set_mode(ResultFormat::Line);
                } else if is_on {
                    self.set_mode(ResultFormat::Table);
                }
            }
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

    fn set_mode(&mut self, mode: ResultFormat) {
        (self.mode, self.printer.format) = (mode, mode);
    }

    fn print_table_list(&mut self) -> Result<()> {
        let tables = self.session.table_list();
        if tables.is_empty() {
            print_note(NO_TABLES);
            return Ok(());
        }
        let width = tables.iter().map(|table| table.name.chars().count()).max().unwrap_or(0).max(5);
        self.print(&format!("{:<width$}  {:<12}{:>12}", "table", "kind", "rows"))?;
        tables.iter().try_for_each(|table| {
            let rows = table.rows.map(|rows| rows.to_string()).unwrap_or_default();
            let line = format!("{:<width$}  {:<12}{rows:>12}", table.name, table.kind);
            self.print(line.trim_end())
        })
    }

    fn print_tables(&mut self, part: &str) -> Result<()> {
        let names = self.session.table_names();
        if names.is_empty() {
            print_note(NO_TABLES);
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
            for name in names.iter().filter(|name| name.starts_with(['.', '\\'])) {
                let command = ShellCommand::read(&format!("{name} 'a file';")).unwrap().unwrap();
                assert_eq!((command.action, command.argument.as_str()), (action, "a file"));
            }
        }
        for words in ["exit", "QUIT;", "quit ;"] {
            let command = ShellCommand::read(words).unwrap().unwrap();
            assert_eq!(command.action, ShellAction::Quit, "{words}");
        }
        assert!(ShellCommand::read("SELECT 1;").is_none() && ShellCommand::read("exit now").is_none());
        assert_eq!(ShellCommand::read("help;").unwrap().unwrap().action, ShellAction::Help);
        for (input, command) in [
            ("SELECT 1\nexit", Some("exit")),
            ("SELECT 1\n  \\q \n", Some("\\q")),
            ("SELECT 'open\nQUIT;", Some("QUIT;")),
            ("SELECT 1\n.tables", Some(".tables")),
            ("SELECT\nhelp", None),
            ("SELECT 1 +\n.5", None),
            ("exit\nSELECT 1", None),
            ("exit", None),
        ] {
            assert_eq!(last_command(input), command, "{input}");
        }
        let error = ShellCommand::read(".tabels").unwrap().unwrap_err();
        assert_eq!(error.remedy(), Some("did you mean .tables?"));
    }
}
