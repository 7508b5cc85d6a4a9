//! Normalises the features of trees over the documents of a query (`normalise_features=query`), before they are
//! compared with thresholds. Thresholds and the value of the base feature refer to normalised values.

use super::ensemble::TreeEnsemble;
use crate::family::linear::FeatureNormaliser;
use crate::family::{Family, FeatureNormalisation, ModelFeature, RowValues};

/// Normalises the features that an ensemble uses.
#[derive(Debug)]
pub(crate) struct QueryNormaliser {
    /// The indices of the features. Categories have no normaliser and are not changed.
    features: Vec<(usize, Option<FeatureNormaliser>)>,
    /// Number of values per row.
    width: usize,
}

/// The normalised values of some rows. Features that the trees do not use are missing.
#[derive(Debug)]
pub(crate) struct NormalisedRows {
    values: Vec<f32>,
    width: usize,
}

impl QueryNormaliser {
    /// Returns the normaliser of an ensemble. `None` if its features are not normalised by query. `features` are those of
    /// the model.
    pub(crate) fn of(ensemble: &TreeEnsemble, features: &[ModelFeature]) -> Option<Self> {
        if ensemble.normalisation != FeatureNormalisation::Query {
            return None;
        }
        let of_feature = |feature: u32| {
            let known = features.get(feature as usize);
            let has_words = known.is_some_and(|known| !known.words.is_empty());
            let fill = known.and_then(|known| known.fill);
            (feature as usize, (!has_words).then(|| FeatureNormaliser::by_query(fill)))
        };
        let features: Vec<_> = ensemble.used_features().into_iter().map(of_feature).collect();
        let width = features.last().map_or(1, |(feature, _)| feature + 1);
        Some(QueryNormaliser { features, width })
    }

    /// Normalises the features of queries, which begin and end at `bounds`. The first bound is 0.
    pub(crate) fn normalise(&self, rows: RowValues<'_>, bounds: &[usize]) -> NormalisedRows {
        let count = bounds.last().copied().unwrap_or(0);
        let mut column = vec![f32::NAN; count];
        let mut values = vec![f32::NAN; count * self.width];
        for (feature, normaliser) in &self.features {
            rows.load(*feature, &mut column);
            if let Some(normaliser) = normaliser {
                bounds.windows(2).for_each(|query| normaliser.replace(&mut column[query[0]..query[1]]));
            }
            for (row, value) in values.chunks_exact_mut(self.width).zip(&column) {
                row[*feature] = *value;
            }
        }
        NormalisedRows { values, width: self.width }
    }
}

impl NormalisedRows {
    /// Returns the values.
    pub(crate) fn rows(&self) -> RowValues<'_> {
        RowValues::Matrix { values: &self.values, width: self.width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::example;

    /// Normalises five rows of two queries with three features, of which the trees of the example use the first and the
    /// last one.
    fn normalised(features: &[ModelFeature]) -> Vec<[f32; 3]> {
        const NONE: f32 = f32::NAN;
        let mut model = example();
        let ensemble = model.parts[0].family.trees_mut().unwrap();
        assert!(QueryNormaliser::of(ensemble, features).is_none());
        ensemble.normalisation = FeatureNormalisation::Query;
        let normaliser = QueryNormaliser::of(ensemble, features).unwrap();
        let values = [2.0, 9.0, 4.0, 6.0, 9.0, NONE, 4.0, 9.0, 8.0, 7.0, 9.0, NONE, 7.0, 9.0, f32::INFINITY];
        let rows = normaliser.normalise(RowValues::Matrix { values: &values, width: 3 }, &[0, 3, 5]);
        let value = |row| std::array::from_fn(|feature| rows.rows().value(row, feature));
        (0..5).map(value).collect()
    }

    fn assert_rows(found: &[[f32; 3]], expected: [[f32; 3]; 5]) {
        let bits = |rows: &[[f32; 3]]| rows.iter().map(|row| row.map(f32::to_bits)).collect::<Vec<_>>();
        assert_eq!(bits(found), bits(&expected), "{found:?}");
    }

    #[test]
    fn every_query_is_normalised_and_missing_values_are_replaced_before() {
        const NONE: f32 = f32::NAN;
        let mut features = ["a", "b", "c"].map(ModelFeature::new);
        assert_rows(
            &normalised(&features),
            [[0.0, NONE, 0.0], [1.0, NONE, NONE], [0.5, NONE, 1.0], [0.0, NONE, NONE], [0.0, NONE, NONE]],
        );
        features[2].fill = Some(0.0);
        assert_rows(
            &normalised(&features),
            [[0.0, NONE, 0.5], [1.0, NONE, 0.0], [0.5, NONE, 1.0], [0.0, NONE, 0.0], [0.0, NONE, 0.0]],
        );
        features[0].words = vec!["x".to_owned()];
        let words: Vec<f32> = normalised(&features).iter().map(|row| row[0]).collect();
        assert_eq!(words, [2.0, 6.0, 4.0, 7.0, 7.0], "categories are not numbers");
    }
}
