//! Scores a dataset with a model, in bounded memory.
//!
//! ```text
//! row group ─decode─► columns ─parts─► values ─normalise, weight, add─► scores ─in order─► sink
//! ```
//!
//! The families (`family/`) compute the values of the parts, and `scorer.rs` combines these values into scores.
//! `columns.rs` finds a model's features in a dataset and maps categories to the model's codes, `group_columns.rs` reads them
//! batch by batch, `group.rs` scores a row group, `stream.rs` scores a whole dataset, `job.rs` scores on a cluster, and `table.rs` writes the predictions
//! table. `early_exit/` scores with early exits, `batches.rs` scores record batches, `permutation.rs` computes permutation importance, and `attach.rs` attaches existing scores to the rows of a
//! dataset.

mod attach;
mod batches;
mod columns;
mod early_exit;
mod group;
mod group_columns;
mod job;
mod permutation;
mod rank;
mod scorer;
mod stream;
mod table;
mod terms;

pub use crate::family::trees::win_rates;
pub use attach::attach_scores;
pub use batches::BatchScorer;
pub use columns::{ColumnPlan, known_features};
pub use early_exit::ExitReport;
pub use early_exit::{EarlyExit, ExitRows, ExitScope, ExitScorer, ExitShare, predict_with_exits};
pub use group::{GroupPredictor, NOT_FINITE, PredictedGroup, bounds_of, part_columns, row_identity};
pub use group::{PartColumn, TimedGroup};
pub(crate) use group_columns::BATCH_VALUES;
pub use group_columns::GroupColumns;
pub use job::ScoreRows;
pub use job::{ScoredGroups, SentModel};
pub use permutation::permutation_importance;
pub use permutation::{PermutationImportance, PermutedFeature};
pub use rank::ranks;
pub use scorer::Scorer;
pub use stream::{PredictReport, part_values, predict, predict_with, scores_of};
pub use table::{PredictionsTable, model_fingerprint, predictions_schema};

#[cfg(test)]
pub(crate) mod tests;
