//! One tree: histograms of integers, best cuts, rows moved to their nodes.

mod carry;
mod cell;
mod centroids;
mod coded;
mod exact;
mod features;
mod finder;
mod frontier;
mod grow;
mod histogram;
mod holder;
mod kept;
mod rows;
mod sorted_cells;
mod split;
mod static_bins;
mod streaming;

pub use carry::{CarriedRoot, carrying_pays};
pub use cell::{Cell, Scale, Sums, round, whole};
pub use coded::{CodedTree, Cover, Router, split_of_model};
pub use exact::ExactSplits;
pub use features::FeatureChoice;
pub use finder::{Ground, OpenNode, SplitFinder};
pub use frontier::Order;
pub use grow::{GrownNode, GrownTree, TreeLimits, grow};
pub use histogram::{NodeHistogram, WantedNode, cells_of_group, feature_cells};
pub use holder::{HeldHere, Holder};
pub use kept::KeptHistograms;
pub use rows::{AT_A_TIME, NodeId, NodeSplit, RowSets};
pub use split::{FoundSplit, SplitRules};
pub use static_bins::StaticBins;
pub use streaming::{StreamingRules, StreamingSplits};

#[cfg(test)]
mod tests;
