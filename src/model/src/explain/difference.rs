//! Why is one row above another?

/// What a feature has to do with the difference of two rows' scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The feature by its place in the model.
    pub feature: u32,
    /// What it contributes to the one.
    pub one: f64,
    /// What it contributes to the other.
    pub other: f64,
}

impl Difference {
    /// By how much more it contributes to the one than to the other.
    pub fn value(&self) -> f64 {
        self.one - self.other
    }
}

/// The contributions of one row minus those of another, the largest first whatever its sign. They add up
/// to the difference of the scores; features that make none are left out.
pub fn differences(one: &[f64], other: &[f64]) -> Vec<Difference> {
    let pairs = (0..).zip(one.iter().zip(other));
    let mut all: Vec<Difference> = pairs
        .map(|(feature, (one, other))| Difference { feature, one: *one, other: *other })
        .filter(|difference| difference.value() != 0.0)
        .collect();
    // Stable, so that equals stay in the order of the features.
    all.sort_by(|a, b| b.value().abs().total_cmp(&a.value().abs()));
    all
}
