//! Ctrl-C and `kill`: work stops at the next safe point and cleans up behind itself.

use super::border;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Starts to listen for SIGINT and SIGTERM. The first asks for an orderly end, a second one ends
/// the process at once.
pub fn listen() {
    border::start(async {
        loop {
            if next_signal().await.is_err() {
                return;
            }
            if REQUESTED.swap(true, Ordering::SeqCst) {
                std::process::exit(1);
            }
        }
    });
}

#[cfg(unix)]
async fn next_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn next_signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Whether the user asked to stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// An error if the user asked to stop; call it between steps that may each run to their end.
pub fn check() -> Result<()> {
    if requested() { Err(Error::Interrupted) } else { Ok(()) }
}
