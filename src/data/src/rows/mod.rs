//! Holds rows in memory between decoding and writing.
//!
//! `block.rs` defines the columnar form of the rows of one chunk. `builder.rs` collects rows and transposes them.
//! `fault.rs` lists all faults that a row can have.

mod block;
mod builder;
pub mod fault;

pub use block::Block;
pub(crate) use block::{FeatureColumn, PresentRows, QueryRun, RowMajorBlock};
pub use builder::BlockBuilder;
