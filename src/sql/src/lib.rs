//! SQL over everything that planetree writes, and over Parquet, CSV and JSON files of others.
//!
//! ```text
//! text ──parse──► statement ──allowed?──► logical plan ──order──► physical plan ──► batches ──► output
//!                     │                        ▲
//!                  tables: by name or by path, ┘ ours through our readers, others through DataFusion's
//! ```
//!
//! Vocabulary:
//!
//! - a *session* is what statements share: tables, functions, threads and memory;
//! - a *root* is a place that paths within SQL may lie under;
//! - a *source* is a table of ours as the engine sees it: units of rows (row groups) that are read on their
//!   own, one after another;
//! - rows are *in order* when the plan below an operator keeps the order that the table has; a *run* is rows
//!   side by side that have the same key.

mod elsewhere;
mod error;
mod foreign;
mod functions;
mod meant;
mod open;
mod order;
mod output;
mod roots;
mod scan;
mod session;
mod shell;
mod statement;
mod tables;

pub use elsewhere::{Elsewhere, PlaceCheck, RunThere, Upgrade};
pub use error::outward;
pub use functions::{FunctionHelp, function_help};
pub use functions::{travelling_functions, within_query};
pub use output::{Destination, Format, Replace};
pub use roots::Roots;
pub use session::{Done, Options, Printer, Session};
pub use shell::Shell;

#[cfg(test)]
mod tests;
