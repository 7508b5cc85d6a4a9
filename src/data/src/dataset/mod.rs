//! Writes and reads datasets. A dataset is a directory of Parquet files, in which no query spans two row groups or
//! files. Its manifest lists the files and the checksums of all their bytes.

mod encode;
mod features;
mod fingerprint;
mod float_chunk;
mod group;
mod layout;
mod manifest;
mod part;
mod read;
mod words;
mod write;

pub(crate) use encode::{EncodedGroup, encode_group};
pub use features::{FeatureMapping, first_few};
pub(crate) use group::{Grouper, InputLine, RowGroup};
pub use layout::FeatureNames;
pub(crate) use layout::Layout;
pub use manifest::ChecksummedRange;
pub use manifest::{Categories, MANIFEST, Manifest};
pub(crate) use manifest::{ManifestSource, PartEntry, RepairCount};
pub use read::{DatasetReader, GroupId, GroupReader, unexpected_columns, verify_part};
pub use words::KnownFeature;
pub(crate) use write::{DatasetWriter, WriteOptions};
