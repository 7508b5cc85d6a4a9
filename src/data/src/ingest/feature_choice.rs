//! Chooses features by the names that they have in the dataset, for inputs whose columns have no other names: LETOR
//! text, and tables with a CatBoost column description.

use super::decode::{Decoder, Lines};
use super::reader::IngestOptions;
use super::roles::{ColumnSelection, RoleOptions};
use crate::dataset::FeatureNames;
use crate::rows::BlockBuilder;
use crate::rows::fault::Fault;
use planetree_base::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The features that `--feature-columns` and `--ignore-columns` choose.
pub(super) struct FeatureChoice {
    /// For each feature, whether it is kept.
    pub is_kept: Vec<bool>,
    /// The names and patterns that were given, each with the first feature that it means.
    wanted: Vec<(String, usize)>,
}

impl FeatureChoice {
    /// Finds the features among `names`. `file` is the name of the input for messages.
    pub(super) fn find(options: &RoleOptions, names: &[String], file: &str) -> Result<Self> {
        let mut wanted: Vec<(String, usize)> = Vec::new();
        let mut is_kept = vec![options.features.is_empty(); names.len()];
        // A feature that is both kept and ignored is ignored.
        for (given, keeps, may_be_absent) in
            [(&options.features, true, false), (&options.ignored, false, options.is_partial)]
        {
            for name in given {
                let one = std::slice::from_ref(name);
                let places = ColumnSelection::find(one, names, file, may_be_absent)?.places();
                if let Some(first) = places.iter().min() {
                    wanted.push((name.clone(), *first));
                }
                for place in places {
                    is_kept[place] = keeps;
                }
            }
        }
        Ok(FeatureChoice { is_kept, wanted })
    }
}

/// The features of LETOR text that are kept.
#[derive(Debug)]
pub(crate) struct TextFeatures {
    /// Name of the first input, for messages.
    file: String,
    /// For each feature of the text, its index among those that are kept.
    places: Vec<Option<u32>>,
    /// The names and patterns that must mean a feature of the text, each with the first feature that it means.
    wanted: Vec<(String, usize)>,
    /// Number of features that occur in the text so far.
    width: AtomicU32,
}

impl TextFeatures {
    /// Finds the features that the options choose, and returns them with their names; `None` if all features are kept.
    pub(super) fn find(options: &IngestOptions, file: &str) -> Result<Option<(Self, FeatureNames)>> {
        let roles = &options.roles;
        if roles.features.is_empty() && roles.ignored.is_empty() {
            return Ok(None);
        }
        // Without given names, the number of features is known when all text has been read.
        let names: Vec<String> = match &options.feature_names {
            Some(names) => names.clone(),
            None => (1..=options.max_features).map(|number| format!("f{number}")).collect(),
        };
        let is_named = options.feature_names.is_some();
        let choice = FeatureChoice::find(roles, &names, file).map_err(|error| {
            error.map_remedy(|remedy| match is_named || !remedy.starts_with("the columns are") {
                true => remedy.to_owned(),
                false => "the features of a text without names are f1, f2, ...".to_owned(),
            })
        })?;
        let mut kept: Vec<u32> = Vec::new();
        let mut places: Vec<Option<u32>> = Vec::with_capacity(names.len());
        for (feature, is_kept) in (0u32..).zip(&choice.is_kept) {
            places.push(if *is_kept { Some(kept.len() as u32) } else { None });
            if *is_kept {
                kept.push(feature);
            }
        }
        let needs_check = !is_named && !roles.is_partial;
        let wanted = if needs_check { choice.wanted } else { Vec::new() };
        let features = if is_named {
            FeatureNames::Given(kept.iter().map(|feature| names[*feature as usize].clone()).collect())
        } else {
            FeatureNames::Selected(kept.into())
        };
        let chosen = TextFeatures { file: file.to_owned(), places, wanted, width: AtomicU32::new(0) };
        Ok(Some((chosen, features)))
    }

    /// Fails if a name or pattern means none of the features that occurred in the text.
    pub(crate) fn check_width(&self) -> Result<()> {
        let width = self.width.load(Ordering::Relaxed) as usize;
        match self.wanted.iter().find(|(_, first)| *first >= width) {
            None => Ok(()),
            Some((name, _)) => Err(Error::usage(
                format_args!("{}: no feature matches {name:?}", self.file),
                format_args!("the features of this text are f1, f2, ..., f{width}"),
            )),
        }
    }
}

/// A decoder of LETOR text that keeps some of the features.
pub(super) struct ChosenFeaturesDecoder {
    pub decoder: Arc<dyn Decoder>,
    pub features: Arc<TextFeatures>,
}

impl Decoder for ChosenFeaturesDecoder {
    fn decode(&self, lines: Lines<'_>, builder: &mut BlockBuilder) -> Result<(), Fault> {
        self.decoder.decode(lines, builder)?;
        let places = &self.features.places;
        let width = builder.choose_features(|feature| places.get(feature as usize).copied().flatten());
        self.features.width.fetch_max(width, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        features: &[&str],
        ignored: &[&str],
        names: Option<&[&str]>,
    ) -> Result<(TextFeatures, FeatureNames)> {
        let list = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let options = IngestOptions {
            max_features: 50,
            feature_names: names.map(list),
            roles: RoleOptions { features: list(features), ignored: list(ignored), ..RoleOptions::default() },
            ..IngestOptions::default()
        };
        TextFeatures::find(&options, "t.txt").map(|found| found.expect("options are given"))
    }

    #[test]
    fn features_of_text_are_chosen_by_number_or_pattern() {
        let (text, features) = chosen(&[], &["f2", "f4*"], None).unwrap();
        assert_eq!([0, 1, 2, 3].map(|feature| features.name(feature)), ["f1", "f3", "f5", "f6"]);
        assert_eq!(text.places[..5], [Some(0), None, Some(1), None, Some(2)]);
        assert_eq!(features.given(), None);
        let (_, features) = chosen(&["f3", "f1"], &["f3"], None).unwrap();
        assert_eq!(features, FeatureNames::Selected(Arc::from([0])));
        assert!(TextFeatures::find(&IngestOptions::default(), "t.txt").unwrap().is_none());
        let error = chosen(&["bm25"], &[], None).err().unwrap();
        assert_eq!(error.to_string(), "t.txt: there is no column \"bm25\"");
        assert_eq!(error.remedy(), Some("the features of a text without names are f1, f2, ..."));
    }

    #[test]
    fn given_names_of_text_features_are_chosen() {
        let names = ["bm25", "clicks", "age"];
        let (text, features) = chosen(&[], &["cl*"], Some(&names)).unwrap();
        assert_eq!(features, FeatureNames::Given(vec!["bm25".to_owned(), "age".to_owned()]));
        assert!(text.check_width().is_ok());
        assert!(chosen(&["f1"], &[], Some(&names)).is_err());
    }

    #[test]
    fn features_that_the_text_does_not_have_are_errors() {
        let (text, _) = chosen(&[], &["f3", "f4*"], None).unwrap();
        text.width.store(4, Ordering::Relaxed);
        assert!(text.check_width().is_ok());
        text.width.store(3, Ordering::Relaxed);
        assert_eq!(text.check_width().unwrap_err().to_string(), "t.txt: no feature matches \"f4*\"");
    }
}
