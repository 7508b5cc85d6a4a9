//! Converts ranking data to datasets and reads datasets. Text, CSV and Parquet inputs are decoded into rows, which
//! are written as Parquet files. A query never spans two row groups or files.
//!
//! [`ingest`] decodes inputs into [`rows`], [`convert`] puts the rows in order, and [`dataset`] writes and reads
//! them. [`source`] presents one or more datasets to training. [`table`] covers every other Parquet file that
//! planetree writes. [`rewrite`] writes changed rows of a
//! dataset, [`catalog`] lists the contents of a directory, [`describe`] summarises a dataset, [`sample`]
//! generates synthetic data.

#![warn(unreachable_pub)]

pub mod catalog;
pub mod convert;
pub mod dataset;
pub mod describe;
pub mod ingest;
mod label_map;
pub mod rewrite;
pub mod rows;
pub mod sample;
pub mod source;
pub mod table;

pub use label_map::LabelMap;
