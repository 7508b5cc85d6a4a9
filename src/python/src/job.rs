//! Runs work on threads of its own. Meanwhile the calling thread releases the interpreter's lock, handles signals and
//! reports progress.

use super::failure::exception;
use super::warning;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_cli::Console;
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time between two looks at signals and progress.
const INTERVAL: Duration = Duration::from_millis(50);

/// Number of jobs that run now. A request to stop concerns all of them, and it ends with the last one.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// What a job has reported since the calling thread last looked.
#[derive(Default)]
pub(crate) struct Reports(Mutex<PendingJob>);

#[derive(Default)]
struct PendingJob {
    result: String,
    messages: Vec<String>,
    phase: Option<String>,
    /// The last round: its number, the number of rounds, and its metrics.
    round: Option<(u32, u32, String)>,
    /// The exception that Python code raised, such as a generator of rows.
    raised: Option<PyErr>,
}

impl Reports {
    fn with<T>(&self, change: impl FnOnce(&mut PendingJob) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps an exception of Python code. It is raised instead of the error that the job ends with.
    pub(crate) fn raise(&self, error: PyErr) {
        self.with(|pending| {
            pending.raised.get_or_insert(error);
        });
    }

    /// Returns the result that a command printed.
    pub(crate) fn result(&self) -> String {
        self.with(|pending| std::mem::take(&mut pending.result))
    }

    /// Passes everything that is pending to Python: `report(kind, text, round, rounds)`.
    fn deliver(&self, py: Python<'_>, report: Option<&Py<PyAny>>) -> PyResult<()> {
        let (messages, phase, round) = self.with(|pending| {
            (std::mem::take(&mut pending.messages), pending.phase.take(), pending.round.take())
        });
        let warnings = warning::take();
        let Some(report) = report else { return Ok(()) };
        for text in warnings {
            report.call1(py, ("warning", text, 0, 0))?;
        }
        for text in messages {
            report.call1(py, ("message", text, 0, 0))?;
        }
        if let Some(name) = phase {
            report.call1(py, ("phase", name, 0, 0))?;
        }
        if let Some((round, rounds, values)) = round {
            report.call1(py, ("round", values, round, rounds))?;
        }
        Ok(())
    }
}

impl Console for Reports {
    fn result(&self, text: &str) {
        self.with(|pending| pending.result.push_str(text));
    }

    fn message(&self, text: &str) {
        self.with(|pending| pending.messages.push(text.to_owned()));
    }

    fn phase(&self, name: &str) {
        self.with(|pending| pending.phase = Some(name.to_owned()));
    }

    fn round(&self, round: u32, rounds: u32, values: &str) {
        self.with(|pending| pending.round = Some((round, rounds, values.to_owned())));
    }
}

/// Counts a job while it exists.
struct Running;

impl Running {
    fn begin() -> Self {
        if RUNNING.fetch_add(1, Ordering::SeqCst) == 0 {
            interrupt::forget();
        }
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if RUNNING.fetch_sub(1, Ordering::SeqCst) == 1 {
            interrupt::forget();
        }
    }
}

/// Runs `work` on a new thread and waits for its result. Threads end with the job, so a forked process inherits none.
/// A signal handler that raises an exception, such as Ctrl-C, stops the work.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    report: Option<&Py<PyAny>>,
    reports: &Arc<Reports>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    warning::collect();
    let _running = Running::begin();
    let (sender, receiver) = sync_channel(1);
    let cannot_start =
        |problem: String| Error::usage(format_args!("cannot start threads: {problem}"), "free some memory");
    let thread = std::thread::Builder::new().name("planetree-job".to_owned()).spawn(move || {
        // Everything runs in a pool of its own, because a forked process cannot use the pool of its parent.
        let outcome = ThreadPoolBuilder::new()
            .build()
            .map_err(|error| cannot_start(error.to_string()))
            .and_then(|pool| pool.install(work));
        let _ = sender.send(outcome); // the receiver waits for it
    });
    let thread = thread.map_err(|error| exception(py, &Error::io("planetree", "start a thread", error)))?;
    let receiver = Mutex::new(receiver);
    let mut stopped_by = None;
    let outcome = loop {
        let outcome = py.detach(|| wait(&receiver));
        let looked = reports.deliver(py, report).and_then(|()| py.check_signals());
        if let Err(error) = looked
            && stopped_by.is_none()
        {
            interrupt::stop();
            stopped_by = Some(error);
        }
        match outcome {
            Ok(outcome) => break outcome,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Err(Error::bug("job", "a thread ended early")),
        }
    };
    py.detach(|| thread.join().ok()); // a panic of the thread is reported as a bug
    let raised = reports.with(|pending| pending.raised.take());
    match (stopped_by.or(raised), outcome) {
        (Some(error), _) => Err(error),
        (None, outcome) => outcome.map_err(|error| exception(py, &error)),
    }
}

fn wait<T>(receiver: &Mutex<Receiver<Result<T>>>) -> Result<Result<T>, RecvTimeoutError> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(INTERVAL)
}
