//! Decision trees: boosted trees, forests and pairwise forests.
//!
//! `ensemble.rs` implements the family. `tree.rs` defines a tree, `check.rs` validates it, and `rows.rs` converts it to
//! rows of the model table. For scoring, `planes.rs` encodes a block of values as bytes, and `layout.rs` turns trees
//! into tests on these bytes. `dense.rs` (trees of up to 256 leaves) and `walk.rs` (larger trees) are the two kernels for
//! blocks, `single.rs` is the one for few rows, `scorer.rs` combines them, and `wins.rs` computes scores of pairwise models.
//! `by_query.rs` normalises features over the documents of a query.

mod by_query;
mod check;
mod dense;
mod ensemble;
mod layout;
mod planes;
mod rows;
mod scorer;
mod single;
mod tree;
mod walk;
mod wins;

pub(crate) use by_query::QueryNormaliser;
pub(crate) use ensemble::KIND;
pub use ensemble::{Combine, TreeEnsemble};
pub use planes::BLOCK;
pub(crate) use planes::Plane;
pub(crate) use rows::tree_rows;
pub(crate) use scorer::TreeScorer;
pub use tree::{Branch, Node, Split, Tree};
pub use wins::win_rates;
