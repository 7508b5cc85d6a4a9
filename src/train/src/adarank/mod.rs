//! AdaRank (Xu & Li 2007): boosting of features. Every round adds the feature that is best on the queries that are ranked
//! badly so far.
//!
//! ```text
//! P(q) proportional to exp(-E(q)), where E(q) is the metric of query q ranked by the ensemble
//! feature = the one with the greatest sum over the queries of P(q) * E(q, feature)
//! weight  = 1/2 ln(sum of P(q) (1 + E(q, feature)) / sum of P(q) (1 - E(q, feature)))
//! ```
//!
//! Where the order of rows would break ties, E is the mean over all orders of the tied documents.
//!
//! The metric of every query ranked by every single feature does not change, so it is computed once. A round is then a
//! ranking by the ensemble and weighted sums (`jobs.rs`). `boosting.rs` selects features, and `learner.rs` connects them to
//! the training driver.

mod boosting;
mod jobs;
mod learner;
#[cfg(test)]
mod tests;

pub use jobs::AdaRankSums;
pub use jobs::AdaRankTotals;
