//! The dataset table: a directory of Parquet files, whole queries per row group and per file, with
//! a manifest that names every file and the checksum of every byte of it.

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

pub use encode::{EncodedGroup, encode_group};
pub use features::FoundFeatures;
pub use group::{Grouper, Place, RowGroup};
pub use layout::{FeatureNames, Layout};
pub use manifest::{Categories, MANIFEST, Manifest, PartEntry, RepairCount, Source, Stretch};
pub use read::{DatasetReader, GroupId, GroupReader, verify_part};
pub use words::KnownFeature;
pub use write::{DatasetWriter, WriteOptions};
