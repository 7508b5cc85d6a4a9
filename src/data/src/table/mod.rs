//! Single Parquet files of ours: models, predictions, rounds, metrics, differences. Each carries the
//! checksum of all its bytes in its own footer, and says there what it is.

mod bytes;
mod column;
mod footer;
mod groups;
mod kind;
pub mod provenance;
mod read;
mod write;

pub use bytes::{FileStretch, guarded, write_failure};
pub use column::{numbers, texts};
pub use groups::{GroupBatches, ParquetFile};
pub use kind::TableKind;
pub use read::{AnyParquet, TableReader};
pub use write::TableWriter;

#[cfg(test)]
mod tests;
