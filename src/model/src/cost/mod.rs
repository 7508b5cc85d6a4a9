//! What it costs to score a document (Mohan 2010, chapter 6). A feature costs something when it is first computed, and
//! a tree costs 1 to evaluate.
//!
//! `table.rs` reads the costs of features from a file, `features.rs` assigns them to the features of a model or dataset,
//! `trees.rs` adds up the costs of a model, tree by tree, and `model.rs` finds the costs that a model records.

mod features;
mod model;
mod table;
mod trees;

pub use features::{FeatureCosts, PaidFeatures};
pub use model::ModelCosts;
pub use table::CostTable;
pub use trees::TreeCost;
pub use trees::TreeCosts;
pub(crate) use trees::ordered_trees;
