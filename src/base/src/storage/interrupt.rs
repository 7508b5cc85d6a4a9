//! Ctrl-C and `kill`: work stops at the next safe point and cleans up behind itself.

use super::border;
use crate::error::{Error, Result};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static ORDERLY: AtomicBool = AtomicBool::new(false);

/// Starts to listen for SIGINT, SIGTERM and SIGHUP. While there is something to clean up, the first
/// asks for an orderly end and a second one ends the process at once; before that, the first does.
pub fn listen() {
    border::start(async {
        loop {
            if next_signal().await.is_err() {
                return;
            }
            request();
        }
    });
}

/// Asks to stop as soon as standard input ends: a step of a pipeline ends with the process that started
/// it, even if that was killed, and when that closes the other end.
pub fn listen_to_input() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink()); // broken is ended, too
        request();
    });
}

fn request() {
    let again = REQUESTED.swap(true, Ordering::SeqCst);
    if !ORDERLY.load(Ordering::SeqCst) {
        let _ = writeln!(std::io::stderr(), "error: {}", Error::Interrupted);
        std::process::exit(1);
    }
    if again {
        std::process::exit(1);
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

/// Says that from here on an interrupt must be orderly: there is something to clean up, and the work
/// asks [`check`] often enough.
pub fn be_orderly() {
    ORDERLY.store(true, Ordering::SeqCst);
}

/// Says that the work is over that had to end orderly, stopped or not: a shell waits for the next line.
pub fn forget() {
    REQUESTED.store(false, Ordering::SeqCst);
    ORDERLY.store(false, Ordering::SeqCst);
}

/// Whether the user asked to stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// An error if the user asked to stop; call it between steps that may each run to their end.
pub fn check() -> Result<()> {
    if requested() { Err(Error::Interrupted) } else { Ok(()) }
}
