//! The order of rows. SQL promises none, but a ranking with equal scores has one: that of the table. Where a
//! plan can keep it, these rules make it keep it, on any number of threads.
//!
//! ```text
//! AggregateExec (final)                      RunAggregateExec       one thread a partition, runs of a query
//!   AggregateExec (partial)      ──►           FilterExec ...       are judged as they come; if a query
//!     FilterExec ...                             ScanExec           returns, all is aggregated in one go
//!       ScanExec
//! ```

mod in_order;
mod position;
mod rules;
mod runs;
mod stretch;

pub use rules::{KeepOrder, MergeInOrder};
