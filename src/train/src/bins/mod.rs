//! Binning replaces feature values with small integers in three steps: it merges summaries of all partitions, chooses
//! the bins of each feature, and encodes the values.
//!
//! Vocabulary: a *partition* is a row group of a training dataset; a *bin* is an interval of values; a *code* is the
//! index of a bin, or an extra number for missing values; a *group* is a set of features that the histogram loop
//! processes together.

mod binning;
mod by_query;
mod cache;
mod cuts;
mod layout;
mod load;
mod missing;
mod pairs;
mod partition;
mod summary;
mod survey;
#[cfg(test)]
mod tests;

pub use binning::{BinOptions, Binning};
pub(crate) use cache::DescribedBins;
pub(crate) use cache::{BinCache, CacheKey, CacheWriter};
pub use cuts::{FeatureBins, middle};
pub(crate) use layout::{
    BLOCKS, BinLayout, FeaturePlace, Group, GroupKind, JOINT_CODES, JOINT_LANES, LANES, STRIDE,
};
#[cfg(test)]
pub(crate) use load::mixed_columns;
pub use load::{BinnedData, read_rows};
pub use missing::MissingBranch;
pub(crate) use missing::MissingSides;
pub(crate) use partition::{Codes, FeatureCodes, GroupCodes};
pub use summary::SAMPLED_ROWS;
pub(crate) use survey::{Surveyed, rows_of, survey};
