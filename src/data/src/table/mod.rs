//! Reads and writes tables that are single Parquet files: models, predictions, rounds, metrics, differences and
//! others. The metadata of a table contains its kind and a checksum of all its bytes. Some kinds of tables can also
//! be written as text (`text.rs`), which has no metadata.

mod bytes;
mod column;
mod footer;
mod groups;
mod kind;
pub mod provenance;
mod read;
mod stream;
mod text;
mod write;

pub(crate) use bytes::write_failure;
pub(crate) use bytes::{FileSlice, guarded};
pub use column::{float_column, split_column, string_column};
pub use groups::{GroupBatches, ParquetFile};
pub use kind::TableKind;
pub use read::{AnyParquet, TableReader};
pub use stream::{batches_from_bytes, batches_to_bytes};
pub use text::TextRows;
pub use write::TableWriter;

#[cfg(test)]
mod tests;
