//! Feature importance computed from a model's splits.

use super::Model;

/// Totals over all splits on one feature.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureImportance {
    /// Index of the feature in the model.
    pub feature: u32,
    /// Total reduction of the training loss.
    pub gain: f64,
    /// Total weight of the training rows at the split nodes.
    pub cover: f64,
    /// Number of splits.
    pub splits: u64,
}

impl Model {
    /// The importance of every feature, by descending gain. Features without a split come last.
    pub fn importance(&self) -> Vec<FeatureImportance> {
        let mut all: Vec<FeatureImportance> = (0..)
            .zip(&self.features)
            .map(|(feature, _)| FeatureImportance { feature, gain: 0.0, cover: 0.0, splits: 0 })
            .collect();
        for node in self.trees.iter().flat_map(|tree| &tree.nodes) {
            if let Some(split) = &node.split
                && let Some(importance) = all.get_mut(split.feature as usize)
            {
                importance.gain += split.gain;
                importance.cover += node.cover;
                importance.splits += 1;
            }
        }
        // A stable sort: features of equal gain stay in column order.
        all.sort_by(|one, other| {
            (other.splits > 0).cmp(&(one.splits > 0)).then(other.gain.total_cmp(&one.gain))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;

    #[test]
    fn importance_sums_over_the_splits_of_a_feature() {
        let importance = example().importance();
        let summary: Vec<_> =
            importance.iter().map(|one| (one.feature, one.gain, one.cover, one.splits)).collect();
        assert_eq!(summary, [(2, 3.5, 110.0, 2), (0, 2.0, 100.0, 1), (1, 0.0, 0.0, 0)]);
    }
}
