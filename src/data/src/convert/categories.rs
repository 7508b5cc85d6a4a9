//! Codes of categories: the categories of each feature are numbered in order of first appearance.

use crate::dataset::{Categories, FeatureNames};
use planetree_base::error::{Error, Result};
use std::collections::{BTreeMap, HashMap};

/// A column with more categories is an id or free text.
const MAX_CATEGORIES: usize = 1 << 16;

/// The categories seen so far, by feature.
pub struct CategoryCodes {
    names: FeatureNames,
    columns: BTreeMap<u32, HashMap<String, usize>>,
}

impl CategoryCodes {
    /// Starts with the categories of another dataset, whose codes are kept.
    pub fn new(names: &FeatureNames, given: &[Categories]) -> Self {
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

    /// The codes of some categories; new ones get the next numbers.
    pub fn codes(&mut self, feature: u32, words: &[String]) -> Result<Vec<f32>> {
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

    /// All categories in the order of their codes.
    pub fn finish(self) -> Vec<Categories> {
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
