//! Rows in memory, between the decoders that produce them and the dataset writer.
//!
//! `block.rs` holds the rows of one chunk in columnar form, `builder.rs` collects rows and transposes them,
//! `fault.rs` is the table of all faults that a row can have.

mod block;
mod builder;
pub mod fault;

pub use block::{
    Block, FeatureColumn, FeatureColumns, NullableStrings, PresentRows, QueryRun, RowMajorBlock, SparseEntry,
};
pub use builder::BlockBuilder;
