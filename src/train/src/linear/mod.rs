//! Linear models: weighted sums of normalised features.
//!
//! `prepare.rs` finds the ranges, means and deviations of the features and creates the learner, and `learner.rs` connects
//! it to the training driver. `newton.rs` minimises the loss, whose derivatives are sums over the rows (`rows.rs`,
//! `loss.rs`, `rank.rs`); `solve.rs` solves the equations of a step. `plan.rs` describes how features are standardised, `sums.rs`
//! has sums that do not depend on the order of addition. `jobs.rs` defines the sums as jobs, and `runner.rs` runs them in
//! this process or on a cluster.

mod jobs;
mod learner;
mod loss;
mod newton;
mod plan;
mod prepare;
mod rank;
mod rows;
mod runner;
mod solve;
mod sums;
#[cfg(test)]
mod tests;

pub use jobs::{FeatureRanges, LinearMoments, LinearRanges, LinearSums, LinearTotals};
pub use plan::{LinearPoint, PlannedFeature, StandardPlan};
pub use rows::{FeatureRange, LinearRows, PointSums};
pub use sums::{FixedSums, SumScale};
