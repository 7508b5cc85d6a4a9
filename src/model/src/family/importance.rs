//! Defines the importance of a feature.

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
