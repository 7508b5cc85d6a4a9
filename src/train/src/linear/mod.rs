//! Linear models: weighted sums of normalised features.
//!
//! `prepare.rs` finds the ranges, means and deviations of the features and creates the learner, and `learner.rs` connects
//! it to the training driver. `newton.rs` minimises the loss, whose derivatives are sums over the rows (`rows.rs`,
//! `loss.rs`). `plan.rs` describes how features are standardised, `sums.rs` has sums that do not depend on the order of
//! addition, and `row_objective.rs` has the gradients of any objective. `jobs.rs` defines the sums as jobs, and
//! `runner.rs` runs them in this process or on a cluster. `products.rs` multiplies features by vectors, `weights.rs` sets
//! the weights of rows, and `kept.rs` keeps results between jobs. `ranking.rs` ranks queries by linear functions, for
//! learners that optimise a metric, and `validation.rs` scores validation sets.

mod descent;
mod jobs;
mod kept;
mod learner;
mod loss;
mod newton;
mod plan;
mod prepare;
mod products;
mod ranker;
#[cfg(test)]
pub(crate) mod ranker_fixtures;
mod ranking;
mod row_objective;
mod rows;
mod runner;
mod sums;
#[cfg(test)]
mod tests;
mod validation;
mod weights;

pub(crate) use descent::costs_tried;
pub(crate) use jobs::LinearSnapshot;
pub use jobs::{FeatureRanges, LinearTotals};
pub use jobs::{LinearDifference, LinearMoments, LinearOffset, LinearRanges, LinearSums};
pub(crate) use jobs::{linear_job, read_rows};
pub(crate) use learner::{LinearAlgorithm, LinearLearner};
pub use plan::{LinearPoint, PlannedFeature, StandardPlan};
pub(crate) use prepare::{BYTES_PER_ROW, LinearInput, PreparedRows, overflow, prepare, query_bytes};
pub(crate) use products::QueryFeatures;
pub(crate) use ranker::{MetricAlgorithm, RankingProblem, undefined};
pub(crate) use ranking::RankedDocuments;
pub(crate) use ranking::{QueryPlace, RankingRows, RankingTarget};
pub(crate) use row_objective::{GradientBuffers, RowObjective, ScoredQuery};
pub use rows::{FeatureRange, PointSums};
pub(crate) use rows::{LANES, LinearRows, QueryRows, dot, query_weight};
pub(crate) use runner::LinearJobs;
pub(crate) use sums::FixedSums;
pub use sums::SumScale;
pub(crate) use validation::LinearValidation;
pub use weights::RowWeights;
