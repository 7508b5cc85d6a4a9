//! Normalises the features that trees are trained on over the documents of each query (`normalise_features=query`), before
//! they are binned. Row hashes, which find rows that two datasets have in common, are those of the values before, without
//! features that are constant within every query.

use super::binning::{BinOptions, Binning};
use crate::config::MissingPolicy;
use planetree_data::source::{LabelledData, LabelledRows};
use planetree_model::family::linear::FeatureNormaliser;
use rayon::prelude::*;

impl BinOptions {
    /// Returns the normalised values of a feature by partition. `None` if they are not normalised by query.
    pub(super) fn normalised(&self, values: &[Vec<f32>], rows: &[LabelledRows]) -> Option<Vec<Vec<f32>>> {
        let of_partition = |(values, rows): (&Vec<f32>, &LabelledRows)| {
            let mut values = values.clone();
            self.normalise(&mut values, rows);
            values
        };
        self.by_query.then(|| values.par_iter().zip(rows).map(of_partition).collect())
    }

    /// Normalises the values of a feature in a partition, if they are normalised by query.
    pub(super) fn normalise(&self, values: &mut [f32], rows: &LabelledRows) {
        let fill = match self.missing {
            MissingPolicy::Zero => Some(0.0),
            MissingPolicy::One => Some(1.0),
            // Parameters with the mean or the median are rejected.
            _ => None,
        };
        if self.by_query {
            normalise(values, rows, fill);
        }
    }
}

impl Binning {
    /// Normalises the values of a feature in a partition, if they are normalised by query.
    pub(crate) fn normalise(
        &self,
        source: &LabelledData,
        feature: usize,
        values: &mut [f32],
        rows: &LabelledRows,
    ) {
        if self.by_query && !source.has_words(feature) {
            normalise(values, rows, self.features[feature].fill);
        }
    }
}

fn normalise(values: &mut [f32], rows: &LabelledRows, fill: Option<f32>) {
    let normaliser = FeatureNormaliser::by_query(fill);
    rows.queries().for_each(|query| normaliser.replace(&mut values[query]));
}
