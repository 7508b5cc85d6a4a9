//! Handles Ctrl-C and termination signals. When such a signal arrives, the running work stops at the next safe point
//! and cleans up.

use super::border;
use crate::error::{Error, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static ORDERLY: AtomicBool = AtomicBool::new(false);
static ABORT: OnceLock<Abort> = OnceLock::new();

/// A function that ends the process immediately. Its argument is the error to report to the user, if any.
pub type Abort = fn(Option<Error>);

/// Installs handlers for SIGINT, SIGTERM and SIGHUP. Before [`be_orderly`] has been called, the first signal calls
/// `abort`. Afterwards, the first signal requests a graceful stop, and the second one calls `abort`.
pub fn listen(abort: Abort) {
    let _ = ABORT.set(abort); // only the first call sets the function
    border::start(async {
        loop {
            if next_signal().await.is_err() {
                return;
            }
            request();
        }
    });
}

/// Requests a stop when standard input is closed. A process that runs one step of a pipeline thus ends when its
/// parent process closes the pipe, exits or is killed.
pub fn listen_to_input() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink()); // an error also means that input is closed
        request();
    });
}

/// Requests a graceful stop of all work in the process. It is for programs that call planetree as a library and handle
/// signals themselves. [`forget`] clears the request.
pub fn stop() {
    REQUESTED.store(true, Ordering::SeqCst);
}

fn request() {
    let again = REQUESTED.swap(true, Ordering::SeqCst);
    if !ORDERLY.load(Ordering::SeqCst) {
        abort(Some(Error::Interrupted));
    } else if again {
        abort(None);
    }
}

fn abort(error: Option<Error>) {
    if let Some(abort) = ABORT.get() {
        abort(error);
    }
}

#[cfg(unix)]
async fn next_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hang_up = signal(SignalKind::hangup())?;
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn next_signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Makes interrupts graceful from now on. Call it when there is something to clean up and the work calls [`check`]
/// frequently.
pub fn be_orderly() {
    ORDERLY.store(true, Ordering::SeqCst);
}

/// Ends graceful handling and clears a pending stop request, for example when the SQL shell waits for the next line.
pub fn forget() {
    REQUESTED.store(false, Ordering::SeqCst);
    ORDERLY.store(false, Ordering::SeqCst);
}

/// Checks whether a stop was requested.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Fails if a stop was requested. Call it between units of work that are too short to need interruption themselves.
pub fn check() -> Result<()> {
    if requested() { Err(Error::Interrupted) } else { Ok(()) }
}
