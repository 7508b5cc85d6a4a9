//! A row of the model table, whatever the family of its part.

use super::trees::Branch;

/// A row of the model table, without the number of its part. The columns have the meaning that the family gives them.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRow {
    /// Number of the tree within the part.
    pub tree: u32,
    /// Number of the node within the tree.
    pub node: u32,
    /// Depth of the node.
    pub depth: u32,
    /// Index of the feature in the model.
    pub feature: Option<u32>,
    /// Threshold of a split.
    pub threshold: Option<f32>,
    /// Branch for missing values.
    pub missing: Option<Branch>,
    /// Left child.
    pub left: Option<u32>,
    /// Right child.
    pub right: Option<u32>,
    /// Child for missing values.
    pub middle: Option<u32>,
    /// Value.
    pub value: f64,
    /// Reduction of the training loss.
    pub gain: Option<f64>,
    /// Total weight of training rows.
    pub cover: f64,
}
