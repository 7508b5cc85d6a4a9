//! Ctrl-C and termination signals: work stops at the next safe point and cleans up.

use super::border;
use crate::error::{Error, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static ORDERLY: AtomicBool = AtomicBool::new(false);
static ABORT: OnceLock<Abort> = OnceLock::new();

/// Ends the process at once. The argument says why, if the user has not been told that the work stops.
pub type Abort = fn(Option<Error>);

/// Installs handlers for SIGINT, SIGTERM and SIGHUP. After [`be_orderly`], the first signal requests a
/// graceful stop and a second one calls `abort`; before that, the first one does.
pub fn listen(abort: Abort) {
    let _ = ABORT.set(abort); // the first caller decides
    border::start(async {
        loop {
            if next_signal().await.is_err() {
                return;
            }
            request();
        }
    });
}

/// Requests a stop when standard input closes: a step of a pipeline ends with its parent process, even
/// if that was killed, or when the parent closes the pipe.
pub fn listen_to_input() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink()); // an error also means that it closed
        request();
    });
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

/// Makes interrupts graceful from here on: there is something to clean up, and the work calls
/// [`check`] often enough.
pub fn be_orderly() {
    ORDERLY.store(true, Ordering::SeqCst);
}

/// Ends graceful handling and clears a pending request, as when a shell waits for the next line.
pub fn forget() {
    REQUESTED.store(false, Ordering::SeqCst);
    ORDERLY.store(false, Ordering::SeqCst);
}

/// Whether a stop was requested.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Fails if a stop was requested. Call it between units of work that may each run to completion.
pub fn check() -> Result<()> {
    if requested() { Err(Error::Interrupted) } else { Ok(()) }
}
