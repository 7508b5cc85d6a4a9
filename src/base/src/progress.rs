//! Progress of long steps: workers report to a meter, which a display may show. No result depends on
//! it.

use std::fmt::Debug;
use std::sync::Arc;

/// Receives the progress of a step from any thread.
pub trait Meter: Debug + Send + Sync {
    /// Starts or restarts the step, with the total amount of work if known.
    fn begin(&self, total: Option<u64>);
    /// Adds completed work.
    fn advance(&self, by: u64);
}

/// A shared meter.
pub type SharedMeter = Arc<dyn Meter>;

/// A meter that ignores all reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwatched;

impl Meter for Unwatched {
    fn begin(&self, _total: Option<u64>) {}
    fn advance(&self, _by: u64) {}
}

/// Returns an [`Unwatched`] meter.
pub fn unwatched() -> SharedMeter {
    Arc::new(Unwatched)
}
