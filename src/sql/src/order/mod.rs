//! Keeps the order of rows in query plans. SQL guarantees no order, but a ranking with equal scores needs one, and
//! planetree uses the order of the table. Where a plan can keep that order, these rules make it do so, on any number
//! of threads.
//!
//! ```text
//! AggregateExec (final)                      RunAggregateExec       one thread per partition aggregates
//!   AggregateExec (partial)      ──►           FilterExec ...       the runs of queries; if a query id
//!     FilterExec ...                             ScanExec           occurs again later, all rows are
//!       ScanExec                                                    aggregated as one stream
//! ```

mod in_order;
mod partition;
mod position;
mod rules;
mod runs;

pub(crate) use rules::{KeepOrder, MergeInOrder};
