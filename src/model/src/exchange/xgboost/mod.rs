//! Defines the structures of XGBoost's JSON format, which `read.rs` and `write.rs` share. XGBoost's `save_model`
//! writes this format to files with the extension `.json`.
//!
//! Values are 32-bit floats. They go left if they are less than the threshold, whereas in planetree they go left if
//! they are at most the threshold. So planetree's threshold is the largest float below XGBoost's threshold. Leaf values
//! and their sums are 32-bit floats as well, so scores agree to about seven digits.

pub(super) mod dump;
mod read;
mod serve;
mod write;

pub(crate) use read::binary_format_error;
pub(super) use read::{import, is_likely};
pub(super) use serve::{served, served_by_plugins};
pub(super) use write::{export, export_for_plugins, is_ours};

use serde::{Deserialize, Serialize};

/// Name of the attribute that contains the categories: a list for each categorical feature, and null for each numeric
/// feature. XGBoost preserves the attribute but does not use it.
const WORDS: &str = "planetree_words";

/// A tree in XGBoost's JSON format. Each list has one element per node.
#[derive(Debug, Default, Serialize, Deserialize)]
struct XgboostTree {
    #[serde(default)]
    base_weights: Vec<f32>,
    #[serde(default)]
    categories: Vec<i64>,
    #[serde(default)]
    categories_nodes: Vec<i64>,
    #[serde(default)]
    categories_segments: Vec<i64>,
    #[serde(default)]
    categories_sizes: Vec<i64>,
    default_left: Vec<Flag>,
    #[serde(default)]
    id: i64,
    /// Index of the left child; -1 for a leaf.
    left_children: Vec<i64>,
    #[serde(default)]
    loss_changes: Vec<f32>,
    parents: Vec<i64>,
    right_children: Vec<i64>,
    /// For a split, the threshold: values less than it go left. For a leaf, the value of the leaf.
    split_conditions: Vec<f32>,
    split_indices: Vec<u32>,
    #[serde(default)]
    split_type: Vec<u8>,
    #[serde(default)]
    sum_hessian: Vec<f32>,
    tree_param: XgboostTreeParameters,
}

/// A truth value. Older versions of XGBoost write `true` and `false`, newer versions write 1 and 0.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum Flag {
    Number(u8),
    Boolean(bool),
}

impl Flag {
    fn is_set(self) -> bool {
        matches!(self, Flag::Number(1..) | Flag::Boolean(true))
    }
}

/// Parameters of a tree. XGBoost writes these numbers as strings.
#[derive(Debug, Default, Serialize, Deserialize)]
struct XgboostTreeParameters {
    num_deleted: String,
    num_feature: String,
    num_nodes: String,
    size_leaf_vector: String,
}
