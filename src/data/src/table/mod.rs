//! Single Parquet files of ours: models, predictions, rounds, metrics, differences. Each carries the
//! checksum of all its bytes in its own footer, and says there what it is. Those of rows can be written as text, too
//! (`text.rs`), which carries neither.

mod bytes;
mod column;
mod footer;
mod groups;
mod kind;
pub mod provenance;
mod read;
mod text;
mod write;

pub use bytes::{FileStretch, guarded, write_failure};
pub use column::{numbers, texts};
pub use groups::{GroupBatches, ParquetFile};
pub use kind::TableKind;
pub use read::{AnyParquet, TableReader};
pub use text::TextRows;
pub use write::TableWriter;

#[cfg(test)]
mod tests;
