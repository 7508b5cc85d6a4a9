//! Maps the features of a model, or of another dataset, to the columns of a dataset by name. Also maps the category
//! codes of the dataset to those of the model or other dataset, which are called the known codes.

use super::manifest::Manifest;
use super::words::{KnownFeature, Recoding};
use arrow::array::Float32Array;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The mapping of a list of features to the columns of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureMapping {
    /// For each feature, its index among the features of the dataset; `None` if the dataset lacks the feature, which
    /// is then treated as missing in all rows.
    pub columns: Vec<Option<usize>>,
    /// Names of the features that the dataset lacks and that are treated as missing.
    pub absent: Vec<String>,
    /// For each feature, the mapping of its category codes; `None` if its values are used unchanged.
    recodings: Vec<Option<Recoding>>,
    /// Categories that are unknown to the model or reference dataset and are treated as missing.
    unknown: Vec<UnknownCategories>,
}

/// Categories of a feature that are unknown to a model or reference dataset.
#[derive(Debug, Clone, PartialEq)]
struct UnknownCategories {
    feature: String,
    words: Vec<String>,
    /// The model or reference dataset to which the categories are unknown, for messages.
    place: String,
}

impl FeatureMapping {
    /// Finds the columns of all features in a dataset. LETOR text lists only present values, so if the dataset comes
    /// from LETOR text, an absent feature with a default name such as `f12` is treated as missing in all rows. Any
    /// other absent feature is an error.
    pub fn find(known: &[KnownFeature], manifest: &Manifest, location: &Location) -> Result<Self> {
        let by_name: HashMap<&str, usize> =
            manifest.features.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        let names = known.iter().map(|feature| feature.name.as_str());
        let columns: Vec<Option<usize>> = names.map(|name| by_name.get(name).copied()).collect();
        let absent = Self::absent(known, manifest);
        if !Self::may_lack(&absent, manifest) {
            return Err(Error::place(
                location,
                format_args!("lacks {} of {} features: {}", absent.len(), columns.len(), first_few(&absent)),
                "use a dataset with the columns that the model was trained on",
            ));
        }
        let mut found =
            FeatureMapping { recodings: vec![None; columns.len()], columns, absent, unknown: Vec::new() };
        found.map_categories(known, manifest, location)?;
        Ok(found)
    }

    /// Returns an error if one of several datasets that are read as one lacks features of the others.
    pub(crate) fn check_same(known: &[KnownFeature], manifest: &Manifest, location: &Location) -> Result<()> {
        let absent = Self::absent(known, manifest);
        match Self::may_lack(&absent, manifest) {
            true => Ok(()),
            false => Err(Error::place(
                location,
                format_args!(
                    "lacks {} of the {} features of all datasets together: {}",
                    absent.len(),
                    known.len(),
                    first_few(&absent)
                ),
                "pass --common-features to use only the features that all datasets have",
            )),
        }
    }

    /// Returns the names of the features that a dataset lacks.
    fn absent(known: &[KnownFeature], manifest: &Manifest) -> Vec<String> {
        let present: HashSet<&str> = manifest.features.iter().map(String::as_str).collect();
        let names = known.iter().map(|feature| &feature.name);
        names.filter(|name| !present.contains(name.as_str())).cloned().collect()
    }

    /// Returns whether a dataset may lack features, because they are missing in all its rows.
    fn may_lack(absent: &[String], manifest: &Manifest) -> bool {
        absent.is_empty()
            || (manifest.source.format == "letor" && absent.iter().all(|name| is_numbered(name)))
    }

    fn map_categories(
        &mut self,
        known: &[KnownFeature],
        manifest: &Manifest,
        location: &Location,
    ) -> Result<()> {
        let words: HashMap<&str, &[String]> =
            manifest.categories.iter().map(|column| (column.feature.as_str(), &column.words[..])).collect();
        for (place, feature) in known.iter().enumerate().filter(|(place, _)| self.columns[*place].is_some()) {
            let words = words.get(feature.name.as_str()).copied().unwrap_or_default();
            self.recodings[place] = Recoding::new(feature, words, location)?;
            let unknown = self.recodings[place].iter().flat_map(Recoding::unknown);
            let unknown: Vec<String> = unknown.map(|code| words[code].clone()).collect();
            if !unknown.is_empty() {
                let (feature, place) = (feature.name.clone(), feature.place.clone());
                self.unknown.push(UnknownCategories { feature, words: unknown, place });
            }
        }
        Ok(())
    }

    /// Replaces the category codes in the values of a feature by the known codes. Unknown categories become NaN.
    pub(crate) fn recode(&self, feature: usize, values: &mut [f32]) -> Result<()> {
        self.recodings[feature].as_ref().map_or(Ok(()), |recoding| recoding.values(values))
    }

    /// Returns the column of a feature with the category codes replaced by the known codes. Unknown categories become
    /// null.
    pub fn recoded<'a>(&self, feature: usize, column: &'a Float32Array) -> Result<Cow<'a, Float32Array>> {
        match &self.recodings[feature] {
            None => Ok(Cow::Borrowed(column)),
            Some(recoding) => recoding.column(column).map(Cow::Owned),
        }
    }

    /// Returns a string that identifies the mapping. Different mappings of the same dataset have different strings.
    pub fn identity(&self) -> String {
        let mut text = format!("{:?}", self.columns);
        for (feature, recoding) in self.recodings.iter().enumerate() {
            if let Some(recoding) = recoding {
                text.push_str(&format!(" {feature}: {:?}", recoding.codes()));
            }
        }
        text
    }

    /// Returns a warning for the user about absent features and unknown categories, or `None` if there are none.
    pub fn warning(&self) -> Option<String> {
        let (are, count) = (if self.absent.len() == 1 { " is" } else { "s are" }, self.absent.len());
        let absent = (count > 0).then(|| {
            format!(
                "{count} feature{are} not in the data and treated as missing: {}",
                first_few(&self.absent)
            )
        });
        let warnings: Vec<String> = absent.into_iter().chain(self.unknown_categories()).collect();
        (!warnings.is_empty()).then(|| warnings.join("; "))
    }

    fn unknown_categories(&self) -> Option<String> {
        let place = &self.unknown.first()?.place;
        let count: usize = self.unknown.iter().map(|unknown| unknown.words.len()).sum();
        let of = |unknown: &UnknownCategories| {
            let words: Vec<String> = unknown.words.iter().map(|word| format!("{word:?}")).collect();
            format!("{} ({})", unknown.feature, first_few(&words))
        };
        let features: Vec<String> = self.unknown.iter().map(of).collect();
        let are = if count == 1 { "y is" } else { "ies are" };
        Some(format!(
            "{count} categor{are} unknown to {place} and treated as missing: {}",
            first_few(&features)
        ))
    }
}

/// Checks whether this is the default name of a feature in LETOR text, such as `f12`.
fn is_numbered(name: &str) -> bool {
    name.strip_prefix('f')
        .is_some_and(|index| !index.is_empty() && index.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Returns the first few names as a comma-separated list, for messages.
pub fn first_few(names: &[String]) -> String {
    const FEW: usize = 5;
    format!("{}{}", names[..names.len().min(FEW)].join(", "), if names.len() > FEW { ", ..." } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Categories, ManifestSource};
    use planetree_base::storage::digest_of;

    #[test]
    fn identity_depends_on_the_codes() {
        let source = ManifestSource { format: "csv".into(), bytes: 1, fingerprint: digest_of(b"x") };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let manifest = Manifest {
            features: vec!["x".into(), "colour".into()],
            categories: vec![Categories { feature: "colour".into(), words: words(&["red", "blue"]) }],
            ..Manifest::new(source)
        };
        let found = |known: &[&str]| {
            let feature =
                |name: &str, words| KnownFeature { name: name.into(), words, place: "model".into() };
            let known = [feature("colour", Some(words(known))), feature("x", None)];
            FeatureMapping::find(&known, &manifest, &Location::Local("data".into())).unwrap()
        };
        let (same, swapped, unknown) =
            (found(&["red", "blue", "green"]), found(&["blue", "red"]), found(&["red"]));
        assert_eq!(same.identity(), "[Some(1), Some(0)]", "without codes if nothing is mapped");
        assert!(same.identity() != swapped.identity() && swapped.identity() != unknown.identity());
        assert_eq!((same.warning(), swapped.warning()), (None, None));
        let warning = "1 category is unknown to model and treated as missing: colour (\"blue\")";
        assert_eq!(unknown.warning().as_deref(), Some(warning));
    }
}
