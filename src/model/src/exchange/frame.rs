//! Finds the features that categories of a file belong to. LightGBM's file lists the categories of a data frame in the
//! order of their codes, but not their columns. A dataset has the columns, but codes of its own. So the lists are matched
//! to its categorical columns by their sets of words, and the order of the file remains.

use super::categories::words_of;
use super::import::ImportedModel;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::Categories;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Display;

/// The note about a model whose file has categories, but does not say of which features.
pub(super) const UNKNOWN_COLUMNS: &str = "the model was trained on columns of type category, but the file does not say \
     clearly which, or the categories are neither texts nor whole numbers: the imported model has no categories, only \
     the codes assigned by pandas";

/// Number of categories that messages show.
const SHOWN: usize = 5;

/// The lists of categories in a file, in the order of their columns. `None` if some are neither texts nor whole numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FrameCategories(Option<Vec<FrameList>>);

/// The categories of one column of the frame.
#[derive(Debug, Clone, PartialEq)]
struct FrameList {
    /// The categories in the order of their codes.
    words: Vec<String>,
    /// Whether the categories are the codes themselves, as in a frame that was made of a dataset's codes.
    are_codes: bool,
}

/// A categorical column of a dataset that is a feature of the model.
struct DatasetColumn<'a> {
    /// Index of the feature in the model.
    feature: usize,
    categories: &'a Categories,
}

impl FrameCategories {
    /// Creates the lists of a file. Columns without a category are left out.
    pub(super) fn new(lists: &[Vec<Value>]) -> Self {
        let read = |list: &Vec<Value>| {
            let words = words_of(list)?;
            let are_codes = words.is_empty();
            let codes = || -> Vec<String> { (0..list.len()).map(|code| code.to_string()).collect() };
            Some(FrameList { words: if are_codes { codes() } else { words }, are_codes })
        };
        FrameCategories(lists.iter().filter(|list| !list.is_empty()).map(read).collect())
    }

    /// Creates the categories of a file that cannot be read.
    pub(super) fn unreadable() -> Self {
        FrameCategories(None)
    }

    /// Returns the categories of each column in the order of the model's codes.
    fn of_columns(&self, columns: &[DatasetColumn<'_>], place: &dyn Display) -> Result<Vec<Vec<String>>> {
        let Some(lists) = &self.0 else {
            return Err(Error::place(
                place,
                "some categories in the file of the model are neither texts nor whole numbers, so they cannot be \
                 compared with those of this dataset",
                "train the model on columns whose categories are texts or whole numbers",
            ));
        };
        let sets: Vec<BTreeSet<&str>> = lists.iter().map(|list| set_of(&list.words)).collect();
        let column_sets: Vec<BTreeSet<&str>> =
            columns.iter().map(|column| set_of(&column.categories.words)).collect();
        let mut found: Vec<Option<&Vec<String>>> = vec![None; columns.len()];
        let mut codes = Vec::new();
        for (list, set) in lists.iter().zip(&sets) {
            let matched: Vec<usize> =
                (0..columns.len()).filter(|column| column_sets[*column] == *set).collect();
            let same: Vec<&FrameList> =
                lists.iter().zip(&sets).filter(|(_, other)| *other == set).map(|(other, _)| other).collect();
            if matched.is_empty() && list.are_codes {
                codes.push(list);
                continue;
            }
            if matched.is_empty() {
                return Err(no_column(list, columns, place));
            }
            if matched.len() != same.len() || same.iter().any(|other| other.words != list.words) {
                let columns: Vec<&DatasetColumn<'_>> =
                    matched.iter().map(|column| &columns[*column]).collect();
                return Err(several_columns(&same, &columns, place));
            }
            matched.iter().for_each(|column| found[*column] = Some(&list.words));
        }
        // Categories that are the codes of a frame may be the codes of this dataset.
        let rest: Vec<&DatasetColumn<'_>> = columns
            .iter()
            .zip(&found)
            .filter(|(_, words)| words.is_none())
            .map(|(column, _)| column)
            .collect();
        let are_coded = rest.len() == codes.len()
            && rest.iter().zip(&codes).all(|(column, list)| {
                let words = &column.categories.words;
                list.words.len() <= words.len() && words.iter().any(|word| word.parse::<i64>().is_err())
            });
        if !rest.is_empty() && !are_coded {
            return Err(no_list(&rest, lists, place));
        }
        let words = columns.iter().zip(found);
        Ok(words.map(|(column, words)| words.unwrap_or(&column.categories.words).clone()).collect())
    }
}

impl ImportedModel {
    /// Sets the categories of the features that are categorical in a dataset. If the file of the model has lists of
    /// categories, their order defines the codes, and the dataset only says which features they belong to. Otherwise
    /// the codes are those of the dataset. `place` is the dataset, for error messages.
    pub fn set_categories(&mut self, dataset: &[Categories], place: impl Display) -> Result<()> {
        let mut columns: Vec<DatasetColumn<'_>> = dataset
            .iter()
            .filter_map(|categories| {
                let mut features = self.model.features.iter();
                let feature = features.position(|feature| feature.name == categories.feature)?;
                Some(DatasetColumn { feature, categories })
            })
            .collect();
        columns.sort_by_key(|column| column.feature);
        if columns.is_empty() {
            return Err(Error::place(
                place,
                "no feature of the model is categorical in this dataset",
                "remove --categories-from, or pass the dataset that the model was trained on",
            ));
        }
        let words = match &self.frame {
            Some(frame) => frame.of_columns(&columns, &place)?,
            None => columns.iter().map(|column| column.categories.words.clone()).collect(),
        };
        for (column, words) in columns.iter().zip(words) {
            let feature = &mut self.model.features[column.feature];
            if !feature.words.is_empty() && feature.words != words {
                return Err(Error::place(
                    place,
                    format_args!("the model has different categories for {}", feature.name),
                    "remove --categories-from: the file contains the categories of its training data",
                ));
            }
            feature.words = words;
        }
        self.notes.retain(|note| note.as_str() != UNKNOWN_COLUMNS);
        Ok(())
    }
}

fn set_of(words: &[String]) -> BTreeSet<&str> {
    words.iter().map(String::as_str).collect()
}

/// Returns categories for messages.
fn shown(words: &[String]) -> String {
    let mut shown: Vec<String> = words.iter().take(SHOWN).map(|word| format!("{word:?}")).collect();
    if words.len() > SHOWN {
        shown.push(format!("... ({} in total)", words.len()));
    }
    format!("[{}]", shown.join(", "))
}

fn names(columns: &[&DatasetColumn<'_>]) -> String {
    columns.iter().map(|column| column.categories.feature.as_str()).collect::<Vec<_>>().join(", ")
}

fn no_column(list: &FrameList, columns: &[DatasetColumn<'_>], place: &dyn Display) -> Error {
    let of_columns: Vec<String> = columns
        .iter()
        .map(|column| format!("{} has {}", column.categories.feature, shown(&column.categories.words)))
        .collect();
    Error::place(
        place,
        format_args!(
            "no categorical column of this dataset has the categories {} of the model: {}",
            shown(&list.words),
            of_columns.join("; ")
        ),
        "pass the dataset that the model was trained on; the categories of a column must be the same, in any order",
    )
}

fn several_columns(lists: &[&FrameList], columns: &[&DatasetColumn<'_>], place: &dyn Display) -> Error {
    let texts: Vec<String> = lists.iter().map(|list| shown(&list.words)).collect();
    Error::place(
        place,
        format_args!(
            "the file of the model has the categories {}, and these columns here have the same: {}; it is not clear which \
             list belongs to which column",
            texts.join(" and "),
            names(columns)
        ),
        "pass a dataset in which exactly the columns of type category of the training data are categorical",
    )
}

fn no_list(columns: &[&DatasetColumn<'_>], lists: &[FrameList], place: &dyn Display) -> Error {
    let texts: Vec<String> = lists.iter().map(|list| shown(&list.words)).collect();
    Error::place(
        place,
        format_args!(
            "categorical here, but without a list of categories in the file of the model: {}; the file has {}",
            names(columns),
            if texts.is_empty() { "none".to_owned() } else { texts.join(" and ") }
        ),
        "pass a dataset in which exactly the columns of type category of the training data are categorical",
    )
}
