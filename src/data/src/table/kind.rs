//! Lists the kinds of tables that planetree writes, with their names, columns and file formats.

use super::footer;
use parquet::file::metadata::ParquetMetaData;
use planetree_base::storage::{MODEL_FORMATS, OutputFormats, TABLE_FORMATS};

/// A kind of table that is stored as a single file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A model: one row per node of every tree.
    Model,
    /// Predictions: one row per document, with its score.
    Predictions,
    /// The training log: one row per round, data split (such as `train`) and metric.
    Rounds,
    /// Metrics: one row per query.
    Metrics,
    /// Differences between ranking systems: one row per query and pair of systems.
    Differences,
    /// Folds of a cross-validation: one row per fold, data split and metric.
    Folds,
    /// Trials of a hyperparameter search: one row per trial.
    Trials,
    /// Steps of a pipeline run: one row per step.
    Steps,
    /// Ranking quality of single trees while they grow: one row per tree, data split (such as `train`) and number of
    /// splits in the tree.
    Strength,
    /// Quality against cost with early exits: one row per percentage of exits and number of trees.
    Costs,
    /// How much the rows of a dataset resemble those of another one: one row per document.
    Likeness,
    /// Features whose missing values were filled: one row per feature.
    Filled,
}

impl TableKind {
    /// All kinds of tables.
    pub const ALL: [TableKind; 12] = [
        TableKind::Model,
        TableKind::Predictions,
        TableKind::Rounds,
        TableKind::Metrics,
        TableKind::Differences,
        TableKind::Folds,
        TableKind::Trials,
        TableKind::Steps,
        TableKind::Strength,
        TableKind::Costs,
        TableKind::Likeness,
        TableKind::Filled,
    ];

    /// Returns the name of the kind, as stored in the metadata of the file.
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
            TableKind::Costs => "costs",
            TableKind::Likeness => "likeness",
            TableKind::Filled => "filled",
        }
    }

    /// Returns the kind with the given name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the kind of a table with this metadata, or `None` if it is not a table of planetree.
    pub(crate) fn of_metadata(metadata: &ParquetMetaData) -> Option<Self> {
        footer::value(metadata, footer::TABLE).and_then(Self::from_name)
    }

    /// Returns the kind as a noun that completes a sentence such as "this is ...".
    pub fn noun(self) -> &'static str {
        match self {
            TableKind::Model => "a model",
            TableKind::Predictions => "predictions",
            TableKind::Rounds => "a training log",
            TableKind::Metrics => "metrics",
            TableKind::Differences => "differences",
            TableKind::Folds => "folds of a cross-validation",
            TableKind::Trials => "trials of a search",
            TableKind::Steps => "steps of a pipeline run",
            TableKind::Strength => "tree strengths",
            TableKind::Costs => "quality against cost",
            TableKind::Likeness => "likeness to a dataset",
            TableKind::Filled => "filled features",
        }
    }

    /// Returns the file formats in which tables of this kind can be written.
    pub fn formats(self) -> OutputFormats {
        let what = self.noun();
        match self {
            TableKind::Model | TableKind::Folds | TableKind::Trials | TableKind::Steps => {
                OutputFormats { what, ..MODEL_FORMATS }
            }
            _ => OutputFormats { what, ..TABLE_FORMATS },
        }
    }

    /// Checks whether a text file with these columns, in any order, is a table of this kind.
    pub(super) fn has_columns(self, names: &[String]) -> bool {
        // The required columns. Further columns are allowed only if their names start with one of the prefixes `more`.
        let (columns, more): (&[&str], &[&str]) = match self {
            TableKind::Predictions => {
                (&["query_id", "doc_id", "label", "score", "rank"], &["part.", "cumulative.", "class."])
            }
            TableKind::Rounds => (&["round", "split", "metric", "value", "seconds"], &["stage"]),
            TableKind::Metrics => (&["query_id", "documents", "relevant", "dcg", "idcg"], &[""]),
            TableKind::Differences => {
                (&["query_id", "system_a", "system_b", "value_a", "value_b", "difference"], &[])
            }
            TableKind::Strength => (&["tree", "splits", "split", "expected_ndcg"], &[]),
            TableKind::Costs => (&["exit_percent", "trees", "documents", "cost", "tree_cost"], &[""]),
            TableKind::Likeness => (&["query_id", "doc_id", "label", "fold", "likeness", "rank"], &[]),
            TableKind::Filled => {
                (&["feature", "present", "missing", "mean", "filled_mean", "error", "r2", "sweeps"], &[])
            }
            TableKind::Model | TableKind::Folds | TableKind::Trials | TableKind::Steps => return false,
        };
        let has_all = columns.iter().all(|column| names.iter().any(|name| name == column));
        let is_known = |name: &String| {
            columns.contains(&name.as_str()) || more.iter().any(|prefix| name.starts_with(prefix))
        };
        has_all && names.iter().all(is_known)
    }

    /// Returns the remedy for the error that a file is not of this kind.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            TableKind::Model => "use a model written by `planetree train`",
            TableKind::Predictions => "use predictions written by `planetree predict`",
            TableKind::Rounds => "use a file written by `planetree train --rounds`",
            TableKind::Metrics => "use metrics written by `planetree evaluate --output`",
            TableKind::Differences => "use differences written by `planetree compare --output`",
            TableKind::Folds => "use the folds.parquet written by `planetree cv`",
            TableKind::Trials => "use the trials.parquet written by `planetree cv --search`",
            TableKind::Steps => "use the steps.parquet written by `planetree run`",
            TableKind::Strength => "use a file written by `planetree train --strength`",
            TableKind::Costs => "use a file written by `planetree cost`",
            TableKind::Likeness => "use the likeness.parquet written by `planetree select`",
            TableKind::Filled => "use a file written by `planetree impute --filled`",
        }
    }
}
