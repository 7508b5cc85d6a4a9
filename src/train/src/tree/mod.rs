//! Grows one tree, using integer histograms, split search and row partitioning.

mod carry;
mod cell;
mod centroids;
mod code_sums;
mod coded;
mod exact;
mod features;
mod finder;
mod frontier;
mod grow;
mod histogram;
mod kept;
mod row_store;
mod rows;
mod sorted_cells;
mod split;
mod static_bins;
mod streaming;
mod streaming_cuts;
mod streaming_values;
mod streaming_worker;
mod workers;

pub use carry::{CarriedRoot, carrying_pays};
pub use cell::{Cell, GradientSums, Scale, round, whole};
pub use coded::{CodedRouter, CodedTree, Cover, split_of_model};
pub use exact::ExactSplits;
pub use features::FeatureChoice;
pub use finder::{GrowContext, OpenNode, SplitFinder};
pub use frontier::Order;
pub use grow::{GrownNode, GrownTree, TreeLimits, grow};
pub use histogram::{NodeHistogram, WantedNode, cells_of_group, feature_cells};
pub use kept::KeptHistograms;
pub use row_store::{LocalRows, RowStore};
pub use rows::{AT_A_TIME, NodeId, NodeSplit, RowSets};
pub use split::{Divisor, FoundSplit, LeafRule, SplitRules};
pub use static_bins::StaticBins;
pub use streaming::{StreamingRules, StreamingSplits};
pub use streaming_cuts::NodePart;
pub use streaming_worker::{NodeHistograms, WorkerHistogram, WorkerRows, merge_histograms};
pub use workers::{MergeTree, WorkerBounds, WorkerPiece};

#[cfg(test)]
mod tests;
