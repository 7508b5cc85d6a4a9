//! Defines the importance of a feature.

/// Totals over all splits on one feature, and over its weights in linear functions.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureImportance {
    /// Index of the feature in the model.
    pub feature: u32,
    /// Total reduction of the training loss by splits. A linear function adds the standard deviation of the feature's
    /// term over the training rows: its absolute weight times the standard deviation of the normalised feature.
    pub gain: f64,
    /// Total weight of the training rows at the split nodes. A linear function adds the weight of all training rows.
    pub cover: f64,
    /// Number of splits. A weight other than 0 counts as one.
    pub splits: u64,
}
