//! Tables that are single Parquet files: models, predictions, rounds, metrics, differences and others. Each
//! has a checksum over all its bytes and its kind in the metadata of its footer. Tables of results can also
//! be written as text (`text.rs`), which has neither.

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

pub use bytes::{FileSlice, guarded, write_failure};
pub use column::{float_column, string_column};
pub use groups::{GroupBatches, ParquetFile};
pub use kind::TableKind;
pub use read::{AnyParquet, TableReader};
pub use stream::{batches_from_bytes, batches_to_bytes};
pub use text::TextRows;
pub use write::TableWriter;

#[cfg(test)]
mod tests;
