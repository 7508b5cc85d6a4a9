//! Defines the features of a model.

use serde::{Deserialize, Serialize};

/// A feature of the training data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFeature {
    /// Column name.
    pub name: String,
    /// The value that replaces missing values. If it is `None`, values stay missing, and each split defines the branch
    /// that they take.
    pub fill: Option<f32>,
    /// The categories of a categorical feature, in the order of their codes, which start from 0. Empty for a numeric
    /// feature.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

impl ModelFeature {
    /// Creates a numeric feature without a fill value.
    pub fn new(name: impl Into<String>) -> Self {
        ModelFeature { name: name.into(), fill: None, words: Vec::new() }
    }
}
