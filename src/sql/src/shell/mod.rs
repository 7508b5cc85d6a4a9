//! The interactive shell: lines are edited until a statement is complete, remembered, and run.

mod commands;
mod helper;

use super::output::{Destination, Format};
use super::session::{Done, Printer, Session};
use commands::{Command, Next};
use helper::ShellHelper;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, interrupt};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Lines that are remembered.
const HISTORY_LINES: usize = 10_000;

/// See the module.
pub struct Shell {
    session: Arc<Session>,
    printer: Printer,
    /// How results are shown; those of a file are as its name says.
    mode: Format,
    timer: bool,
    access: Access,
}

impl Shell {
    /// A shell of a session.
    pub fn new(session: Session, format: Format, timer: bool, access: Access) -> Self {
        let printer = Printer { format, destination: Destination::stdout(), results: 0 };
        Shell { session: Arc::new(session), printer, mode: format, timer, access }
    }

    /// Reads and runs until the user leaves.
    pub fn run(mut self) -> Result<()> {
        let odd = |error: ReadlineError| Error::place("the terminal", error, "pass queries with -c or -f");
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .map_err(odd)?
            .completion_type(CompletionType::List)
            .auto_add_history(true)
            .build();
        let mut editor: Editor<ShellHelper, FileHistory> = Editor::with_config(config).map_err(odd)?;
        editor.set_helper(Some(ShellHelper::new(self.session.clone())));
        let history = history_file();
        if let Some(path) = &history {
            let _ = editor.load_history(path); // there is none the first time
        }
        say("planetree sql: \\h for help, \\q or Ctrl-D to leave; a statement ends with ;");
        loop {
            interrupt::forget();
            match editor.readline("planetree> ") {
                Ok(line) => {
                    let next = self.take(line.trim());
                    if let Some(path) = &history {
                        remember(&mut editor, path);
                    }
                    if next == Next::Leave {
                        break;
                    }
                }
                Err(ReadlineError::Interrupted) => {} // Ctrl-C drops what was typed
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(odd(error)),
            }
        }
        self.printer.destination.commit()
    }

    /// Takes one complete input: a command, or statements. Its faults are told, and the shell goes on.
    fn take(&mut self, input: &str) -> Next {
        if input.is_empty() {
            return Next::Line;
        }
        let outcome = match Command::read(input) {
            Some(command) => command.and_then(|command| self.obey(command)),
            None => self.query(input).map(|()| Next::Line),
        };
        outcome.unwrap_or_else(|error| {
            tell(&error);
            Next::Line
        })
    }

    /// Runs statements.
    fn query(&mut self, text: &str) -> Result<()> {
        let timer = self.timer;
        self.printer.results = 0; // a file holds several, unless it is Parquet
        self.session.run(text, &mut self.printer, &mut |done| tell_done(done, timer))
    }
}

/// What a statement did, if there is anything to say.
fn tell_done(done: &Done, timer: bool) {
    if let Some(file) = &done.written {
        say(&format!("{file}: {} rows", done.rows));
    }
    if timer {
        say(&format!("{} rows in {:.3} s", done.rows, done.seconds));
    }
}

fn tell(error: &Error) {
    say(&format!("error: {error}"));
    if let Some(remedy) = error.remedy() {
        say(&format!("  help: {remedy}"));
    }
}

/// Says something to the user; that nobody listens is no failure.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Where lines are remembered: the user's state directory.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("planetree/sql_history"))
}

fn remember(editor: &mut Editor<ShellHelper, FileHistory>, path: &PathBuf) {
    // A history that cannot be written is no reason to stop working.
    let _ = path.parent().map(std::fs::create_dir_all);
    let _ = editor.save_history(path);
}
