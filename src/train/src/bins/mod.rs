//! Features as small whole numbers: summaries of partitions merge, cuts follow, values become codes.
//!
//! Vocabulary: a *partition* is a row group of the dataset (or of one of several); a *bin* is a stretch of neighbouring
//! values; a *code* is a bin's number, or stands for missing; a *group* is some features that the
//! inner loop treats together.

mod cache;
mod cuts;
mod layout;
mod load;
mod pairs;
mod partition;
mod share;
mod summary;

pub use cache::DescribedBins;
pub use cache::{BinCache, CacheKey, CacheWriter};
pub use cuts::{FeatureBins, middle};
pub use layout::{BLOCKS, Group, GroupKind, JOINT_CODES, JOINT_LANES, LANES, Layout, Place, STRIDE};
#[cfg(test)]
pub use load::mixed_columns;
pub use load::{BinOptions, BinnedData, Binning, read_rows};
pub use partition::{Codes, Column, GroupCodes};
pub use share::{Surveyed, survey};
pub use summary::{SAMPLED_ROWS, Summary};
