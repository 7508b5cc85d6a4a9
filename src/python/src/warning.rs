//! Collects the warnings of the library, which the calling thread passes to Python.

use std::io::Write;
use std::sync::{Mutex, Once, PoisonError};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Starts to collect warnings. The `planetree` command does not call it, because it prints its own.
pub(crate) fn collect() {
    static START: Once = Once::new();
    START.call_once(|| {
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(|| WarningLines)
            .with_target(false)
            .with_level(false)
            .without_time()
            .with_ansi(false);
        let ours = Targets::new().with_target("planetree", Level::WARN);
        let _ = tracing_subscriber::registry().with(lines).with(ours).try_init(); // fails if the host collects them
    });
}

/// Returns the warnings since the previous call.
pub(crate) fn take() -> Vec<String> {
    let bytes = std::mem::take(&mut *LINES.lock().unwrap_or_else(PoisonError::into_inner));
    String::from_utf8_lossy(&bytes).lines().map(|line| line.trim().to_owned()).collect()
}

/// Writes to the collected lines.
struct WarningLines;

impl Write for WarningLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
