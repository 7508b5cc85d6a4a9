//! Nets: feed-forward neural nets on normalised features, trained on the gradients of any objective.
//!
//! - An *epoch* is a round: every query is used once. Queries are shuffled and divided into *batches*, after each of which
//!   the weights change.
//! - A *restart* is a net with initial weights and shuffles of its own. All restarts are trained side by side.
//!
//! `prepare.rs` reads the rows and creates the learner, `start.rs` draws initial weights and batches, `training.rs` trains a
//! net for an epoch with the steps of `optimiser.rs`, and `learner.rs` connects nets to the training driver. `jobs.rs` has
//! the sums over rows, which `query.rs` computes for one query: forward, gradients of the scores, backward.
//!
//! The gradient of a query is summed in the order of its rows, and queries are added in fixed point. So the weights depend
//! neither on threads and partitions nor on the processes that hold the rows.

#[cfg(test)]
mod driver_tests;
mod jobs;
mod learner;
mod optimiser;
mod prepare;
mod query;
mod start;
#[cfg(test)]
mod tests;
mod training;

pub use jobs::{NetGradients, NetMeans, NetMetrics, NetTarget, NetTotals};
