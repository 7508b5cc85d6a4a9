//! A tree as it was grown: its nodes in a compact form, which routes rows and becomes a part of a model.

use crate::bins::Binning;
use crate::tree::split_of_model;
use planetree_model::model::{Branch, Node, Split, Tree};

/// Where a row goes on at a node that is split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForestSplit {
    /// Which feature.
    pub feature: u32,
    /// Rows with a code up to this go left.
    pub code: u32,
    /// Rows with a value up to this go left; the same rows.
    pub threshold: f32,
    /// Whether missing values go left.
    pub missing_left: bool,
    /// The left child; the right one follows it.
    pub left: u32,
    /// By how much the split improves the criterion.
    pub gain: f64,
}

/// A node of a grown tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForestNode {
    /// 0 for the root.
    pub depth: u32,
    /// The mean label of its rows.
    pub value: f64,
    /// The weight of its rows.
    pub cover: f64,
    /// How it is split.
    pub split: Option<ForestSplit>,
}

/// A tree as it was grown: the root first, every parent before its children.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForestTree {
    /// Its nodes.
    pub nodes: Vec<ForestNode>,
}

impl ForestTree {
    /// Adds a node that is not split yet; its place.
    pub fn add(&mut self, depth: u32, value: f64, cover: f64) -> u32 {
        self.nodes.push(ForestNode { depth, value, cover, split: None });
        self.nodes.len() as u32 - 1
    }

    /// The tree as a part of a model.
    pub fn to_model(&self) -> Tree {
        let nodes = self.nodes.iter().map(|node| Node {
            depth: node.depth,
            value: node.value,
            cover: node.cover,
            split: node.split.map(|split| Split {
                feature: split.feature,
                threshold: split.threshold,
                missing: if split.missing_left { Branch::Left } else { Branch::Right },
                left: split.left,
                right: split.left + 1,
                middle: None,
                gain: split.gain,
            }),
        });
        Tree { group: 0, nodes: nodes.collect() }
    }

    /// A tree of a model that was trained on these bins.
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
                        missing_left: found.missing_left,
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
