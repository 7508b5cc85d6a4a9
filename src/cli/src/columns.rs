//! Defines the options that say what the columns of a table are.

use clap::{Args, ValueEnum};
use planetree_base::error::{Error, Result};
use planetree_base::size::counted;
use planetree_data::convert::{ConvertOptions, Unlabelled};
use planetree_data::dataset::{Categories, Manifest};
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

    /// Features to keep, as names or patterns such as 'bm25_*' (f1, f2, ... in LETOR text) [default: all other columns]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    feature_columns: Vec<String>,

    /// Columns to ignore, as names or patterns such as 'raw_*' (f1, f2, ... in LETOR text)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    ignore_columns: Vec<String>,
}

/// Rows without a label, for the commands that need labels.
#[derive(Debug, Clone, Args)]
pub(crate) struct UnlabelledOptions {
    /// What to do with rows without a label, such as unjudged documents
    #[arg(long, alias = "unlabeled", value_enum, default_value_t = UnlabelledArgument::Keep)]
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

/// Names of the columns of a dataset that are not features, in the order of the options.
pub(crate) const FIXED_COLUMNS: [&str; 5] = ["query_id", "label", "doc_id", "weight", "position"];

/// Returns a note on categorical features of a new dataset whose values are mostly distinct, such as titles. A model can
/// memorise them, but they do not help with new data.
pub(crate) fn note_of_distinct_text(manifest: &Manifest, options: &ConvertOptions) -> Option<String> {
    /// With fewer rows, values may be distinct by chance.
    const MIN_ROWS: u64 = 20;
    // Categories of dropped rows and of other datasets are not those of these rows.
    if manifest.rows < MIN_ROWS || options.unlabelled == Unlabelled::Drop {
        return None;
    }
    let is_known = |feature: &str| options.categories.iter().any(|known| known.feature == feature);
    let is_distinct = |column: &&Categories| 2 * column.words.len() as u64 > manifest.rows;
    let columns = manifest.categories.iter().filter(is_distinct);
    let names: Vec<&str> =
        columns.map(|column| column.feature.as_str()).filter(|name| !is_known(name)).collect();
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "{}: more than half of the rows have different values, which are of little use as categories; to leave out such text, \
         pass --ignore-columns {}",
        names.join(", "),
        names.join(",")
    ))
}

/// Returns a note on the rows without a label that a conversion left out, or gave the label 0. `changed` is their number.
pub(crate) fn note_of_unlabelled(manifest: &Manifest, rule: Unlabelled, changed: u64) -> Option<String> {
    if changed == 0 {
        return None;
    }
    let rows = counted(changed, "row", "rows");
    match rule {
        Unlabelled::Keep | Unlabelled::Error => None,
        Unlabelled::Drop => Some(format!("{rows} without a label left out (--unlabelled drop)")),
        Unlabelled::Zero if changed == manifest.rows => {
            Some("no row has a label: all have the label 0 now (--unlabelled zero)".to_owned())
        }
        Unlabelled::Zero => Some(format!("{rows} without a label given the label 0 (--unlabelled zero)")),
    }
}

impl ColumnOptions {
    /// Returns the roles of the columns.
    pub(crate) fn roles(&self) -> RoleOptions {
        self.roles_without(&[])
    }

    /// Returns the roles of the columns, except those that would be given to columns of these names.
    pub(crate) fn roles_without(&self, names: &[&str]) -> RoleOptions {
        let kept = |name: &Option<String>| name.clone().filter(|name| !names.contains(&name.as_str()));
        RoleOptions {
            query: kept(&self.query_column),
            label: kept(&self.label_column),
            document: kept(&self.doc_column),
            weight: kept(&self.weight_column),
            position: kept(&self.position_column),
            features: self.feature_columns.clone(),
            ignored: self.ignore_columns.clone(),
            ..RoleOptions::default()
        }
    }

    /// Returns the columns that are not features: what a dataset calls each of them, and the name that was given.
    pub(crate) fn role_names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let names = [
            &self.query_column,
            &self.label_column,
            &self.doc_column,
            &self.weight_column,
            &self.position_column,
        ];
        let pairs = FIXED_COLUMNS.into_iter().zip(names);
        pairs.filter_map(|(fixed, name)| name.as_deref().map(|name| (fixed, name)))
    }

    /// Fails if options are given without a table that they apply to.
    pub(crate) fn check_data(&self, data: Option<&String>) -> Result<()> {
        if data.is_some() || self.are_default() {
            return Ok(());
        }
        Err(Error::usage(
            "options for columns, such as --label-column, apply to --data, which is not given",
            "remove them; if the predictions have columns with other names, rename those",
        ))
    }

    /// Checks whether no option is given.
    pub(crate) fn are_default(&self) -> bool {
        self.role_names().next().is_none()
            && self.feature_columns.is_empty()
            && self.ignore_columns.is_empty()
    }
}

impl UnlabelledOptions {
    /// Returns what happens to rows without a label.
    pub(crate) fn rule(&self) -> Unlabelled {
        match self.unlabelled {
            UnlabelledArgument::Keep => Unlabelled::Keep,
            UnlabelledArgument::Drop => Unlabelled::Drop,
            UnlabelledArgument::Zero => Unlabelled::Zero,
            UnlabelledArgument::Error => Unlabelled::Error,
        }
    }

    /// Checks whether rows without a label are dropped, labelled or an error.
    pub(crate) fn changes_rows(&self) -> bool {
        self.unlabelled != UnlabelledArgument::Keep
    }
}
