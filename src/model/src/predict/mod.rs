//! Scores a dataset with a model, in bounded memory.
//!
//! ```text
//! row group ─decode─► columns ─encode─► planes of codes ─trees─► scores ─in order─► sink
//! ```
//!
//! `planes.rs` encodes a block of values as bytes, and `layout.rs` turns trees into tests on these bytes. `dense.rs`
//! (trees of up to 256 leaves) and `walk.rs` (larger trees) are the two kernels, and `scorer.rs` combines them.
//! `columns.rs` finds a model's features in a dataset and maps categories to the model's codes, `stream.rs` scores a whole
//! dataset, `job.rs` scores on a cluster, `table.rs` is the predictions table. `wins.rs` computes scores of pairwise models, `permutation.rs`
//! permutation importance; `attach.rs` attaches existing scores to the rows of a dataset.

mod attach;
mod columns;
mod dense;
mod job;
mod layout;
mod permutation;
mod planes;
mod rank;
mod scorer;
mod stream;
mod table;
mod walk;
mod wins;

pub use attach::attach_scores;
pub use columns::{ColumnPlan, known_features};
pub use job::{ScoreRows, ScoredGroups, SentModel};
pub use permutation::{PermutationImportance, PermutedFeature, permutation_importance};
pub use rank::ranks;
pub use scorer::Scorer;
pub(crate) use scorer::load_values;
pub use stream::NOT_FINITE;
pub use stream::{
    GroupPredictor, GroupScorer, PredictReport, PredictedGroup, TimedGroup, predict, scores_of,
};
pub use table::{PredictionsTable, model_fingerprint, predictions_schema};
pub use wins::win_rates;

#[cfg(test)]
pub(crate) mod tests;
