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

pub(crate) use carry::{CarriedRoot, carrying_pays};
pub use cell::{Cell, GradientSums, Scale, round, whole};
pub use coded::CodedRouter;
pub(crate) use coded::split_of_model;
pub use coded::{CodedTree, Cover};
pub(crate) use exact::{ExactSplits, LocalSums};
pub use exact::{GroupNodes, ValueList};
pub(crate) use features::FeatureChoice;
pub(crate) use finder::SplitFinder;
pub use finder::{GrowContext, OpenNode};
pub use frontier::Order;
pub(crate) use grow::TreeLimits;
pub use grow::grow;
pub use grow::{GrownNode, GrownTree};
pub use histogram::{NodeHistogram, WantedNode, cells_of_group, feature_cells};
pub(crate) use kept::KeptHistograms;
pub(crate) use row_store::LocalRows;
pub use row_store::RowStore;
pub use rows::{AT_A_TIME, NodeId, NodeSplit, RowSets};
pub use split::FoundSplit;
pub(crate) use split::{Divisor, LeafRule, SplitRules};
pub(crate) use static_bins::StaticBins;
pub use streaming::StreamingRules;
pub(crate) use streaming::StreamingSplits;
pub use streaming_cuts::NodePart;
pub use streaming_worker::NodeHistograms;
pub use streaming_worker::WorkerHistogram;
pub(crate) use streaming_worker::{WorkerRows, merge_histograms};
pub use workers::WorkerBounds;
pub(crate) use workers::{MergeTree, WorkerPiece};

#[cfg(test)]
mod tests;
