//! planetree trains learning-to-rank tree ensembles as MapReduce over Parquet.
//!
//! ```text
//! text, CSV, Parquet ──convert──► dataset (Parquet, whole queries per row group and file)
//!                                    │
//!                                    └──describe──► what is in it, what to look at
//! ```
//!
//! Vocabulary, in the order of the flow:
//!
//! - an *input* is a file, object or stream as the user named it; a *chunk* is some whole lines of it;
//! - a *block* is the rows of one chunk, features turned into columns; an *entry* is one value that
//!   is present; a *run* is a stretch of rows of one query;
//! - a *row group* is whole queries, ready to be encoded; a *part* is one Parquet file of a dataset;
//! - the *manifest* names the parts and the checksum of every stretch of their bytes;
//! - a *staging* is an output that nobody sees yet.
//!
//! The folders follow the flow: [`sample`] → [`ingest`] → [`convert`] → [`dataset`] → [`describe`], on
//! top of [`storage`], below [`cli`].

pub mod bins;
pub mod boost;
pub mod cli;
pub mod config;
pub mod convert;
pub mod dataset;
pub mod describe;
pub mod error;
pub mod ingest;
pub mod metric;
pub mod model;
pub mod predict;
pub mod random;
pub mod sample;
pub mod storage;
mod suggest;
pub mod table;
pub mod tree;
