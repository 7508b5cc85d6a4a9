//! Computes the importance of features from a model's splits and weights.

use super::{FeatureImportance, Model};

impl Model {
    /// Returns the importance of every feature, sorted by descending gain. Features without a split or weight come last. If
    /// several parts use a feature, their gains are added without applying the weights of the parts.
    pub fn importance(&self) -> Vec<FeatureImportance> {
        let mut all: Vec<FeatureImportance> = (0..)
            .zip(&self.features)
            .map(|(feature, _)| FeatureImportance { feature, gain: 0.0, cover: 0.0, splits: 0 })
            .collect();
        self.parts.iter().for_each(|part| part.family.add_importance(&mut all));
        // The sort is stable, so features with equal gain stay in column order.
        all.sort_by(|one, other| {
            (other.splits > 0).cmp(&(one.splits > 0)).then(other.gain.total_cmp(&one.gain))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;

    fn summary(model: &super::Model) -> Vec<(u32, f64, f64, u64)> {
        let importance = model.importance();
        importance.iter().map(|one| (one.feature, one.gain, one.cover, one.splits)).collect()
    }

    #[test]
    fn importance_sums_over_the_splits_of_a_feature() {
        let mut model = example();
        assert_eq!(summary(&model), [(2, 3.5, 110.0, 2), (0, 2.0, 100.0, 1), (1, 0.0, 0.0, 0)]);
        model.parts.push(model.parts[0].clone());
        assert_eq!(summary(&model), [(2, 7.0, 220.0, 4), (0, 4.0, 200.0, 2), (1, 0.0, 0.0, 0)]);
    }
}
