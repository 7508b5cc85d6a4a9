//! Explains scores: exact Shapley values of the features for trees (path-dependent TreeSHAP values) and linear functions,
//! and integrated gradients for nets.
//!
//! ```text
//! score = expected value + sum of the features' contributions
//! ```
//!
//! Vocabulary:
//!
//! - a *coalition* is a subset of the features. Its value is the expected score of a row of which only these features
//!   are known: at a split on any other feature, the branches are averaged, weighted by the fraction of the training
//!   rows that took each branch (computed from the `cover` of the nodes). This is the game of Lundberg et al.,
//!   "Consistent individualized feature attribution for tree ensembles" (2018), and "From local explanations to global
//!   understanding with explainable AI for trees" (2020), algorithm 1;
//! - a feature's *contribution* is its Shapley value in that game: the change of the coalition's value when the
//!   feature becomes known, averaged over all orders in which features may become known;
//! - an *edge* leads from a node to one of its children. A row *follows* the edge if it takes this branch. The *share*
//!   of the edge is the fraction of the node's training rows that followed it.
//!
//! `explainer.rs` explains rows, part by part: `trees.rs` explains trees, `linear.rs` linear functions and `net.rs` nets.
//! `layout.rs` documents the method for trees and prepares them, and `quadrature.rs` computes the points of the numerical
//! integration. `stream.rs` explains a dataset, and `difference.rs` compares two rows.

mod difference;
mod explainer;
mod layout;
mod linear;
mod net;
mod quadrature;
mod stream;
mod trees;

pub use difference::ContributionDifference;
pub use difference::differences;
pub use explainer::Explainer;
pub use stream::explain;
pub use stream::{ExplainReport, ExplainedRows};

#[cfg(test)]
mod tests;
