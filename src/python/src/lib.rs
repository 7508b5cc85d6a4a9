//! The extension module of the Python package: `planetree._native`. The package itself is in `python/planetree`.
//!
//! ```text
//! data frame ──capsule.rs──► record batches ──rows.rs──► with labels and query ids ──dataset.rs──► dataset
//! command and options ──command.rs──► planetree-cli ──► files, JSON ──table.rs──► Arrow
//! ```
//!
//! Everything that takes long runs in a job (`job.rs`): on threads of its own, without the interpreter's lock, while
//! the calling thread handles signals and reports progress.

#![warn(unreachable_pub)]

mod capsule;
mod column;
mod command;
mod dataset;
mod failure;
mod job;
mod model;
mod rows;
mod table;
mod warning;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::command::{main, options_of, parameters, presets, run};
    #[pymodule_export]
    use super::dataset::{write_dataset, write_parquet};
    #[pymodule_export]
    use super::model::NativeModel;
    #[pymodule_export]
    use super::table::Table;
}
