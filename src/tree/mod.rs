//! One tree: histograms of integers, best cuts, rows moved to their nodes.

mod cell;
mod coded;
mod features;
mod finder;
mod frontier;
mod grow;
mod histogram;
mod rows;
mod split;
mod static_bins;

pub use cell::{Cell, Scale, Sums, round};
pub use coded::{CodedTree, Router};
pub use features::FeatureChoice;
pub use finder::{Ground, SplitFinder};
pub use frontier::Order;
pub use grow::{GrownNode, GrownTree, TreeLimits, grow};
pub use rows::{NodeId, RowSets};
pub use split::{FoundSplit, SplitRules};
pub use static_bins::StaticBins;
