//! Datasets: text, CSV and Parquet are decoded into rows and written as Parquet, whole queries per row group and file.
//!
//! [`ingest`] decodes inputs into [`rows`], [`convert`] puts them in order, [`dataset`] writes and reads them. [`source`]
//! is one dataset or several as training reads them, [`table`] every other Parquet file of ours, [`catalog`] what is in
//! a directory, [`describe`] what is in a dataset, [`sample`] a generator of synthetic data.

pub mod catalog;
pub mod convert;
pub mod dataset;
pub mod describe;
pub mod ingest;
pub mod rows;
pub mod sample;
pub mod source;
pub mod table;
