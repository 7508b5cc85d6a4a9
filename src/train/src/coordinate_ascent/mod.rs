//! Coordinate Ascent (Metzler & Croft 2007): line searches of one weight at a time, on the metric itself.
//!
//! A round is a *restart*: it begins with equal weights and *sweeps* over all features in random order until a sweep gains
//! less than the tolerance. A line search evaluates all its steps in one scan of the rows (`scan.rs`, `jobs.rs`). After a
//! gain, weights are divided by the sum of their absolute values. `search.rs` is a restart, and `learner.rs` keeps the best
//! one.

mod jobs;
mod learner;
mod scan;
mod search;
#[cfg(test)]
mod tests;

pub use jobs::{CoordinateScan, RankWeights};
pub use jobs::{RankedTotals, ScanTotals};
