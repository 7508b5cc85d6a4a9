//! Reports the progress of long steps. The threads that do the work call a meter, which may update a progress
//! display. Meters never influence results.

use std::fmt::Debug;
use std::sync::Arc;

/// Receives the progress of a step from any thread.
pub trait Meter: Debug + Send + Sync {
    /// Starts the step, or starts it again from zero. `total` is the total amount of work, if known.
    fn begin(&self, total: Option<u64>);
    /// Adds `by` to the amount of completed work.
    fn advance(&self, by: u64);
}

/// A meter that several threads share.
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
