//! Rules that keep the order of rows. SQL guarantees no order, but a ranking with equal scores needs one, and planetree
//! uses the order of the table. Where a plan can keep that order, these rules make it do so, on any number of threads.
//!
//! ```text
//! AggregateExec (final)                      RunAggregateExec       one thread per partition aggregates
//!   AggregateExec (partial)      ──►           FilterExec ...       the runs of queries; if a query
//!     FilterExec ...                             ScanExec           returns, all rows are aggregated
//!       ScanExec                                                    as one stream
//! ```

mod in_order;
mod partition;
mod position;
mod rules;
mod runs;

pub use rules::{KeepOrder, MergeInOrder};
