//! Determines the feature names of imported and exported models. Other programs number unnamed columns from 0,
//! whereas datasets that planetree converts from LETOR text number them from 1 (`f1`, `f2` and so on).

use super::ImportError;
use crate::model::ModelFeature;
use std::collections::HashSet;

/// The largest number of features of an imported model. A file can claim any number in a few bytes, and names are made up
/// for all of them.
const MAX_FEATURES: usize = 1_000_000;

/// Returns an error if a file claims more features than any model has.
pub(super) fn check_feature_count(count: usize) -> Result<(), String> {
    match count {
        0..=MAX_FEATURES => Ok(()),
        _ => Err(format!("the file claims {count} features, but at most {MAX_FEATURES} are supported")),
    }
}

/// Determines the feature names of an imported model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameSource {
    /// The names in the model file. If it has no names, a feature is named `f` followed by its number.
    Model {
        /// Number of the first feature if the model file has no names.
        first: u32,
    },
    /// These names, in column order.
    Given(Vec<String>),
}

impl NameSource {
    /// Creates `count` features. `own` has the names in the model file, if there are any.
    pub(super) fn features(
        &self,
        count: usize,
        own: Option<&[String]>,
    ) -> Result<Vec<ModelFeature>, ImportError> {
        let names: Vec<String> = match (self, own) {
            (NameSource::Given(names), _) if names.len() == count => names.clone(),
            (NameSource::Given(names), _) => {
                return Err(ImportError::new(
                    format!("the model has {count} features, but there are {} names", names.len()),
                    "give one name per feature, in the order of the training data's columns",
                ));
            }
            (NameSource::Model { .. }, Some(own)) => own.to_vec(),
            (NameSource::Model { first }, None) => {
                (0..count).map(|index| format!("f{}", index + *first as usize)).collect()
            }
        };
        Ok(names.into_iter().map(ModelFeature::new).collect())
    }
}

/// Returns the feature names with `_` in place of characters that the other program does not support. Adds a note that
/// lists the changed names.
pub(super) fn portable_names(
    features: &[ModelFeature],
    is_unsupported: impl Fn(char) -> bool,
    notes: &mut Vec<String>,
) -> Vec<String> {
    let clean = |name: &String| -> String {
        let name: String =
            name.chars().map(|letter| if is_unsupported(letter) { '_' } else { letter }).collect();
        if name.is_empty() { "_".to_owned() } else { name }
    };
    let mut taken: HashSet<String> = HashSet::new();
    let mut changed = Vec::new();
    let mut names = Vec::with_capacity(features.len());
    for feature in features {
        let cleaned = clean(&feature.name);
        let mut name = cleaned.clone();
        let mut suffix = 2;
        // A changed name must not be the name of another feature.
        while taken.contains(&name)
            || (name != feature.name && features.iter().any(|other| other.name == name))
        {
            name = format!("{cleaned}_{suffix}");
            suffix += 1;
        }
        if name != feature.name {
            changed.push(format!("{:?} as {name}", feature.name));
        }
        taken.insert(name.clone());
        names.push(name);
    }
    if !changed.is_empty() {
        notes.push(format!("features renamed because of unsupported characters: {}", changed.join(", ")));
    }
    names
}
