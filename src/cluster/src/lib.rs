//! Several machines: the same rounds, with the rows in the executors of a cluster. Apache Ballista is the cluster: its
//! scheduler, its executors, its retries. Ours is one node of a plan and what it asks.
//!
//! ```text
//! driver: the rounds ──question──► scheduler ──a share each──► executors: codes, scores, rows by node
//!             ▲                                                    │ the kernel of a single machine
//!             └──────────────── histograms, added up ──────────────┘
//! ```
//!
//! Where there are many shares, some executors add up the histograms of all before the driver does; see [`merge`].
//!
//! - a *share* is some neighbouring partitions, which one executor holds;
//! - a *question* is a step of the training, an *answer* what a share says to it;
//! - a *snapshot* is everything that a share can be built from: bins, parameters, the trees so far.

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
