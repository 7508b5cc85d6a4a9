//! Linear models: weighted sums of normalised features.
//!
//! `prepare.rs` finds the ranges, means and deviations of the features and creates the learner, and `learner.rs` connects
//! it to the training driver. `newton.rs` minimises the loss, whose derivatives are sums over the rows (`rows.rs`,
//! `loss.rs`, `rank.rs`). `plan.rs` describes how features are standardised, `sums.rs`
//! has sums that do not depend on the order of addition. `jobs.rs` defines the sums as jobs, and `runner.rs` runs them in
//! this process or on a cluster. `ranking.rs` ranks queries by linear functions, for learners that optimise a metric, and
//! `validation.rs` scores validation sets.

mod descent;
mod jobs;
mod learner;
mod loss;
mod newton;
mod plan;
mod prepare;
mod rank;
mod ranker;
#[cfg(test)]
pub(crate) mod ranker_fixtures;
mod ranking;
mod rows;
mod runner;
mod sums;
#[cfg(test)]
mod tests;
mod validation;

pub use jobs::{FeatureRanges, LinearTotals};
pub use jobs::{LinearMoments, LinearOffset, LinearRanges, LinearSums};
pub(crate) use jobs::{LinearSnapshot, ShareMeans};
pub(crate) use jobs::{linear_job, read_rows};
pub(crate) use learner::{LinearAlgorithm, LinearLearner};
pub use plan::{LinearPoint, PlannedFeature, StandardPlan};
pub(crate) use prepare::{jobs, plan};
pub(crate) use ranker::{RANKING_BYTES_PER_ROW, RankerKind, RankingProblem, problem, undefined};
pub(crate) use ranking::RankedDocuments;
pub(crate) use ranking::{QueryPlace, RankingRows, RankingTarget};
pub(crate) use rows::LinearRows;
pub use rows::{FeatureRange, PointSums};
pub(crate) use sums::FixedSums;
pub use sums::SumScale;
