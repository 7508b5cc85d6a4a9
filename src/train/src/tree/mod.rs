//! Grows one tree, using integer histograms, split search and row partitioning.

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
mod kept;
mod row_store;
mod rows;
mod sorted_cells;
mod split;
mod static_bins;
mod streaming;
mod streaming_worker;

pub(crate) use carry::{CarriedRoot, carrying_pays};
pub use cell::Cell;
pub(crate) use cell::{GradientSums, Scale, round, whole};
pub(crate) use coded::split_of_model;
pub use coded::{CodedTree, Cover};
pub(crate) use exact::ExactSplits;
pub(crate) use features::FeatureChoice;
pub(crate) use finder::SplitFinder;
pub use finder::{GrowContext, OpenNode};
pub(crate) use frontier::Order;
#[cfg(test)]
pub(crate) use grow::GrownNode;
pub(crate) use grow::{TreeLimits, grow};
pub use histogram::{NodeHistogram, WantedNode, cells_of_group, feature_cells};
pub(crate) use kept::KeptHistograms;
pub(crate) use row_store::LocalRows;
pub use row_store::RowStore;
pub use rows::{AT_A_TIME, NodeId, NodeSplit, RowSets};
pub use split::FoundSplit;
pub(crate) use split::SplitRules;
pub(crate) use static_bins::StaticBins;
pub use streaming::{StreamingRules, StreamingSplits};
pub use streaming_worker::{NodeHistograms, WorkerHistogram, WorkerRows, worker_partitions};

#[cfg(test)]
mod tests;
