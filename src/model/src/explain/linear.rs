//! Explains the values of a part that is a linear function. The contribution of a feature is its weight times the
//! difference between its normalised value and the mean of the normalised feature over the training rows. This is the
//! feature's Shapley value if unknown features have the mean of the training rows, so the expected value is the mean
//! score of the training rows, as for trees.

use super::explainer::PartExplainer;
use crate::family::RowValues;
use crate::family::linear::PreparedTerm;
use crate::model::{LinearFunction, ModelFeature};
use std::collections::BTreeSet;

/// A linear function prepared for explaining many rows.
#[derive(Debug)]
pub(super) struct LinearExplainer {
    expected: f64,
    /// The weight of the part.
    weight: f64,
    terms: Vec<PreparedTerm>,
}

impl LinearExplainer {
    /// Prepares a linear function. `weight` is the weight of the part.
    pub(super) fn new(function: &LinearFunction, weight: f64, features: &[ModelFeature]) -> Self {
        LinearExplainer {
            expected: weight * function.mean(),
            weight,
            terms: function.prepared_terms(features),
        }
    }
}

impl PartExplainer for LinearExplainer {
    fn expected(&self) -> f64 {
        self.expected
    }

    fn used_features(&self) -> BTreeSet<u32> {
        self.terms.iter().map(|term| term.feature as u32).collect()
    }

    fn add(&self, rows: RowValues<'_>, features: usize, out: &mut [f64]) {
        let count = out.len() / features.max(1);
        let (mut loaded, mut normalised) = (vec![0f32; count], vec![0f64; count]);
        for PreparedTerm { feature, weight, mean, normaliser } in &self.terms {
            rows.load(*feature, &mut loaded);
            normaliser.normalise(&loaded, &mut normalised);
            for (out, value) in out.chunks_mut(features).zip(&normalised) {
                out[*feature] += self.weight * weight * (value - mean);
            }
        }
    }
}
