//! Multiplies the standardised features of a query by vectors. The features are normalised on the way, so that no matrix is
//! stored. They are not shifted to mean 0: only differences between the documents of a query count.

use super::plan::StandardPlan;
use planetree_model::family::linear::{FeatureNormaliser, Scaling};
use std::ops::Range;

/// Number of partial sums of a product, which are added at the end.
const LANES: usize = 8;

/// The features of a query's documents, divided by their standard deviations.
pub(crate) struct QueryFeatures<'a> {
    plan: &'a StandardPlan,
    columns: &'a [Vec<f32>],
    query: Range<usize>,
    scalings: &'a [Scaling],
}

impl<'a> QueryFeatures<'a> {
    /// Creates the features of the documents `query`. `columns` are the values of their partition, and `scalings` is a
    /// buffer.
    #[inline(always)]
    pub(crate) fn new(
        plan: &'a StandardPlan,
        normalisers: &[FeatureNormaliser],
        columns: &'a [Vec<f32>],
        query: Range<usize>,
        scalings: &'a mut Vec<Scaling>,
    ) -> Self {
        scalings.clear();
        for (planned, normaliser) in plan.features.iter().zip(normalisers) {
            let values = &columns[planned.feature as usize][query.clone()];
            scalings.push(normaliser.scaling(values).times(1.0 / planned.deviation));
        }
        QueryFeatures { plan, columns, query, scalings }
    }

    /// Adds the product with `weights`, one per feature, to `scores`, one per document.
    #[inline(always)]
    pub(crate) fn add_scores(&self, weights: &[f64], scores: &mut [f64]) {
        for ((values, scaling), weight) in self.scaled().zip(weights).filter(|(_, weight)| **weight != 0.0) {
            for (score, value) in scores.iter_mut().zip(values) {
                *score += weight * scaling.of(*value);
            }
        }
    }

    /// Passes the product of each feature with `numbers`, one per document, to `add`. The order of additions is fixed, so
    /// the result does not depend on the vector instructions.
    #[inline(always)]
    pub(crate) fn each_product(&self, numbers: &[f64], mut add: impl FnMut(usize, f64)) {
        for (feature, (values, scaling)) in self.scaled().enumerate() {
            let mut lanes = [0.0; LANES];
            let (values, numbers) = (values.chunks_exact(LANES), numbers.chunks_exact(LANES));
            let rest = values.remainder().iter().zip(numbers.remainder());
            for (lane, (value, number)) in lanes.iter_mut().zip(rest) {
                *lane = scaling.of(*value) * number;
            }
            for (values, numbers) in values.zip(numbers) {
                for (lane, (value, number)) in lanes.iter_mut().zip(values.iter().zip(numbers)) {
                    *lane += scaling.of(*value) * number;
                }
            }
            add(feature, lanes.iter().sum());
        }
    }

    /// Returns the values of each feature with their scaling.
    #[inline(always)]
    fn scaled(&self) -> impl Iterator<Item = (&'a [f32], &'a Scaling)> {
        let (columns, query) = (self.columns, &self.query);
        let features = self.plan.features.iter().zip(self.scalings);
        features.map(move |(planned, scaling)| (&columns[planned.feature as usize][query.clone()], scaling))
    }
}
