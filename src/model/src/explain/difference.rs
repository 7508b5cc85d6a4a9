//! Explains why one row ranks above another.

/// A feature's contributions to the scores of two rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContributionDifference {
    /// Index of the feature in the model.
    pub feature: u32,
    /// Contribution to the score of the first row.
    pub first: f64,
    /// Contribution to the score of the second row.
    pub second: f64,
}

impl ContributionDifference {
    /// Returns the contribution to the first score minus the contribution to the second score.
    pub fn value(&self) -> f64 {
        self.first - self.second
    }
}

/// Compares the contributions of two rows feature by feature. The result is sorted by descending absolute difference,
/// and the differences add up to the difference of the scores. Features that contribute equally to both rows are
/// omitted.
pub fn differences(first: &[f64], second: &[f64]) -> Vec<ContributionDifference> {
    let pairs = (0..).zip(first.iter().zip(second));
    let mut all: Vec<ContributionDifference> = pairs
        .map(|(feature, (first, second))| ContributionDifference { feature, first: *first, second: *second })
        .filter(|difference| difference.value() != 0.0)
        .collect();
    // The sort is stable, so equal differences stay in column order.
    all.sort_by(|a, b| b.value().abs().total_cmp(&a.value().abs()));
    all
}
