//! Random forests.

mod features;
pub mod listwise;
mod tree;

pub use features::{Drawn, Path, TreeFeatures};
pub use tree::{GrownNode, GrownSplit, GrownTree};
