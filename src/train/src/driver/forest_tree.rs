//! A grown tree of a forest in a compact representation, which can route rows and can be converted to a model tree.

use crate::bins::{Binning, MissingBranch};
use crate::tree::split_of_model;
use planetree_model::model::{Node, Split, Tree};
use serde::{Deserialize, Serialize};

/// The split of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ForestSplit {
    /// The index of the feature.
    pub feature: u32,
    /// Rows with at most this code (bin number) go left.
    pub code: u32,
    /// Rows with at most this value go left. These are the same rows as those selected by `code`.
    pub threshold: f32,
    /// Where missing values go.
    pub missing: MissingBranch,
    /// Index of the left child. The other children follow it.
    pub left: u32,
    /// How much the split improves the criterion.
    pub gain: f64,
}

/// A node of a grown tree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ForestNode {
    /// Distance from the root, which has depth 0.
    pub depth: u32,
    /// The mean label of the node's rows.
    pub value: f64,
    /// The total weight of the node's rows.
    pub cover: f64,
    /// The split of the node, or `None` for a leaf.
    pub split: Option<ForestSplit>,
}

/// A grown tree.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ForestTree {
    /// The nodes. The root comes first, and every parent before its children.
    pub nodes: Vec<ForestNode>,
}

impl ForestTree {
    /// Adds a node without a split and returns its index.
    pub fn add(&mut self, depth: u32, value: f64, cover: f64) -> u32 {
        self.nodes.push(ForestNode { depth, value, cover, split: None });
        self.nodes.len() as u32 - 1
    }

    /// Returns whether every parent precedes its children and all children exist.
    pub fn is_valid(&self) -> bool {
        let splits = self.nodes.iter().enumerate().filter_map(|(place, node)| Some((place, node.split?)));
        splits.into_iter().all(|(node, split)| {
            let left = split.left as usize;
            left > node && left <= self.nodes.len().saturating_sub(split.missing.children())
        })
    }

    /// Converts the tree to a model tree.
    pub fn to_model(&self) -> Tree {
        let nodes = self.nodes.iter().map(|node| Node {
            depth: node.depth,
            value: node.value,
            cover: node.cover,
            split: node.split.map(|split| {
                let (missing, middle) = split.missing.to_model(split.left);
                Split {
                    feature: split.feature,
                    threshold: split.threshold,
                    missing,
                    left: split.left,
                    right: split.left + 1,
                    middle,
                    gain: split.gain,
                }
            }),
        });
        Tree { nodes: nodes.collect() }
    }

    /// Converts a model tree that was trained on these bins. Returns `None` if a split does not lie between two bins.
    pub fn of_model(tree: &Tree, binning: &Binning) -> Option<Self> {
        let nodes = tree.nodes.iter().map(|node| {
            let split = match &node.split {
                None => None,
                Some(split) => {
                    let found = split_of_model(split, binning)?;
                    Some(ForestSplit {
                        feature: found.feature,
                        code: found.code,
                        threshold: found.threshold,
                        missing: found.missing,
                        left: split.left,
                        gain: found.gain,
                    })
                }
            };
            Some(ForestNode { depth: node.depth, value: node.value, cover: node.cover, split })
        });
        Some(ForestTree { nodes: nodes.collect::<Option<_>>()? })
    }
}
