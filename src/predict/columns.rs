//! Which column of a dataset is which feature of a model: by name, in any order.

use super::scorer::Scorer;
use crate::dataset::DatasetReader;
use crate::error::{Error, Result};
use crate::model::Model;
use std::collections::HashMap;

/// Where the features are that a model's trees ask for.
#[derive(Debug)]
pub struct ColumnPlan {
    /// Places among the dataset's features, ascending, each with the feature of the model.
    pub used: Vec<(usize, usize)>,
    /// Features of the model that the dataset does not have and that count as missing.
    pub absent: Vec<String>,
}

impl ColumnPlan {
    /// Finds a model's features in a dataset.
    pub fn new(model: &Model, scorer: &Scorer, reader: &DatasetReader) -> Result<Self> {
        let manifest = reader.manifest();
        let places: HashMap<&str, usize> =
            manifest.features.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        let names = model.features.iter().map(|feature| feature.name.as_str());
        let absent: Vec<&str> = names.filter(|name| !places.contains_key(name)).collect();
        // Text of this kind names only what is there: an index that never occurs is no fault.
        let may_lack = manifest.source.format == "letor" && absent.iter().all(|name| is_numbered(name));
        if !absent.is_empty() && !may_lack {
            return Err(Error::place(
                reader.location(),
                format_args!(
                    "lacks {} of the model's {} features: {}",
                    absent.len(),
                    model.features.len(),
                    first_few(&absent)
                ),
                "name a dataset with the columns that the model was trained with",
            ));
        }
        let place_of = |feature: u32| {
            let name = &model.features.get(feature as usize)?.name;
            Some((*places.get(name.as_str())?, feature as usize))
        };
        let mut used: Vec<_> = scorer.used_features().filter_map(place_of).collect();
        used.sort_unstable();
        Ok(ColumnPlan { used, absent: absent.into_iter().map(str::to_owned).collect() })
    }
}

/// Whether a name is one that a feature of LETOR text gets from its index.
fn is_numbered(name: &str) -> bool {
    name.strip_prefix('f')
        .is_some_and(|index| !index.is_empty() && index.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Some names, as many as a message can hold.
pub fn first_few(names: &[impl AsRef<str>]) -> String {
    const FEW: usize = 5;
    let shown: Vec<&str> = names.iter().take(FEW).map(AsRef::as_ref).collect();
    format!("{}{}", shown.join(", "), if names.len() > FEW { ", ..." } else { "" })
}
