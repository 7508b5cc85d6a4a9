//! Words behind codes. Every conversion counts the words of a column as they come, so the same word has different
//! codes in two datasets. Whoever reads a dataset for a model, or beside another dataset, maps codes by word:
//! code there, word, code here. What only one of them knows is missing; words cannot be mapped to numbers.

use arrow::array::Float32Array;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::collections::HashMap;

/// A feature as a model, or a dataset that was read before, knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFeature {
    /// Its name.
    pub name: String,
    /// The words behind its codes, none for a feature of numbers; `None` if its values are not asked for.
    pub words: Option<Vec<String>>,
    /// The model or dataset that knows it so, for messages.
    pub place: String,
}

/// How the codes of one column of a dataset become those that are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Recoding {
    feature: String,
    dataset: String,
    known: String,
    /// By the dataset's code, NaN for a word that is not known; `None` if the dataset has numbers, so that only
    /// missing values have a meaning.
    codes: Option<Vec<f32>>,
}

impl Recoding {
    /// Maps the words of a dataset's column to those that are known; `None` if every code means the same.
    pub fn new(known: &KnownFeature, words: &[String], location: &Location) -> Result<Option<Self>> {
        let Some(known_words) = &known.words else { return Ok(None) };
        let recoding = |codes| {
            let (feature, known) = (known.name.clone(), known.place.clone());
            Ok(Some(Recoding { feature, dataset: location.to_string(), known, codes }))
        };
        match (words.is_empty(), known_words.is_empty()) {
            (false, true) => Err(Error::place(
                location,
                format_args!("{} has words here and numbers in {}", known.name, known.place),
                format_args!(
                    "convert all data with --categorical {} and train again; an imported model gets its words with \
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

    /// The places of the words that are not known.
    pub fn unknown(&self) -> impl Iterator<Item = usize> + '_ {
        let codes = self.codes.iter().flatten().enumerate();
        codes.filter(|(_, code)| code.is_nan()).map(|(place, _)| place)
    }

    /// The known codes by the dataset's, none if it has numbers.
    pub fn codes(&self) -> Option<&[f32]> {
        self.codes.as_deref()
    }

    /// A value under the known code; NaN is missing.
    fn value(&self, value: f32) -> Result<f32> {
        if !value.is_finite() {
            return Ok(f32::NAN);
        }
        let Some(codes) = &self.codes else {
            return Err(Error::place(
                &self.dataset,
                format_args!("{} has numbers here and words in {}", self.feature, self.known),
                format_args!("convert it again with --categorical {}", self.feature),
            ));
        };
        match codes.get(value as usize).filter(|_| value >= 0.0 && value.fract() == 0.0) {
            Some(code) => Ok(*code),
            None => Err(Error::place(
                &self.dataset,
                format_args!("{} is {value}, which is none of its {} words", self.feature, codes.len()),
                "convert the data again",
            )),
        }
    }

    /// Values under the known codes, in place; NaN is missing.
    pub fn values(&self, values: &mut [f32]) -> Result<()> {
        values.iter_mut().try_for_each(|value| {
            *value = self.value(*value)?;
            Ok(())
        })
    }

    /// A column under the known codes; missing values are null.
    pub fn column(&self, column: &Float32Array) -> Result<Float32Array> {
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
    fn codes_are_mapped_by_word_and_unknown_words_are_missing() {
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
            assert!(error.ends_with("which is none of its 3 words"), "{error}");
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
    fn words_do_not_become_numbers_nor_numbers_words() {
        let error = recoding(&[], &["red"]).unwrap_err();
        assert_eq!(error.to_string(), "data: colour has words here and numbers in model");
        let numbers = recoding(&["red"], &[]).unwrap().unwrap();
        numbers.values(&mut [f32::NAN]).unwrap(); // a column without a value has neither
        let error = numbers.values(&mut [1.0]).unwrap_err();
        assert_eq!(error.to_string(), "data: colour has numbers here and words in model");
        assert_eq!(error.remedy(), Some("convert it again with --categorical colour"));
    }
}
