//! Defines a row of the model table, in the form that all families share.

use super::trees::Branch;

/// A row of the model table, without the number of its part. Each family defines the meaning of the columns. The
/// comments below describe the rows of trees. A linear function has a row per feature, whose value is the weight of the
/// feature, and a net has a row per weight.
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
    /// Threshold of the split.
    pub threshold: Option<f32>,
    /// Branch for missing values.
    pub missing: Option<Branch>,
    /// Number of the left child.
    pub left: Option<u32>,
    /// Number of the right child.
    pub right: Option<u32>,
    /// Number of the child for missing values, if they have a branch of their own.
    pub middle: Option<u32>,
    /// Value of the node.
    pub value: f64,
    /// Reduction of the training loss.
    pub gain: Option<f64>,
    /// Total weight of the training rows that reached the node.
    pub cover: f64,
}
