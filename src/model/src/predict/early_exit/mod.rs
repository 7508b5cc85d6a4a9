//! Early exits (Mohan 2010, chapter 6): after every so many trees, the documents with the lowest scores are not scored
//! any further. They keep their scores.
//!
//! `rule.rs` says which documents exit, `rows.rs` scores documents from exit to exit, and `stream.rs` scores a dataset.

mod rows;
mod rule;
mod stream;

pub use rows::{ExitRows, ExitScorer};
pub use rule::{EarlyExit, ExitScope, ExitShare};
pub use stream::ExitReport;
pub use stream::predict_with_exits;

#[cfg(test)]
mod tests;
