//! Which features a model relies on, as its own splits tell.

use super::Model;

/// What the splits on one feature add up to.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureImportance {
    /// The feature's place in the model.
    pub feature: u32,
    /// How much its splits reduced the loss of the training rows.
    pub gain: f64,
    /// The weight of the training rows that its splits decided on.
    pub cover: f64,
    /// How many splits there are.
    pub splits: u64,
}

impl Model {
    /// The importance of every feature, the largest gain first; features without a split come last.
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
        // Stable, so that equals stay in the order of the features.
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
    fn importance_adds_up_the_splits_of_a_feature() {
        let importance = example().importance();
        let summary: Vec<_> =
            importance.iter().map(|one| (one.feature, one.gain, one.cover, one.splits)).collect();
        assert_eq!(summary, [(2, 3.5, 110.0, 2), (0, 2.0, 100.0, 1), (1, 0.0, 0.0, 0)]);
    }
}
