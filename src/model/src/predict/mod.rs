//! Scoring a dataset with a model, in bounded memory.
//!
//! ```text
//! row group ─decode─► columns ─code─► planes of bytes ─trees─► scores ─in order─► sink
//! ```
//!
//! `planes.rs` turns a block of values into bytes, `layout.rs` turns trees into tests on those bytes,
//! `dense.rs` (trees of up to 256 leaves) and `walk.rs` (larger ones) are the two kernels, `scorer.rs`
//! puts them together. `columns.rs` finds a model's features in a dataset and maps its words, `stream.rs` goes through it, `table.rs` is what is written.

mod columns;
mod dense;
mod given;
mod layout;
mod permutation;
mod planes;
mod rank;
mod scorer;
mod stream;
mod table;
mod walk;
mod wins;

pub use columns::{ColumnPlan, known_features};
pub use given::with_scores;
pub use permutation::{PermutationImportance, PermutedFeature, permutation_importance};
pub use rank::ranks;
pub use scorer::Scorer;
pub(crate) use scorer::load_values;
pub use stream::NOT_FINITE;
pub use stream::{GroupPredictor, GroupScorer, PredictedGroup, Report, TimedGroup, predict, scores_of};
pub use table::{PredictionsTable, model_fingerprint, predictions_schema};
pub use wins::wins;

#[cfg(test)]
pub(crate) mod tests;
