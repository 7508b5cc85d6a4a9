//! Assigns numeric codes to the categories of categorical features. The categories of each feature are numbered from
//! 0 in order of first appearance.

use crate::dataset::{Categories, FeatureNames};
use planetree_base::error::{Error, Result};
use std::collections::{BTreeMap, HashMap};

/// Maximum number of categories of a feature. A column with more categories probably contains ids or free text.
const MAX_CATEGORIES: usize = 1 << 16;

/// The codes of all categories that have occurred so far, by feature.
pub(super) struct CategoryCodes {
    names: FeatureNames,
    columns: BTreeMap<u32, HashMap<String, usize>>,
}

impl CategoryCodes {
    /// Creates the codes for a new dataset. The categories `given` come from another dataset and keep their codes.
    pub(super) fn new(names: &FeatureNames, given: &[Categories]) -> Self {
        let mut columns = BTreeMap::new();
        if let FeatureNames::Given(features) = names {
            for (feature, name) in features.iter().enumerate() {
                if let Some(known) = given.iter().find(|known| known.feature == *name) {
                    let words = known.words.iter().cloned().zip(0..).collect();
                    columns.insert(feature as u32, words);
                }
            }
        }
        CategoryCodes { names: names.clone(), columns }
    }

    /// Returns the codes of the given categories of a feature. New categories get the next codes.
    pub(super) fn codes(&mut self, feature: u32, words: &[String]) -> Result<Vec<f32>> {
        let known = self.columns.entry(feature).or_default();
        let codes = words
            .iter()
            .map(|word| {
                let next = known.len();
                *known.entry(word.clone()).or_insert(next) as f32
            })
            .collect();
        if known.len() > MAX_CATEGORIES {
            let name = self.names.name(feature as usize);
            return Err(Error::place(
                format_args!("column {name}"),
                format_args!("more than {MAX_CATEGORIES} categories, too many for a feature"),
                format_args!(
                    "pass --ignore-columns {name}, or --doc-column {name} if it has the document ids"
                ),
            ));
        }
        Ok(codes)
    }

    /// Returns the categories of every categorical feature, in the order of their codes.
    pub(super) fn finish(self) -> Vec<Categories> {
        let names = self.names;
        self.columns
            .into_iter()
            .map(|(feature, known)| {
                let mut words: Vec<(usize, String)> =
                    known.into_iter().map(|(word, code)| (code, word)).collect();
                words.sort_unstable();
                let words = words.into_iter().map(|(_, word)| word).collect();
                Categories { feature: names.name(feature as usize), words }
            })
            .collect()
    }
}
