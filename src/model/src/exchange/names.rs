//! What features are called. Programs that are given numbers without names count columns from 0;
//! datasets that planetree makes from LETOR text count from 1, and say `f1`.

use super::Fault;
use crate::model::ModelFeature;
use std::collections::HashSet;

/// How the features of a model that is read are to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeatureNames {
    /// As the file calls them; where it has only numbers, `f` and the number, the first being this.
    Own {
        /// The number of the first feature.
        first: u32,
    },
    /// By these names, in the order of the columns.
    Given(Vec<String>),
}

impl FeatureNames {
    /// The features of a model that has so many; `own` are the file's names, if it has any.
    pub(super) fn features(&self, count: usize, own: Option<&[String]>) -> Result<Vec<ModelFeature>, Fault> {
        let names: Vec<String> = match (self, own) {
            (FeatureNames::Given(names), _) if names.len() == count => names.clone(),
            (FeatureNames::Given(names), _) => {
                return Err(Fault::new(
                    format!("the model has {count} features, but there are {} names", names.len()),
                    "give a name for every feature, in the order of the columns it was trained on",
                ));
            }
            (FeatureNames::Own { .. }, Some(own)) => own.to_vec(),
            (FeatureNames::Own { first }, None) => {
                (0..count).map(|place| format!("f{}", place + *first as usize)).collect()
            }
        };
        Ok(names.into_iter().map(ModelFeature::new).collect())
    }
}

/// The names without some characters that another program would not take; a note if that changed any.
pub fn cleaned(
    features: &[ModelFeature],
    is_refused: impl Fn(char) -> bool,
    notes: &mut Vec<String>,
) -> Vec<String> {
    let clean = |name: &String| -> String {
        let name: String = name.chars().map(|letter| if is_refused(letter) { '_' } else { letter }).collect();
        if name.is_empty() { "_".to_owned() } else { name }
    };
    let mut taken: HashSet<String> = HashSet::new();
    let mut changed = Vec::new();
    let mut names = Vec::with_capacity(features.len());
    for feature in features {
        let plain = clean(&feature.name);
        let mut name = plain.clone();
        let mut again = 2;
        // Never one that another feature has of its own.
        while taken.contains(&name)
            || (name != feature.name && features.iter().any(|other| other.name == name))
        {
            name = format!("{plain}_{again}");
            again += 1;
        }
        if name != feature.name {
            changed.push(format!("{:?} is {name}", feature.name));
        }
        taken.insert(name.clone());
        names.push(name);
    }
    if !changed.is_empty() {
        notes.push(format!(
            "features with characters that are not taken have other names: {}",
            changed.join(", ")
        ));
    }
    names
}
