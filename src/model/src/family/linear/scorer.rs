//! Scores rows with a linear function. Terms are added in order, for many rows at a time, so that the loops over the
//! rows can use vector instructions.

use super::function::LinearFunction;
use super::normalise::{FeatureNormalisation, FeatureNormaliser};
use crate::family::{ModelFeature, PartScorer, RowValues};
use fearless_simd::{Level, dispatch};

/// Number of rows that are scored together, unless they are a query. Their values and sums fit in the cache.
const BLOCK: usize = 512;

/// A linear function prepared for scoring many rows.
#[derive(Debug)]
pub(super) struct LinearScorer {
    base_score: f64,
    terms: Vec<PreparedTerm>,
    /// Whether all rows must be scored together, because they are normalised as a query.
    by_query: bool,
    level: Level,
}

/// A term with a weight other than 0.
#[derive(Debug, Clone, Copy)]
pub struct PreparedTerm {
    /// Index of the feature in the model.
    pub feature: usize,
    /// The weight.
    pub weight: f64,
    /// The mean of the normalised feature over the training rows.
    pub mean: f64,
    /// Normalises the feature.
    pub normaliser: FeatureNormaliser,
}

impl LinearFunction {
    /// Returns the terms whose weight is not 0. `features` are the features of the model.
    pub fn prepared_terms(&self, features: &[ModelFeature]) -> Vec<PreparedTerm> {
        let used = self.terms.iter().filter(|term| term.weight != 0.0);
        let prepare = |term: &super::LinearTerm| PreparedTerm {
            feature: term.feature as usize,
            weight: term.weight,
            mean: term.mean,
            normaliser: self.normaliser(term, features),
        };
        used.map(prepare).collect()
    }
}

impl LinearScorer {
    /// Prepares a valid linear function.
    pub(super) fn new(function: &LinearFunction, features: &[ModelFeature], level: Level) -> Self {
        LinearScorer {
            base_score: function.base_score,
            terms: function.prepared_terms(features),
            by_query: function.normalisation == FeatureNormalisation::Query,
            level,
        }
    }

    #[inline(always)]
    fn add_term(term: &PreparedTerm, values: &[f32], normalised: &mut [f64], sums: &mut [f64]) {
        term.normaliser.normalise(values, normalised);
        for (sum, normalised) in sums.iter_mut().zip(normalised) {
            *sum += term.weight * *normalised;
        }
    }
}

impl PartScorer for LinearScorer {
    fn score(&self, rows: RowValues<'_>, values: &mut [f64]) {
        values.fill(self.base_score);
        let block = if self.by_query { values.len() } else { BLOCK.min(values.len()) };
        let (mut loaded, mut normalised) = (vec![0f32; block], vec![0f64; block]);
        for (number, sums) in values.chunks_mut(block.max(1)).enumerate() {
            let rows = rows.skip(number * block);
            let (loaded, normalised) = (&mut loaded[..sums.len()], &mut normalised[..sums.len()]);
            for term in &self.terms {
                rows.load(term.feature, loaded);
                dispatch!(self.level, _ => Self::add_term(term, loaded, normalised, sums));
            }
        }
    }
}
