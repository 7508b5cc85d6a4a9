//! XGBoost's JSON, as its `save_model` writes it to a name that ends in `.json`.
//!
//! Values are 32-bit numbers that go left when they are less than the threshold, so that our threshold is the
//! largest number below theirs. Leaves and sums are 32-bit numbers, too: scores agree to about seven digits.

mod read;
mod write;

pub use read::{binary_fault, import, is_likely};
pub use write::{export, is_ours};

use serde::{Deserialize, Serialize};

/// The attribute with the words of every feature, null for numbers: XGBoost keeps it and does not look at it.
const WORDS: &str = "planetree_words";

/// A tree: a number a node in each list.
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
    /// -1 for a leaf.
    left_children: Vec<i64>,
    #[serde(default)]
    loss_changes: Vec<f32>,
    parents: Vec<i64>,
    right_children: Vec<i64>,
    /// A row goes left when its value is less than this; the value of a leaf.
    split_conditions: Vec<f32>,
    split_indices: Vec<u32>,
    #[serde(default)]
    split_type: Vec<u8>,
    #[serde(default)]
    sum_hessian: Vec<f32>,
    tree_param: TreeParameters,
}

/// Earlier versions write words, later ones numbers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum Flag {
    Number(u8),
    Word(bool),
}

impl Flag {
    fn is_set(self) -> bool {
        matches!(self, Flag::Number(1..) | Flag::Word(true))
    }
}

/// Numbers are strings here.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TreeParameters {
    num_deleted: String,
    num_feature: String,
    num_nodes: String,
    size_leaf_vector: String,
}
