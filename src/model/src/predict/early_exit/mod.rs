//! Early exits (Mohan 2010, chapter 6): at regular numbers of trees, the documents with the lowest scores are no longer
//! scored. They keep their scores.
//!
//! `rule.rs` says which documents exit. `scorer.rs` prepares the trees, `blocks.rs` keeps the values of the documents that
//! have not exited, `rows.rs` scores documents from exit to exit, and `stream.rs` scores a dataset.

mod blocks;
mod rows;
mod rule;
mod scorer;
mod stream;

pub use rows::ExitRows;
pub use rule::{EarlyExit, ExitScope, ExitShare};
pub use scorer::ExitScorer;
pub use stream::ExitReport;
pub use stream::predict_with_exits;

#[cfg(test)]
mod tests;
