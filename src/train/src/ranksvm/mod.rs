//! RankSVM in the primal (Chapelle & Keerthi 2010): a linear function that ranks the documents of a query by a margin. It
//! minimises
//!
//! ```text
//! lambda / 2 * sum over the features of weight²
//!   + 1/2 * sum over the pairs of documents i, j of a query with label i > label j of max(0, 1 - (score i - score j))²
//! ```
//!
//! by truncated Newton steps (`newton.rs`): conjugate gradients find a direction from products of the hessian with vectors,
//! and an exact line search finds the length. Neither pairs nor the hessian are ever listed: `active_pairs.rs` has the
//! sums over the pairs of a query, `point.rs` multiplies them by the features, and `jobs.rs` adds them up over all
//! queries. `learner.rs` connects RankSVM to the training driver: a round is a value of `svm_c`.

mod active_pairs;
mod jobs;
mod learner;
mod newton;
mod point;
#[cfg(test)]
mod tests;

pub use jobs::{PairLine, PairProduct, PairSums};
pub use jobs::{PairPlan, PairTotals};
