//! A step as a process of its own: its peak of memory is its own, and when it crashes it crashes alone.
//!
//! The process is told that it is a step by an option. It then ends when its standard input does, so
//! that closing that asks it to stop, and so does the death of the process that started it. At its end
//! it writes a line with its figures, which is taken out of what it says.

use planetree_base::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The option that tells a process that it is a step; unlike a variable it is not handed down.
pub const AS_STEP: &str = "as-step";
/// What begins the line of figures; no message does.
const FIGURES: char = '\u{1e}';

/// What a process says of itself at its end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The most memory that it had.
    pub peak_memory_bytes: Option<u64>,
}

/// The line of figures.
pub fn figures_line(figures: &Figures) -> String {
    let json = serde_json::to_string(figures).unwrap_or_default(); // a number always serialises
    format!("{FIGURES}{json}")
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    /// What it printed.
    pub printed: Vec<u8>,
    /// Its figures, if it came so far.
    pub figures: Option<Figures>,
    /// What went wrong and what to do about it, unless all went well.
    pub failure: Option<(String, String)>,
    /// How long it took.
    pub seconds: f64,
}

/// A process at work.
pub struct Process {
    child: Child,
    lifeline: Option<ChildStdin>,
    begun: Instant,
    asked: Option<Instant>,
    printed: Option<JoinHandle<std::io::Result<Vec<u8>>>>,
    said: Option<JoinHandle<()>>,
    heard: Arc<Mutex<Heard>>,
}

/// What a process said that is not only for the user's eyes.
#[derive(Default)]
struct Heard {
    figures: Option<Figures>,
    error: Vec<String>,
}

impl Process {
    /// Starts this program with other arguments; `say` gets what it says, line by line.
    pub fn start(arguments: &[String], say: impl Fn(&str) + Send + 'static) -> Result<Self> {
        let failed = |error: std::io::Error| Error::io("this program", "start as a step", &error);
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(arguments).arg(format!("--{AS_STEP}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // Ctrl-C on a terminal reaches us alone; we ask the step to stop, once.
            command.process_group(0);
        }
        let mut child = command.spawn().map_err(failed)?;
        let heard = Arc::new(Mutex::new(Heard::default()));
        let printed = child.stdout.take().map(|mut pipe| {
            std::thread::spawn(move || {
                let mut printed = Vec::new();
                pipe.read_to_end(&mut printed).map(|_| printed)
            })
        });
        let said = child.stderr.take().map(|pipe| {
            let heard = heard.clone();
            std::thread::spawn(move || listen(pipe, &heard, &say))
        });
        let lifeline = child.stdin.take();
        Ok(Process { child, lifeline, begun: Instant::now(), asked: None, printed, said, heard })
    }

    /// Asks it to stop, and ends it if it does not within a while.
    pub fn stop(&mut self) {
        /// Long enough for any upload to be given up.
        const PATIENCE: Duration = Duration::from_secs(60);
        self.lifeline = None;
        let asked = *self.asked.get_or_insert_with(Instant::now);
        if asked.elapsed() > PATIENCE {
            let _ = self.child.kill(); // it has ended by itself
        }
    }

    /// How it ended; `None` while it is at work.
    pub fn poll(&mut self) -> Result<Option<Ended>> {
        let status = match self.child.try_wait() {
            Ok(None) => return Ok(None),
            Ok(Some(status)) => status,
            Err(error) => return Err(Error::io("a step's process", "wait for", &error)),
        };
        let seconds = self.begun.elapsed().as_secs_f64();
        let printed = self.printed.take().and_then(|thread| thread.join().ok()?.ok()).unwrap_or_default();
        if let Some(thread) = self.said.take() {
            let _ = thread.join(); // it says nothing more
        }
        let heard = std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        let failure = (!status.success()).then(|| failure(&heard.error, status));
        Ok(Some(Ended { printed, figures: heard.figures, failure, seconds }))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only when the run ends early: nothing of ours may go on behind its back.
        self.lifeline = None;
        let _ = self.child.wait();
    }
}

fn listen(pipe: impl Read, heard: &Mutex<Heard>, say: &impl Fn(&str)) {
    for line in BufReader::new(pipe).split(b'\n') {
        let Ok(line) = line else { return };
        let line = String::from_utf8_lossy(&line);
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(json) = line.strip_prefix(FIGURES) {
            heard.figures = serde_json::from_str(json).ok();
        } else if line.starts_with("error: ") || !heard.error.is_empty() {
            heard.error.push(line.into_owned());
        } else {
            drop(heard);
            say(&line);
        }
    }
}

/// What a process that failed had to say.
fn failure(error: &[String], status: std::process::ExitStatus) -> (String, String) {
    if error.is_empty() {
        return (
            format!("it ended without a word ({status})"),
            "look at memory and at the system's log".to_owned(),
        );
    }
    let (remedies, said): (Vec<&String>, Vec<&String>) =
        error.iter().partition(|line| line.starts_with("  help: "));
    let said: Vec<&str> = said.iter().map(|line| line.strip_prefix("error: ").unwrap_or(line)).collect();
    let remedy = remedies.first().map(|line| line["  help: ".len()..].to_owned());
    (said.join("\n"), remedy.unwrap_or_default())
}
