//! What a table of ours is.

use planetree_base::storage::{MODEL_FORMATS, OutputFormats, TABLE_FORMATS};

/// The kinds of tables that are one file each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A row per node of every tree.
    Model,
    /// A row per document with its score.
    Predictions,
    /// The training log: a row per round, split and metric.
    Rounds,
    /// A row per query with its metrics.
    Metrics,
    /// A row per query and pair of systems with their difference.
    Differences,
    /// The folds of a cross-validation: a row per fold, split and metric.
    Folds,
    /// A row per trial of a search.
    Trials,
    /// A row per step of a pipeline's run.
    Steps,
    /// How good single trees rank while they grow: a row per tree, split of the data and number of splits.
    Strength,
}

impl TableKind {
    /// All kinds.
    pub const ALL: [TableKind; 9] = [
        TableKind::Model,
        TableKind::Predictions,
        TableKind::Rounds,
        TableKind::Metrics,
        TableKind::Differences,
        TableKind::Folds,
        TableKind::Trials,
        TableKind::Steps,
        TableKind::Strength,
    ];

    /// The name that the file's metadata has.
    pub fn name(self) -> &'static str {
        match self {
            TableKind::Model => "model",
            TableKind::Predictions => "predictions",
            TableKind::Rounds => "rounds",
            TableKind::Metrics => "metrics",
            TableKind::Differences => "differences",
            TableKind::Folds => "folds",
            TableKind::Trials => "trials",
            TableKind::Steps => "steps",
            TableKind::Strength => "strength",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind as a noun in a sentence: "this is ...".
    pub fn noun(self) -> &'static str {
        match self {
            TableKind::Model => "a model",
            TableKind::Predictions => "predictions",
            TableKind::Rounds => "a log of rounds",
            TableKind::Metrics => "metrics",
            TableKind::Differences => "differences",
            TableKind::Folds => "folds of a cross-validation",
            TableKind::Trials => "trials of a search",
            TableKind::Steps => "steps of a pipeline's run",
            TableKind::Strength => "the strength of trees",
        }
    }

    /// The formats that tables of this kind are written in.
    pub fn formats(self) -> OutputFormats {
        let what = self.noun();
        match self {
            TableKind::Model | TableKind::Folds | TableKind::Trials | TableKind::Steps => {
                OutputFormats { what, ..MODEL_FORMATS }
            }
            _ => OutputFormats { what, ..TABLE_FORMATS },
        }
    }

    /// Whether text with these columns, in any order, is a table of this kind.
    pub(super) fn has_columns(self, names: &[String]) -> bool {
        let (columns, may_have_more): (&[&str], bool) = match self {
            TableKind::Predictions => (&["query_id", "doc_id", "label", "score", "rank"], false),
            TableKind::Rounds => (&["round", "split", "metric", "value", "seconds"], false),
            TableKind::Metrics => (&["query_id", "documents", "relevant", "dcg", "idcg"], true),
            TableKind::Differences => {
                (&["query_id", "system_a", "system_b", "value_a", "value_b", "difference"], false)
            }
            TableKind::Strength => (&["tree", "splits", "split", "expected_ndcg"], false),
            TableKind::Model | TableKind::Folds | TableKind::Trials | TableKind::Steps => return false,
        };
        let has_all = columns.iter().all(|column| names.iter().any(|name| name == column));
        has_all && (may_have_more || names.len() == columns.len())
    }

    /// What to name instead of a file that is not of this kind.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            TableKind::Model => "name a model that `planetree train` wrote",
            TableKind::Predictions => "name predictions that `planetree predict` wrote",
            TableKind::Rounds => "name a file that `planetree train --rounds` wrote",
            TableKind::Metrics => "name metrics that `planetree evaluate --output` wrote",
            TableKind::Differences => "name differences that `planetree compare --output` wrote",
            TableKind::Folds => "name the folds.parquet that `planetree cv` wrote",
            TableKind::Trials => "name the trials.parquet that `planetree cv --search` wrote",
            TableKind::Steps => "name the steps.parquet that `planetree run` wrote",
            TableKind::Strength => "name a file that `planetree train --strength` wrote",
        }
    }
}
