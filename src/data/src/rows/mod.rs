//! Rows in memory, between the decoders that fill them and the dataset that writes them.
//!
//! `block.rs` holds the rows of one chunk as columns, `builder.rs` collects rows and transposes them, `fault.rs` is the
//! table of everything that can be wrong with a row.

mod block;
mod builder;
pub mod fault;

pub use block::{Block, Column, Columns, Entry, Present, QueryRun, Rows, Strings};
pub use builder::BlockBuilder;
