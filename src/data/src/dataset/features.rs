//! Finding features in a dataset by their names, in any order.

use super::manifest::Manifest;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::collections::HashMap;

/// Where features are in a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFeatures {
    /// The place of each among the dataset's features; `None` for one that counts as missing.
    pub places: Vec<Option<usize>>,
    /// The names of those that count as missing.
    pub absent: Vec<String>,
}

impl FoundFeatures {
    /// Finds all features. LETOR text names only what is there, so that an index that never occurs
    /// is missing everywhere; any other table without a column is the wrong table.
    pub fn find<'a>(
        names: impl Iterator<Item = &'a str> + Clone,
        manifest: &Manifest,
        location: &Location,
    ) -> Result<Self> {
        let by_name: HashMap<&str, usize> =
            manifest.features.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        let places: Vec<Option<usize>> = names.clone().map(|name| by_name.get(name).copied()).collect();
        let absent: Vec<String> = names
            .zip(&places)
            .filter(|(_, place)| place.is_none())
            .map(|(name, _)| name.to_owned())
            .collect();
        let may_lack = manifest.source.format == "letor" && absent.iter().all(|name| is_numbered(name));
        if !absent.is_empty() && !may_lack {
            return Err(Error::place(
                location,
                format_args!("lacks {} of {} features: {}", absent.len(), places.len(), first_few(&absent)),
                "name a dataset with the columns that the model is trained with",
            ));
        }
        Ok(FoundFeatures { places, absent })
    }

    /// What the user should know.
    pub fn warning(&self) -> Option<String> {
        let (are, count) = (if self.absent.len() == 1 { " is" } else { "s are" }, self.absent.len());
        (count > 0).then(|| {
            format!("{count} feature{are} not in the data and taken as missing: {}", first_few(&self.absent))
        })
    }
}

/// Whether a name is one that a feature of LETOR text gets from its index.
fn is_numbered(name: &str) -> bool {
    name.strip_prefix('f')
        .is_some_and(|index| !index.is_empty() && index.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Some names, as many as a message can hold.
fn first_few(names: &[String]) -> String {
    const FEW: usize = 5;
    format!("{}{}", names[..names.len().min(FEW)].join(", "), if names.len() > FEW { ", ..." } else { "" })
}
