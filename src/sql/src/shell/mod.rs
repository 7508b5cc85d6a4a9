//! Implements the interactive shell. It reads lines until a statement is complete, saves them in the history, and
//! runs the statement.

mod commands;
mod helper;

use super::output::{Destination, ResultFormat};
use super::session::{Printer, Session, StatementSummary};
use commands::{ShellCommand, ShellFlow, last_command};
use helper::{ShellHelper, is_complete};
use planetree_base::error::{Error, Result};
use planetree_base::size::counted;
use planetree_base::storage::{Access, interrupt};
use planetree_base::terminal::printable;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Number of lines kept in the history.
const HISTORY_LINES: usize = 10_000;

/// The interactive shell.
pub struct Shell {
    session: Arc<Session>,
    printer: Printer,
    /// Format of results on the terminal. The format of a file follows from its extension.
    mode: ResultFormat,
    timer: bool,
    access: Access,
}

impl Shell {
    /// Creates a shell for a session.
    pub fn new(session: Session, format: ResultFormat, timer: bool, access: Access) -> Self {
        let printer = Printer { format, destination: Destination::stdout(), results: 0, headers: true };
        Shell { session: Arc::new(session), printer, mode: format, timer, access }
    }

    /// Reads and runs statements until the user leaves.
    pub fn run(mut self) -> Result<()> {
        let unusable = |error: ReadlineError| {
            Error::place(
                "sql",
                format_args!("cannot use the terminal for the shell: {error}"),
                "pass queries with -c or -f",
            )
            .caused_by(error)
        };
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .map_err(unusable)?
            .completion_type(CompletionType::List)
            .auto_add_history(true)
            .build();
        let mut editor: Editor<ShellHelper, FileHistory> = Editor::with_config(config).map_err(unusable)?;
        editor.set_helper(Some(ShellHelper::new(self.session.clone())));
        let history = history_file();
        if let Some(path) = &history {
            let _ = editor.load_history(path); // the file does not exist at first
        }
        print_note("planetree sql: \\h for help, exit or Ctrl-D to leave; end statements with ;");
        loop {
            interrupt::forget();
            match editor.readline("planetree> ") {
                Ok(line) => {
                    let next = self.run_input(line.trim());
                    if let Some(path) = &history {
                        save_history(&mut editor, path);
                    }
                    if next == ShellFlow::Quit {
                        break;
                    }
                }
                Err(ReadlineError::Interrupted) => {} // Ctrl-C discards the input
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(unusable(error)),
            }
        }
        self.printer.destination.commit()
    }

    /// Runs one complete input: a command or statements. A command after an unfinished statement is run without the
    /// statement. Errors are printed, and the shell continues.
    fn run_input(&mut self, input: &str) -> ShellFlow {
        if input.is_empty() {
            return ShellFlow::Continue;
        }
        if let Some(command) = last_command(input) {
            let statements = input.trim_end().strip_suffix(command).unwrap_or_default().trim();
            if is_complete(statements) && self.run_input(statements) == ShellFlow::Quit {
                return ShellFlow::Quit;
            }
            return self.run_input(command);
        }
        let outcome = match ShellCommand::read(input) {
            Some(command) => command.and_then(|command| self.run_command(command)),
            None => self.query(input).map(|()| ShellFlow::Continue),
        };
        outcome.unwrap_or_else(|error| {
            print_error(&error);
            ShellFlow::Continue
        })
    }

    /// Runs SQL statements.
    fn query(&mut self, text: &str) -> Result<()> {
        let timer = self.timer;
        self.printer.results = 0; // a file may hold several results, unless it is Parquet
        self.session.run(text, &mut self.printer, &mut |done| print_summary(done, timer))
    }
}

/// Checks whether a line is a command of the shell.
pub fn is_shell_command(line: &str) -> bool {
    matches!(ShellCommand::read(line), Some(Ok(_)))
}

/// Prints the file that a statement wrote and, if the timer is on, the number of rows and the time.
fn print_summary(done: &StatementSummary, timer: bool) {
    let rows = counted(done.rows, "row", "rows");
    if let Some(file) = &done.written {
        print_note(&format!("{file}: {rows}"));
    }
    if timer {
        print_note(&format!("{rows} in {:.3} s", done.seconds));
    }
}

fn print_error(error: &Error) {
    print_note(&format!("error: {error}"));
    if let Some(remedy) = error.remedy() {
        print_note(&format!("  help: {remedy}"));
    }
}

/// Prints a line to stderr. A closed stderr is not an error.
fn print_note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}

/// Returns the path of the history file in the user's state directory, or `None` if there is no such directory.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("planetree/sql_history"))
}

fn save_history(editor: &mut Editor<ShellHelper, FileHistory>, path: &PathBuf) {
    // A history that cannot be written does not stop the shell.
    let _ = path.parent().map(std::fs::create_dir_all);
    let _ = editor.save_history(path);
}
