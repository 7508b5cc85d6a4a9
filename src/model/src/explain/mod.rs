//! Why does a row have its score? Exact Shapley values of its features (path-dependent TreeSHAP).
//!
//! ```text
//! score = expected value + the sum of the features' contributions
//! ```
//!
//! Vocabulary:
//!
//! - a *coalition* is some of the features; its worth is what the model expects of a row of which only
//!   these are known: at a split on any other feature the row goes all ways, by the share of the
//!   training rows that did (the nodes' cover). This is the game of Lundberg et al., "Consistent
//!   individualized feature attribution for tree ensembles" (2018), and "From local explanations to
//!   global understanding with explainable AI for trees" (2020), algorithm 1;
//! - a feature's *contribution* is its Shapley value in that game: the mean, over all orders in which
//!   the features may become known, of what knowing it adds;
//! - an *edge* is the way from a node to one of its children. A row *follows* it or does not; its
//!   *share* is the part of the training rows that did.
//!
//! How it is computed is told in `layout.rs`. `quadrature.rs` has the points, `explainer.rs` the loop
//! over rows, `stream.rs` goes through a dataset, `difference.rs` compares two rows.

mod difference;
mod explainer;
mod layout;
mod quadrature;
mod stream;

pub use difference::{Difference, differences};
pub use explainer::Explainer;
pub use stream::{ExplainReport, ExplainedRows, explain};

#[cfg(test)]
mod tests;
