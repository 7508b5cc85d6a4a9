//! Runs SQL statements on all tables that planetree writes, and on other Parquet, CSV and JSON files.
//!
//! ```text
//! text ──parse──► statement ──allowed?──► logical plan ──order──► physical plan ──► batches ──► output
//!                     │                        ▲
//!                  tables, by name or path: ───┘ planetree's by its own readers, other files by DataFusion's
//! ```
//!
//! Vocabulary:
//!
//! - the *engine* is Apache DataFusion, which plans and executes the statements;
//! - a *session* holds what all statements share: tables, functions, threads and memory;
//! - a *root* is a directory or URL prefix that paths in SQL must lie below;
//! - a *source* is a table of planetree, presented to the engine as row groups that can be read independently;
//! - rows are *in order* if the plan below an operator keeps the order of the table; a *run* is a range of adjacent
//!   rows with the same key.

#![warn(unreachable_pub)]

mod column_types;
mod context;
mod engine;
mod error;
mod float32;
mod foreign;
mod functions;
mod memory_watch;
mod misuse;
mod objects;
mod on_cluster;
mod open;
mod operator;
mod order;
mod other_engines;
mod output;
mod partitioned_table;
mod partitions;
mod plan_check;
mod rewrite;
mod roots;
mod scan;
mod session;
mod shell;
mod size;
mod statement;
mod summary;
mod syntax;
mod table_list;
mod tables;
mod text_errors;
mod yielding;

pub use error::to_engine_error;
pub use functions::{distributed_functions, within_query};
pub use on_cluster::{LocationCheck, RunOnCluster, SessionUpgrade, SqlCluster};
pub use operator::{Operator, OperatorExec, OperatorInput};
pub use output::{Destination, ReplacePolicy, ResultFormat};
pub use roots::Roots;
pub use session::{MIN_MEMORY, Printer, Session, SessionOptions, StatementSummary};
pub use shell::{Shell, is_shell_command};

#[cfg(test)]
mod tests;
