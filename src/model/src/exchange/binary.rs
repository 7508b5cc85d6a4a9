//! Converts trees to binary trees, because other programs support only two branches per split.

use crate::model::{Branch, ModelFeature, Split, Tree};

/// A split with two branches.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BinarySplit {
    /// Index of the feature.
    pub feature: u32,
    /// Rows whose value is at most this go left.
    pub threshold: f32,
    /// Whether missing values go left. If the feature has a fill value, missing values go to the same side as the fill
    /// value.
    pub missing_left: bool,
    /// Whether the fill value of the feature is zero.
    pub zero_filled: bool,
    /// Index of the left child.
    pub left: usize,
    /// Index of the right child.
    pub right: usize,
    /// Reduction of the training loss.
    pub gain: f64,
}

/// A node: a leaf or a split.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BinaryNode {
    /// The split; `None` for a leaf.
    pub split: Option<BinarySplit>,
    /// The amount added to the score of a row that ends at this node.
    pub value: f64,
    /// Total weight of the training rows that reached the node.
    pub cover: f64,
}

/// A node that is not yet converted.
enum PendingNode {
    Node(u32),
    /// The second split of a node with three branches. Missing values go left, and all other values go right.
    Second(u32),
}

/// Converts a tree to a binary tree in which parents come before their children. A split with three branches becomes
/// two splits on the same threshold. The first sends both missing values and values above the threshold right. The
/// second separates them: missing values go left, and values above the threshold go right.
/// A branch of missing values that no training row took becomes a leaf.
pub(super) fn binary(tree: &Tree, features: &[ModelFeature]) -> Vec<BinaryNode> {
    let tree = &*tree.with_untaken_branches();
    let mut nodes = Vec::with_capacity(tree.nodes.len());
    let mut pending = vec![PendingNode::Node(0)];
    while nodes.len() < pending.len() {
        let next = pending.len();
        let (node, children) = match &pending[nodes.len()] {
            PendingNode::Node(index) => {
                let node = &tree.nodes[*index as usize];
                let of = |split: &Split| first_split(split, features, next);
                let split = node.split.as_ref();
                let children = split.map(|split| match split.middle {
                    Some(_) => [PendingNode::Node(split.left), PendingNode::Second(*index)],
                    None => [PendingNode::Node(split.left), PendingNode::Node(split.right)],
                });
                (BinaryNode { split: split.map(of), value: node.value, cover: node.cover }, children)
            }
            PendingNode::Second(index) => {
                let (node, children) = second_split(tree, features, *index, next);
                (node, Some(children))
            }
        };
        nodes.push(node);
        pending.extend(children.into_iter().flatten());
    }
    nodes
}

/// Returns the only split of a node with two branches, or the first split of a node with three branches. `next` is the
/// index of the left child.
fn first_split(split: &Split, features: &[ModelFeature], next: usize) -> BinarySplit {
    let fill = features[split.feature as usize].fill;
    BinarySplit {
        feature: split.feature,
        threshold: split.threshold,
        missing_left: fill.map_or(split.missing == Branch::Left, |fill| fill <= split.threshold),
        zero_filled: fill == Some(0.0),
        left: next,
        right: next + 1,
        gain: split.gain,
    }
}

/// Returns the second split of a node with three branches, and the children of this split.
fn second_split(
    tree: &Tree,
    features: &[ModelFeature],
    index: u32,
    next: usize,
) -> (BinaryNode, [PendingNode; 2]) {
    let split = tree.nodes[index as usize].split.as_ref().expect("only splits have three branches");
    let middle = split.middle.expect("only splits with three branches have a second one");
    let [left, right] = [middle, split.right].map(|child| &tree.nodes[child as usize]);
    let cover = left.cover + right.cover;
    // If the feature has a fill value, no value is missing, so no row takes the middle branch. The branch and its cover
    // are kept nevertheless.
    let missing_left = features[split.feature as usize].fill.is_none();
    let second = BinarySplit { missing_left, gain: 0.0, ..first_split(split, features, next) };
    let value = if cover > 0.0 {
        (left.cover * left.value + right.cover * right.value) / cover
    } else {
        tree.nodes[index as usize].value
    };
    let children = [PendingNode::Node(middle), PendingNode::Node(split.right)];
    (BinaryNode { split: Some(second), value, cover }, children)
}
