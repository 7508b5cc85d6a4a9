//! Defines the options that say what the columns of a table are.

use clap::{Args, ValueEnum};
use planetree_data::convert::Unlabelled;
use planetree_data::ingest::RoleOptions;

/// Columns of a table, for the commands that read one.
#[derive(Debug, Clone, Args)]
pub(crate) struct ColumnOptions {
    /// Column with query ids (CSV, Parquet) [default: detected by name]
    #[arg(long, value_name = "NAME")]
    query_column: Option<String>,

    /// Column with labels [default: detected by name]
    #[arg(long, value_name = "NAME")]
    label_column: Option<String>,

    /// Column with document ids [default: detected by name]
    #[arg(long, value_name = "NAME")]
    doc_column: Option<String>,

    /// Column with row weights [default: detected by name]
    #[arg(long, value_name = "NAME")]
    weight_column: Option<String>,

    /// Column with the positions at which documents were shown [default: detected by name]
    #[arg(long, value_name = "NAME")]
    position_column: Option<String>,

    /// Features to keep, as names or patterns such as 'bm25_*' [default: all other columns]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    feature_columns: Vec<String>,

    /// Columns to ignore, as names or patterns such as 'raw_*'
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    ignore_columns: Vec<String>,

    /// What to do with rows without a label, such as unjudged documents
    #[arg(long, value_enum, default_value_t = UnlabelledArgument::Keep)]
    unlabelled: UnlabelledArgument,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UnlabelledArgument {
    /// Keep them: the dataset can be scored, but not trained on
    Keep,
    /// Leave them out
    Drop,
    /// Give them the label 0
    Zero,
    /// Stop at the first one
    Error,
}

impl ColumnOptions {
    /// Returns the roles of the columns.
    pub(crate) fn roles(&self) -> RoleOptions {
        RoleOptions {
            query: self.query_column.clone(),
            label: self.label_column.clone(),
            document: self.doc_column.clone(),
            weight: self.weight_column.clone(),
            position: self.position_column.clone(),
            features: self.feature_columns.clone(),
            ignored: self.ignore_columns.clone(),
            ..RoleOptions::default()
        }
    }

    /// Returns what happens to rows without a label.
    pub(crate) fn unlabelled(&self) -> Unlabelled {
        match self.unlabelled {
            UnlabelledArgument::Keep => Unlabelled::Keep,
            UnlabelledArgument::Drop => Unlabelled::Drop,
            UnlabelledArgument::Zero => Unlabelled::Zero,
            UnlabelledArgument::Error => Unlabelled::Error,
        }
    }

    /// Checks whether rows without a label are dropped, labelled or an error.
    pub(crate) fn changes_unlabelled(&self) -> bool {
        self.unlabelled != UnlabelledArgument::Keep
    }

    /// Checks whether no option is given.
    pub(crate) fn are_default(&self) -> bool {
        let names = [
            &self.query_column,
            &self.label_column,
            &self.doc_column,
            &self.weight_column,
            &self.position_column,
        ];
        names.iter().all(|name| name.is_none())
            && self.feature_columns.is_empty()
            && self.ignore_columns.is_empty()
            && !self.changes_unlabelled()
    }
}
