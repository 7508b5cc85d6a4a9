//! Defines linear functions, which implement [`Family`].

use super::normalise::{FeatureNormalisation, FeatureNormaliser};
use super::scorer::LinearScorer;
use crate::family::{Comparison, Family, FeatureImportance, ModelFeature, ModelRow, PartScorer};
use fearless_simd::Level;
use planetree_base::error::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Name of the family in files.
pub(crate) const KIND: &str = "linear";

/// A linear function of normalised features.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearFunction {
    /// The constant to which the terms are added.
    pub base_score: f64,
    /// How the features are normalised.
    pub normalisation: FeatureNormalisation,
    /// The terms, in the order in which they are added. A feature has at most one term.
    pub terms: Vec<LinearTerm>,
    /// The constants of terms that have not been read yet, in reverse order.
    pending: Vec<TermConstants>,
}

/// A term of a linear function: a feature and its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearTerm {
    /// Index of the feature in the model.
    pub feature: u32,
    /// The factor of the normalised value.
    pub weight: f64,
    /// Subtracted from the values of the feature: the mean (`z`) or the minimum (`minmax`) of the training rows.
    pub centre: f64,
    /// Divides the values of the feature: the standard deviation (`z`) or the range (`minmax`) of the training rows.
    pub spread: f64,
    /// The mean of the normalised feature over the training rows, from which contributions to scores are measured.
    pub mean: f64,
    /// The importance of the feature: the absolute weight times the standard deviation of the normalised feature over
    /// the training rows, which is the standard deviation of the term.
    pub gain: f64,
    /// Total weight of the training rows.
    pub cover: f64,
}

/// The numbers of a term that are stored in the header of a model file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TermConstants {
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    centre: f64,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    spread: f64,
    mean: f64,
}

/// The settings of a linear function in a model file: everything except the weights.
#[derive(Serialize, Deserialize)]
struct LinearMetadata {
    base_score: f64,
    normalise_features: FeatureNormalisation,
    /// One entry per row of the table.
    constants: Vec<TermConstants>,
}

fn zero() -> f64 {
    0.0
}

fn one() -> f64 {
    1.0
}

fn is_zero(number: &f64) -> bool {
    number.to_bits() == 0
}

fn is_one(number: &f64) -> bool {
    *number == 1.0
}

impl LinearFunction {
    /// Creates a linear function.
    pub fn new(base_score: f64, normalisation: FeatureNormalisation, terms: Vec<LinearTerm>) -> Self {
        LinearFunction { base_score, normalisation, terms, pending: Vec::new() }
    }

    /// Creates a linear function without terms from the settings in a model file.
    pub(crate) fn from_settings(settings: Map<String, Value>) -> Result<Self, serde_json::Error> {
        let LinearMetadata { base_score, normalise_features, mut constants } =
            serde_json::from_value(Value::Object(settings))?;
        constants.reverse();
        Ok(LinearFunction {
            base_score,
            normalisation: normalise_features,
            terms: Vec::new(),
            pending: constants,
        })
    }

    /// Returns the normaliser of a term's feature. `features` are the features of the model.
    pub fn normaliser(&self, term: &LinearTerm, features: &[ModelFeature]) -> FeatureNormaliser {
        let fill = features.get(term.feature as usize).and_then(|feature| feature.fill);
        FeatureNormaliser::new(self.normalisation, fill, term.centre, term.spread)
    }

    /// Returns the mean value over the training rows.
    pub fn mean(&self) -> f64 {
        self.terms.iter().fold(self.base_score, |sum, term| sum + term.weight * term.mean)
    }
}

impl Family for LinearFunction {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn used_features(&self) -> BTreeSet<u32> {
        self.terms.iter().filter(|term| term.weight != 0.0).map(|term| term.feature).collect()
    }

    fn comparison(&self) -> Option<Comparison> {
        self.normalisation.comparison()
    }

    fn scorer(&self, features: &[ModelFeature], level: Level) -> Box<dyn PartScorer> {
        Box::new(LinearScorer::new(self, features, level))
    }

    fn fault(&self, features: usize) -> Option<String> {
        if !self.base_score.is_finite() {
            return Some(format!("the base score is {}, but it must be finite", self.base_score));
        }
        if !self.pending.is_empty() {
            return Some(format!("there are constants of {} more features", self.pending.len()));
        }
        let mut seen = BTreeSet::new();
        for (number, term) in self.terms.iter().enumerate() {
            let LinearTerm { feature, weight, centre, spread, mean, gain, cover } = term;
            if *feature as usize >= features {
                return Some(format!(
                    "node {number}: unknown feature {feature}: there are {features} features"
                ));
            }
            if !seen.insert(*feature) {
                return Some(format!("node {number}: the feature has two weights"));
            }
            let numbers = [
                ("value", weight),
                ("centre", centre),
                ("spread", spread),
                ("mean", mean),
                ("gain", gain),
                ("cover", cover),
            ];
            if let Some((name, number_of)) = numbers.iter().find(|(_, number)| !number.is_finite()) {
                return Some(format!("node {number}: the {name} is {number_of}, but it must be finite"));
            }
            if *spread < 0.0 {
                return Some(format!("node {number}: the spread is {spread}, but it must not be negative"));
            }
        }
        None
    }

    fn add_importance(&self, all: &mut [FeatureImportance]) {
        for term in self.terms.iter().filter(|term| term.weight != 0.0) {
            if let Some(importance) = all.get_mut(term.feature as usize) {
                importance.gain += term.gain;
                importance.cover += term.cover;
                importance.splits += 1;
            }
        }
    }

    fn row_count(&self) -> u64 {
        self.terms.len() as u64
    }

    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&mut dyn Iterator<Item = ModelRow>) -> Result<()>,
    ) -> Result<()> {
        sink(&mut (0..).zip(&self.terms).map(|(node, term)| ModelRow {
            tree: 0,
            node,
            depth: 0,
            feature: Some(term.feature),
            threshold: None,
            missing: None,
            left: None,
            right: None,
            middle: None,
            value: term.weight,
            gain: Some(term.gain),
            cover: term.cover,
        }))
    }

    fn read_row(&mut self, row: ModelRow) -> Result<(), String> {
        let problem = |problem: &str| Err(format!("node {}: {problem}", row.node));
        if row.tree != 0 || row.node as usize != self.terms.len() {
            return problem("rows are out of order");
        }
        let Some(feature) = row.feature else { return problem("the row has no feature") };
        let Some(gain) = row.gain else { return problem("the row has no gain") };
        let Some(TermConstants { centre, spread, mean }) = self.pending.pop() else {
            return problem("the feature has no constants");
        };
        self.terms.push(LinearTerm {
            feature,
            weight: row.value,
            centre,
            spread,
            mean,
            gain,
            cover: row.cover,
        });
        Ok(())
    }

    fn renumber_features(&mut self, numbers: &[u32]) {
        for term in &mut self.terms {
            term.feature = numbers[term.feature as usize];
        }
    }

    fn settings(&self) -> Map<String, Value> {
        let constants = self.terms.iter().map(|term| TermConstants {
            centre: term.centre,
            spread: term.spread,
            mean: term.mean,
        });
        let settings = LinearMetadata {
            base_score: self.base_score,
            normalise_features: self.normalisation,
            constants: constants.collect(),
        };
        match serde_json::to_value(settings) {
            Ok(Value::Object(settings)) => settings,
            _ => unreachable!("a struct of numbers is a JSON object"),
        }
    }
}
