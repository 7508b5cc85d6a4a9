//! Distributed execution: the same boosting rounds with the rows held by the executors of a cluster. Apache Ballista
//! provides the scheduler, the executors and task retries; this crate adds one plan node and its requests.
//!
//! ```text
//! driver: rounds ──request──► scheduler ──one task per share──► executors: codes, scores, rows by node
//!             ▲                                                    │ the single-machine kernel
//!             └──────────────── summed histograms ─────────────────┘
//! ```
//!
//! With many shares, some executors sum the histograms of all shares before the driver does; see [`merge`].
//!
//! - *share*: a range of neighbouring partitions held by one executor;
//! - *request*: one step of the training, sent to all shares; *answer*: the result of one share;
//! - *snapshot*: everything needed to rebuild a share: bins, parameters and the trees so far.

mod address;
mod affinity;
mod cells;
mod client;
mod cluster;
mod codec;
mod evaluate;
mod executor;
mod local;
mod merge;
mod node;
mod query;
mod remote_rows;
mod row_group_scan;
mod rows;
mod score;
mod security;
mod serve;
mod session;
mod share;
mod task;
mod token;
mod trees;

pub use address::{Address, PORT};
pub use client::Traffic;
pub use cluster::Cluster;
pub use security::Security;
pub use serve::{ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};
