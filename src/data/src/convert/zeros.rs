//! Treats zeros as missing values, for data that write 0 where nothing is known.

use crate::dataset::{Categories, FeatureNames};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, digest_of};
use planetree_base::suggest::{did_you_mean, nearest};

/// Features whose zeros are missing values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ZeroAsMissing {
    /// No feature.
    #[default]
    None,
    /// All features but categorical ones, whose values are codes.
    All,
    /// The features with these names.
    Features(Vec<String>),
}

impl ZeroAsMissing {
    /// Returns the fingerprint of the input with missing values in place of zeros, given that of the input as it is.
    pub(super) fn fingerprint(&self, source: Digest) -> Digest {
        match self {
            ZeroAsMissing::None => source,
            ZeroAsMissing::All => digest_of(format!("{source} zeros missing").as_bytes()),
            ZeroAsMissing::Features(names) => {
                digest_of(format!("{source} zeros missing: {names:?}").as_bytes())
            }
        }
    }

    /// Finds the features among those of the input.
    pub(super) fn find(&self, names: &FeatureNames, categories: &[Categories]) -> Result<ZeroFeatures> {
        let is_category = |name: &str| categories.iter().any(|column| column.feature == name);
        match self {
            ZeroAsMissing::None => Ok(ZeroFeatures::Listed(Vec::new())),
            ZeroAsMissing::All => {
                let names = match names {
                    FeatureNames::Given(names) => names.as_slice(),
                    FeatureNames::Numbered | FeatureNames::Selected(_) => &[],
                };
                let words = (0..).zip(names).filter(|(_, name)| is_category(name));
                Ok(ZeroFeatures::AllBut(words.map(|(feature, _)| feature).collect()))
            }
            ZeroAsMissing::Features(wanted) => {
                let mut found = Vec::with_capacity(wanted.len());
                for name in wanted {
                    let feature = match names {
                        FeatureNames::Given(names) => names.iter().position(|other| other == name),
                        FeatureNames::Numbered => numbered(name),
                        FeatureNames::Selected(kept) => numbered(name)
                            .and_then(|feature| kept.iter().position(|other| *other as usize == feature)),
                    };
                    let Some(feature) = feature else { return Err(unknown(name, names)) };
                    if is_category(name) {
                        return Err(categorical(name));
                    }
                    found.push(feature as u32); // bounded by --max-features
                }
                found.sort_unstable();
                Ok(ZeroFeatures::Listed(found))
            }
        }
    }
}

/// Indices of features whose zeros are missing values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ZeroFeatures {
    /// These features, in ascending order.
    Listed(Vec<u32>),
    /// All features but these, in ascending order.
    AllBut(Vec<u32>),
}

impl ZeroFeatures {
    /// Returns whether no zero is missing.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, ZeroFeatures::Listed(list) if list.is_empty())
    }

    /// Returns whether the zeros of a feature are missing values.
    pub(super) fn contains(&self, feature: u32) -> bool {
        match self {
            ZeroFeatures::Listed(list) => list.binary_search(&feature).is_ok(),
            ZeroFeatures::AllBut(list) => list.binary_search(&feature).is_err(),
        }
    }

    /// Checks that every listed feature is one of the `width` features of the data.
    pub(super) fn check_width(&self, width: usize, names: &FeatureNames) -> Result<()> {
        match self {
            ZeroFeatures::Listed(list) => match list.iter().find(|feature| **feature as usize >= width) {
                Some(feature) => Err(unknown(&names.name(*feature as usize), names)),
                None => Ok(()),
            },
            ZeroFeatures::AllBut(_) => Ok(()),
        }
    }

    /// Returns the error for a listed feature that turned out to be categorical.
    pub(super) fn check_categories(
        &self,
        features: &[(u32, Vec<String>)],
        names: &FeatureNames,
    ) -> Result<()> {
        let listed = |feature: &u32| matches!(self, ZeroFeatures::Listed(_)) && self.contains(*feature);
        match features.iter().find(|(feature, _)| listed(feature)) {
            Some((feature, _)) => Err(categorical(&names.name(*feature as usize))),
            None => Ok(()),
        }
    }
}

/// Returns the index of a feature of a text without names: `f1` is the first.
fn numbered(name: &str) -> Option<usize> {
    let number = name.strip_prefix('f').filter(|digits| !digits.starts_with(['0', '+']))?;
    number.parse::<u32>().ok()?.checked_sub(1).map(|index| index as usize)
}

fn unknown(name: &str, names: &FeatureNames) -> Error {
    let remedy = match names {
        FeatureNames::Given(names) => {
            did_you_mean(&nearest(name, names.iter().map(String::as_str)), "name features of the input")
        }
        FeatureNames::Numbered | FeatureNames::Selected(_) => {
            "the features of a text without names are f1, f2, ...".to_owned()
        }
    };
    Error::usage(format_args!("--zero-as-missing {name}: there is no such feature"), remedy)
}

fn categorical(name: &str) -> Error {
    Error::usage(
        format_args!("--zero-as-missing {name}: the feature is categorical, so it has no zeros"),
        "leave it out",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_found_by_name_or_number() {
        let given = FeatureNames::Given(["bm25", "clicks", "site"].map(str::to_owned).to_vec());
        let words = [Categories { feature: "site".to_owned(), words: vec!["a".to_owned()] }];
        let listed =
            |names: &[&str]| ZeroAsMissing::Features(names.iter().map(|name| (*name).to_owned()).collect());
        let found = listed(&["clicks", "bm25"]).find(&given, &words).unwrap();
        assert_eq!(found, ZeroFeatures::Listed(vec![0, 1]));
        let all = ZeroAsMissing::All.find(&given, &words).unwrap();
        assert_eq!([0, 1, 2].map(|feature| all.contains(feature)), [true, true, false]);
        assert!(ZeroAsMissing::None.find(&given, &words).unwrap().is_empty());
        let text = |names: &[&str]| listed(names).find(&FeatureNames::Numbered, &[]);
        assert_eq!(text(&["f46", "f1"]).unwrap(), ZeroFeatures::Listed(vec![0, 45]));
        assert!(text(&["f46"]).unwrap().check_width(46, &FeatureNames::Numbered).is_ok());
        assert!(text(&["f47"]).unwrap().check_width(46, &FeatureNames::Numbered).is_err());
        for odd in ["f0", "f", "1", "f+1", "f01", "bm25", "f99999999999"] {
            assert_eq!(text(&[odd]).unwrap_err().exit_code(), 2, "{odd}");
        }
        assert!(listed(&["site"]).find(&given, &words).is_err());
        assert!(listed(&["click"]).find(&given, &words).unwrap_err().to_string().contains("no such feature"));
    }
}
