//! Maps category codes between datasets and models. Every conversion numbers the categories of a column in order of
//! appearance, so the same category may have different codes in different datasets. When a dataset is read for a
//! model, or together with another dataset, its codes are mapped to the *known codes*, which are the codes of the
//! same categories in the model or the other dataset. Categories without a known code become missing values. It is an
//! error if a feature is categorical on one side and numeric on the other.

use arrow::array::Float32Array;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::collections::HashMap;

/// A feature of a model, or of a dataset that was read before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFeature {
    /// Name of the feature.
    pub name: String,
    /// The categories in the order of their codes, empty for a numeric feature; `None` if the codes need not be
    /// mapped.
    pub words: Option<Vec<String>>,
    /// Location of the model or dataset that has the feature, for messages.
    pub place: String,
}

/// Maps the category codes in a column of a dataset to the known codes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recoding {
    feature: String,
    dataset: String,
    known: String,
    /// For each code of the dataset, the known code, or NaN for an unknown category; `None` if the dataset's column
    /// has no categories, so that all its values must be missing.
    codes: Option<Vec<f32>>,
}

impl Recoding {
    /// Creates the mapping for a column of a dataset with the categories `words`. Returns `None` if no values need to
    /// be changed.
    pub(super) fn new(known: &KnownFeature, words: &[String], location: &Location) -> Result<Option<Self>> {
        let Some(known_words) = &known.words else { return Ok(None) };
        let recoding = |codes| {
            let (feature, known) = (known.name.clone(), known.place.clone());
            Ok(Some(Recoding { feature, dataset: location.to_string(), known, codes }))
        };
        match (words.is_empty(), known_words.is_empty()) {
            (false, true) => Err(Error::place(
                location,
                format_args!("{} is categorical here, but numeric in {}", known.name, known.place),
                format_args!(
                    "convert all data with --categorical {} and train again; an imported model gets its categories with \
                     `planetree import --categories-from DATASET`",
                    known.name
                ),
            )),
            (true, false) => recoding(None),
            _ if known_words.starts_with(words) => Ok(None),
            _ => {
                let codes: HashMap<&str, f32> =
                    known_words.iter().enumerate().map(|(code, word)| (word.as_str(), code as f32)).collect();
                let code = |word: &String| codes.get(word.as_str()).copied().unwrap_or(f32::NAN);
                recoding(Some(words.iter().map(code).collect()))
            }
        }
    }

    /// Returns the dataset's codes of unknown categories.
    pub(super) fn unknown(&self) -> impl Iterator<Item = usize> + '_ {
        let codes = self.codes.iter().flatten().enumerate();
        codes.filter(|(_, code)| code.is_nan()).map(|(place, _)| place)
    }

    /// Returns the known code for each code of the dataset, or `None` if the dataset's column has no categories.
    pub(super) fn codes(&self) -> Option<&[f32]> {
        self.codes.as_deref()
    }

    /// Maps a code of the dataset to the known code. Returns NaN for missing values and unknown categories.
    fn value(&self, value: f32) -> Result<f32> {
        if !value.is_finite() {
            return Ok(f32::NAN);
        }
        let Some(codes) = &self.codes else {
            return Err(Error::place(
                &self.dataset,
                format_args!("{} is numeric here, but categorical in {}", self.feature, self.known),
                format_args!("convert this dataset again with --categorical {}", self.feature),
            ));
        };
        match codes.get(value as usize).filter(|_| value >= 0.0 && value.fract() == 0.0) {
            Some(code) => Ok(*code),
            None => Err(Error::place(
                &self.dataset,
                format_args!("{} has the code {value}, but only {} categories", self.feature, codes.len()),
                "convert the data again",
            )),
        }
    }

    /// Replaces codes of the dataset by the known codes. Missing values and unknown categories become NaN.
    pub(super) fn values(&self, values: &mut [f32]) -> Result<()> {
        values.iter_mut().try_for_each(|value| {
            *value = self.value(*value)?;
            Ok(())
        })
    }

    /// Returns a column with the codes replaced by the known codes. Missing values and unknown categories become
    /// null.
    pub(super) fn column(&self, column: &Float32Array) -> Result<Float32Array> {
        let value = |value: Option<f32>| match value {
            Some(value) => Ok(Some(self.value(value)?).filter(|value| !value.is_nan())),
            None => Ok(None),
        };
        column.iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn recoding(known: &[&str], words: &[&str]) -> Result<Option<Recoding>> {
        let known = KnownFeature { name: "colour".into(), words: Some(texts(known)), place: "model".into() };
        Recoding::new(&known, &texts(words), &Location::Local("data".into()))
    }

    #[test]
    fn codes_are_mapped_by_category_and_unknown_ones_are_missing() {
        let mapped = recoding(&["red", "green"], &["green", "blue", "red"]).unwrap().unwrap();
        let column = Float32Array::from(vec![Some(0.0), None, Some(1.0), Some(2.0), Some(f32::NAN)]);
        let expected = Float32Array::from(vec![Some(1.0), None, None, Some(0.0), None]);
        assert_eq!(mapped.column(&column).unwrap(), expected);
        assert_eq!(mapped.unknown().collect::<Vec<_>>(), [1]);
        let mut values = [2.0, f32::NAN, 0.0];
        mapped.values(&mut values).unwrap();
        assert_eq!((values[0], values[2]), (0.0, 1.0));
        assert!(values[1].is_nan());
        for odd in [3.0, -1.0, 0.5] {
            let error = mapped.values(&mut [odd]).unwrap_err().to_string();
            assert!(error.ends_with("but only 3 categories"), "{error}");
        }
    }

    #[test]
    fn equal_codes_are_not_mapped() {
        assert_eq!(recoding(&["red", "green"], &["red", "green"]).unwrap(), None);
        assert_eq!(recoding(&["red", "green"], &["red"]).unwrap(), None);
        assert_eq!(recoding(&[], &[]).unwrap(), None);
        assert!(recoding(&["red"], &["red", "green"]).unwrap().is_some(), "green is unknown");
    }

    #[test]
    fn categories_and_numbers_are_not_mapped_to_each_other() {
        let error = recoding(&[], &["red"]).unwrap_err();
        assert_eq!(error.to_string(), "data: colour is categorical here, but numeric in model");
        let numbers = recoding(&["red"], &[]).unwrap().unwrap();
        numbers.values(&mut [f32::NAN]).unwrap(); // a column without values is neither numeric nor categorical
        let error = numbers.values(&mut [1.0]).unwrap_err();
        assert_eq!(error.to_string(), "data: colour is numeric here, but categorical in model");
        assert_eq!(error.remedy(), Some("convert this dataset again with --categorical colour"));
    }
}
