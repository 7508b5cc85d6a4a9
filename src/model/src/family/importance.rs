//! Defines the importance of a feature.

/// Totals over all splits on one feature, and over its weights in linear functions and nets.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureImportance {
    /// Index of the feature in the model.
    pub feature: u32,
    /// Total reduction of the training loss by splits. A linear function adds the standard deviation of the feature's
    /// term over the training rows: its absolute weight times the standard deviation of the normalised feature.
    /// A net adds an upper bound on the change of its value if the feature changes by that deviation: the sum over all
    /// paths from the feature to the output of the product of absolute weights and largest slopes.
    pub gain: f64,
    /// Total weight of the training rows at the split nodes. Linear functions and nets add the weight of all training rows.
    pub cover: f64,
    /// Number of splits. A weight other than 0, in the first layer of a net, counts as one.
    pub splits: u64,
}
