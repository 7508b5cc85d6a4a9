//! Runs a step of a pipeline as a separate process, so that its peak memory can be measured and a crash does not end
//! the whole run.
//!
//! The process is started with a hidden option, which makes it stop when its standard input is closed. The pipeline
//! run closes this input to stop a step, and the operating system closes it if the run is killed. Before the process
//! exits, it writes a line with its resource usage to stderr. The run does not show this line to the user.

use planetree_base::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Hidden option that marks a process as a step. Unlike an environment variable, it is not inherited by child
/// processes.
pub const AS_STEP: &str = "as-step";
/// First character of the line that reports resource usage. No other line of stderr begins with it.
const USAGE_MARK: char = '\u{1e}';

/// Resource usage of a finished step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepUsage {
    /// Peak memory in bytes, if known.
    pub peak_memory_bytes: Option<u64>,
}

/// Returns the line that a step writes to stderr to report its resource usage.
pub fn usage_line(usage: &StepUsage) -> String {
    let json = serde_json::to_string(usage).unwrap_or_default(); // a number always serialises
    format!("{USAGE_MARK}{json}")
}

/// The outcome of a step.
#[derive(Debug)]
pub(super) struct FinishedStep {
    /// What the step wrote to standard output.
    pub printed: Vec<u8>,
    /// Resource usage, if the step reported it.
    pub usage: Option<StepUsage>,
    /// Problem and remedy, if the step failed.
    pub failure: Option<(String, String)>,
    /// Whether the step failed because a result is worse than the user allows.
    pub is_gate: bool,
    /// Duration of the step in seconds.
    pub seconds: f64,
}

/// A running step.
pub(super) struct StepProcess {
    child: Child,
    /// Standard input of the process, which stops when this is closed.
    stdin: Option<ChildStdin>,
    started: Instant,
    stop_requested: Option<Instant>,
    stdout: Option<JoinHandle<std::io::Result<Vec<u8>>>>,
    stderr: Option<JoinHandle<()>>,
    captured: Arc<Mutex<CapturedStderr>>,
}

/// Exit code of a command whose result is worse than the user allows.
const GATE_CODE: i32 = 3;

/// Lines of a process's stderr that are not passed on as messages.
#[derive(Default)]
struct CapturedStderr {
    usage: Option<StepUsage>,
    error: Vec<String>,
}

impl StepProcess {
    /// Starts this program with `arguments`. Lines of its stderr are passed to `on_line`.
    pub(super) fn start(arguments: &[String], on_line: impl Fn(&str) + Send + 'static) -> Result<Self> {
        let failed = |error: std::io::Error| Error::io("this program", "start as a step", error);
        let program = planetree_base::program::program().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(arguments).arg(format!("--{AS_STEP}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // Ctrl-C in a terminal must reach only the run, which then stops its steps.
            command.process_group(0);
        }
        let mut child = command.spawn().map_err(failed)?;
        let captured = Arc::new(Mutex::new(CapturedStderr::default()));
        let stdout = child.stdout.take().map(|mut pipe| {
            std::thread::spawn(move || {
                let mut printed = Vec::new();
                pipe.read_to_end(&mut printed).map(|_| printed)
            })
        });
        let stderr = child.stderr.take().map(|pipe| {
            let captured = captured.clone();
            std::thread::spawn(move || read_stderr(pipe, &captured, &on_line))
        });
        let stdin = child.stdin.take();
        Ok(StepProcess {
            child,
            stdin,
            started: Instant::now(),
            stop_requested: None,
            stdout,
            stderr,
            captured,
        })
    }

    /// Asks the step to stop, and kills it if it is still running after a grace period. This must be called
    /// repeatedly until the step ends.
    pub(super) fn stop(&mut self) {
        /// Time that a step has to stop by itself. It is long enough to abort any upload.
        const GRACE_PERIOD: Duration = Duration::from_secs(60);
        self.stdin = None;
        let requested = *self.stop_requested.get_or_insert_with(Instant::now);
        if requested.elapsed() > GRACE_PERIOD {
            let _ = self.child.kill(); // fails only if the process has already exited
        }
    }

    /// Returns the outcome of the step; `None` while it is running.
    pub(crate) fn poll(&mut self) -> Result<Option<FinishedStep>> {
        let status = match self.child.try_wait() {
            Ok(None) => return Ok(None),
            Ok(Some(status)) => status,
            Err(error) => return Err(Error::io("a step's process", "wait for", error)),
        };
        let seconds = self.started.elapsed().as_secs_f64();
        let printed = self.stdout.take().and_then(|thread| thread.join().ok()?.ok()).unwrap_or_default();
        if let Some(thread) = self.stderr.take() {
            let _ = thread.join(); // if the reader panicked, only messages are lost
        }
        let captured = std::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner));
        let failure = (!status.success()).then(|| failure(&captured.error, status));
        let is_gate = status.code() == Some(GATE_CODE);
        Ok(Some(FinishedStep { printed, usage: captured.usage, failure, is_gate, seconds }))
    }
}

impl Drop for StepProcess {
    fn drop(&mut self) {
        // The process is still running only if the run ends early. It must not outlive the run.
        self.stdin = None;
        let _ = self.child.wait();
    }
}

fn read_stderr(pipe: impl Read, captured: &Mutex<CapturedStderr>, on_line: &impl Fn(&str)) {
    for line in BufReader::new(pipe).split(b'\n') {
        let Ok(line) = line else { return };
        let line = String::from_utf8_lossy(&line);
        let mut captured = captured.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(json) = line.strip_prefix(USAGE_MARK) {
            captured.usage = serde_json::from_str(json).ok();
        } else if line.starts_with("error: ") || !captured.error.is_empty() {
            captured.error.push(line.into_owned());
        } else {
            drop(captured);
            on_line(&line);
        }
    }
}

/// Returns the problem and the remedy from the messages of a failed process.
fn failure(error: &[String], status: std::process::ExitStatus) -> (String, String) {
    if error.is_empty() {
        return (
            format!("the process ended without an error message ({status})"),
            "check the available memory and the system log".to_owned(),
        );
    }
    let (remedies, problems): (Vec<&String>, Vec<&String>) =
        error.iter().partition(|line| line.starts_with("  help: "));
    let problems: Vec<&str> =
        problems.iter().map(|line| line.strip_prefix("error: ").unwrap_or(line)).collect();
    let remedy = remedies.first().map(|line| line["  help: ".len()..].to_owned());
    (problems.join("\n"), remedy.unwrap_or_default())
}
