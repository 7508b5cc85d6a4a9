//! Defines a tree as a list of nodes: the root is first, and parents come before their children.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// The branch that a row takes at a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// The value is at most the threshold.
    Left,
    /// The value is above the threshold.
    Right,
    /// The value is missing, and the split has a separate branch for missing values. If no training row took it, there
    /// is no middle child, and a missing value takes the value of the node itself.
    Middle,
}

impl Branch {
    /// All branches.
    pub const ALL: [Branch; 3] = [Branch::Left, Branch::Right, Branch::Middle];

    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Branch::Left => "left",
            Branch::Right => "right",
            Branch::Middle => "middle",
        }
    }
}

/// A split of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Index of the feature in the model.
    pub feature: u32,
    /// Rows whose value is at most this go left.
    pub threshold: f32,
    /// The branch for missing values.
    pub missing: Branch,
    /// Index of the left child.
    pub left: u32,
    /// Index of the right child.
    pub right: u32,
    /// Index of the child for missing values, if they have a branch of their own and training rows took it.
    pub middle: Option<u32>,
    /// Reduction of the training loss.
    pub gain: f64,
}

/// A node of a tree: a leaf or a split.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Depth; 0 for the root.
    pub depth: u32,
    /// The split; `None` for a leaf.
    pub split: Option<Split>,
    /// The amount added to the score of a row that ends at this node.
    pub value: f64,
    /// Total weight of the training rows that reached the node; their number if rows have no weights.
    pub cover: f64,
}

/// A decision tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The nodes: the root first, parents before their children.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// Returns the tree with a leaf for every branch of missing values that no training row took. The leaf has the
    /// value of the split node and no cover.
    pub(crate) fn with_untaken_branches(&self) -> Cow<'_, Tree> {
        let is_untaken = |split: &Split| split.missing == Branch::Middle && split.middle.is_none();
        if !self.nodes.iter().filter_map(|node| node.split.as_ref()).any(is_untaken) {
            return Cow::Borrowed(self);
        }
        let mut nodes = self.nodes.clone();
        for place in 0..self.nodes.len() {
            let next = nodes.len() as u32;
            let Node { depth, value, .. } = nodes[place];
            if let Some(split) = nodes[place].split.as_mut().filter(|split| is_untaken(split)) {
                split.middle = Some(next);
                nodes.push(Node { depth: depth + 1, split: None, value, cover: 0.0 });
            }
        }
        Cow::Owned(Tree { nodes })
    }

    /// Returns the indices of the features that the tree splits on.
    pub fn used_features(&self) -> BTreeSet<u32> {
        self.nodes.iter().filter_map(|node| Some(node.split.as_ref()?.feature)).collect()
    }
}
