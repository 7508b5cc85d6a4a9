//! Runs [jobs](planetree_base::job) on a cluster. Apache Ballista provides the scheduler, the executors and task
//! retries; this crate adds two plan nodes, a cache on executors, and the driver's side of training, prediction and
//! evaluation.
//!
//! ```text
//! driver: job ──request──► scheduler ──one task per share──► executors: cached states (bin numbers, scores)
//!            ▲                                                  │ the single-machine kernel
//!            └──────────────── merged partials ─────────────────┘
//! ```
//!
//! With many shares, merge tasks on executors combine the partials before they reach the driver; see [`merge`]. The
//! jobs are defined in other crates; [`registry`] lists them.
//!
//! - *share*: a range of neighbouring row groups held by one executor; a job calls it a shard;
//! - *request*: a job, sent to all shares;
//! - *partial*: the result of a job for one share, or for several shares after merging. It can be cut into *blocks*,
//!   which are merged independently of each other;
//! - *reply*: the partial of one share, or the reason why there is none.

#![warn(unreachable_pub)]

mod address;
mod affinity;
mod call;
mod client;
mod cluster;
mod codec;
mod evaluate;
mod executor;
mod failure;
mod local;
mod merge;
mod message;
mod node;
mod query;
mod registry;
mod remote_rows;
mod row_group_scan;
mod score;
mod security;
mod serve;
mod session;
mod share;
mod task;
mod token;
mod trees;
mod watch;
mod work_folder;

pub use address::{Address, PORT};
pub use client::Traffic;
pub use cluster::Cluster;
#[doc(hidden)]
pub use message::read_message;
pub use security::Security;
pub use serve::{ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};

#[cfg(test)]
mod tests;
