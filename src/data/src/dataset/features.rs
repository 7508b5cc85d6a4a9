//! Finding features in a dataset by their names, in any order, and their words under any codes.

use super::manifest::Manifest;
use super::words::{KnownFeature, Recoding};
use arrow::array::Float32Array;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::borrow::Cow;
use std::collections::HashMap;

/// Where features are in a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundFeatures {
    /// The place of each among the dataset's features; `None` for one that counts as missing.
    pub places: Vec<Option<usize>>,
    /// The names of those that count as missing.
    pub absent: Vec<String>,
    /// How the codes of each are mapped; `None` for one that is read as it is.
    recodings: Vec<Option<Recoding>>,
    /// Words that count as missing.
    unknown: Vec<UnknownWords>,
}

/// The words of a feature that are not known to whoever asks for it.
#[derive(Debug, Clone, PartialEq)]
struct UnknownWords {
    feature: String,
    words: Vec<String>,
    /// To whom.
    place: String,
}

impl FoundFeatures {
    /// Finds all features. LETOR text names only what is there, so that an index that never occurs
    /// is missing everywhere; any other table without a column is the wrong table.
    pub fn find(known: &[KnownFeature], manifest: &Manifest, location: &Location) -> Result<Self> {
        let names = known.iter().map(|feature| feature.name.as_str());
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
        let mut found =
            FoundFeatures { recodings: vec![None; places.len()], places, absent, unknown: Vec::new() };
        found.map_words(known, manifest, location)?;
        Ok(found)
    }

    fn map_words(&mut self, known: &[KnownFeature], manifest: &Manifest, location: &Location) -> Result<()> {
        let words: HashMap<&str, &[String]> =
            manifest.categories.iter().map(|column| (column.feature.as_str(), &column.words[..])).collect();
        for (place, feature) in known.iter().enumerate().filter(|(place, _)| self.places[*place].is_some()) {
            let words = words.get(feature.name.as_str()).copied().unwrap_or_default();
            self.recodings[place] = Recoding::new(feature, words, location)?;
            let unknown = self.recodings[place].iter().flat_map(Recoding::unknown);
            let unknown: Vec<String> = unknown.map(|code| words[code].clone()).collect();
            if !unknown.is_empty() {
                let (feature, place) = (feature.name.clone(), feature.place.clone());
                self.unknown.push(UnknownWords { feature, words: unknown, place });
            }
        }
        Ok(())
    }

    /// Maps values of a feature to the codes that are known; missing ones are NaN.
    pub fn recode(&self, feature: usize, values: &mut [f32]) -> Result<()> {
        self.recodings[feature].as_ref().map_or(Ok(()), |recoding| recoding.values(values))
    }

    /// A column of a feature under the codes that are known.
    pub fn recoded<'a>(&self, feature: usize, column: &'a Float32Array) -> Result<Cow<'a, Float32Array>> {
        match &self.recodings[feature] {
            None => Ok(Cow::Borrowed(column)),
            Some(recoding) => recoding.column(column).map(Cow::Owned),
        }
    }

    /// What tells values that are read this way apart from others of the same dataset.
    pub fn identity(&self) -> String {
        let mut text = format!("{:?}", self.places);
        for (feature, recoding) in self.recodings.iter().enumerate() {
            if let Some(recoding) = recoding {
                text.push_str(&format!(" {feature}: {:?}", recoding.codes()));
            }
        }
        text
    }

    /// What the user should know.
    pub fn warning(&self) -> Option<String> {
        let (are, count) = (if self.absent.len() == 1 { " is" } else { "s are" }, self.absent.len());
        let absent = (count > 0).then(|| {
            format!("{count} feature{are} not in the data and taken as missing: {}", first_few(&self.absent))
        });
        let warnings: Vec<String> = absent.into_iter().chain(self.unknown_words()).collect();
        (!warnings.is_empty()).then(|| warnings.join("; "))
    }

    fn unknown_words(&self) -> Option<String> {
        let place = &self.unknown.first()?.place;
        let count: usize = self.unknown.iter().map(|unknown| unknown.words.len()).sum();
        let of = |unknown: &UnknownWords| {
            let words: Vec<String> = unknown.words.iter().map(|word| format!("{word:?}")).collect();
            format!("{} ({})", unknown.feature, first_few(&words))
        };
        let features: Vec<String> = self.unknown.iter().map(of).collect();
        let are = if count == 1 { " is" } else { "s are" };
        Some(format!("{count} word{are} not known to {place} and taken as missing: {}", first_few(&features)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Categories, Source};
    use planetree_base::storage::digest_of;

    #[test]
    fn values_under_other_codes_are_other_values() {
        let source = Source { format: "csv".into(), bytes: 1, fingerprint: digest_of(b"x") };
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
            FoundFeatures::find(&known, &manifest, &Location::Local("data".into())).unwrap()
        };
        let (same, turned, unknown) =
            (found(&["red", "blue", "green"]), found(&["blue", "red"]), found(&["red"]));
        assert_eq!(same.identity(), "[Some(1), Some(0)]", "as ever where nothing is mapped");
        assert!(same.identity() != turned.identity() && turned.identity() != unknown.identity());
        assert_eq!((same.warning(), turned.warning()), (None, None));
        let warning = "1 word is not known to model and taken as missing: colour (\"blue\")";
        assert_eq!(unknown.warning().as_deref(), Some(warning));
    }
}
