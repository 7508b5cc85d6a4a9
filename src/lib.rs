pub mod cli;
pub mod convert;
pub mod dataset;
pub mod error;
pub mod storage;
pub mod ingest;
