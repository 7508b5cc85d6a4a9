//! Early exits (Mohan 2010, chapter 6): at regular numbers of trees, the documents with the lowest scores are no longer
//! scored. They keep their scores.
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
