//! Binning: features become small integers. Summaries of partitions are merged, bins are chosen, values are encoded.
//!
//! Vocabulary: a *partition* is a row group of the dataset (or of one of several); a *bin* is an interval of values; a
//! *code* is the number of a bin, or represents a missing value; a *group* is a set of features that the histogram loop
//! processes together.

mod cache;
mod cuts;
mod layout;
mod load;
mod pairs;
mod partition;
mod summary;
mod survey;

pub use cache::DescribedBins;
pub use cache::{BinCache, CacheKey, CacheWriter};
pub use cuts::{FeatureBins, middle};
pub use layout::{
    BLOCKS, BinLayout, FeaturePlace, Group, GroupKind, JOINT_CODES, JOINT_LANES, LANES, STRIDE,
};
#[cfg(test)]
pub use load::mixed_columns;
pub use load::{BinOptions, BinnedData, Binning, read_rows};
pub use partition::{Codes, FeatureCodes, GroupCodes};
pub use summary::{SAMPLED_ROWS, ValueDistribution};
pub use survey::{Surveyed, survey};
