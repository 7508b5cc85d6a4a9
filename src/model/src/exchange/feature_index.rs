//! Finds the features of a model by the names in an exported file.

use crate::model::ModelFeature;
use std::collections::HashMap;

/// The indices of a model's features by name.
pub(super) struct FeatureIndex<'a>(HashMap<&'a str, u32>);

impl<'a> FeatureIndex<'a> {
    pub(super) fn new(features: &'a [ModelFeature]) -> Self {
        FeatureIndex((0..).zip(features).map(|(index, feature)| (feature.name.as_str(), index)).collect())
    }

    /// Returns the index of a feature.
    pub(super) fn of(&self, name: &str) -> Result<u32, String> {
        self.0.get(name).copied().ok_or_else(|| format!("the model has no feature {name}"))
    }
}
