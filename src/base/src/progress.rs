//! How far a long step is: what does the work tells a meter, and whoever watches looks at it. Nothing
//! depends on it.

use std::fmt::Debug;
use std::sync::Arc;

/// Told by any thread how far a step is.
pub trait Meter: Debug + Send + Sync {
    /// The step begins, perhaps again; this is how much there is to do, where that is known.
    fn begin(&self, total: Option<u64>);
    /// So much more is done.
    fn advance(&self, by: u64);
}

/// A meter that many hold.
pub type SharedMeter = Arc<dyn Meter>;

/// Nobody looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwatched;

impl Meter for Unwatched {
    fn begin(&self, _total: Option<u64>) {}
    fn advance(&self, _by: u64) {}
}

/// A meter that nobody looks at.
pub fn unwatched() -> SharedMeter {
    Arc::new(Unwatched)
}
