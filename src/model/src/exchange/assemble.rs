//! Assembles a tree from the nodes in another program's file, which may be in any order.

use crate::model::{Branch, Node, Split, Tree};

/// A node as another program stores it. Children are identified by that program's node numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ForeignNode {
    /// The split; `None` for a leaf.
    pub split: Option<ForeignSplit>,
    /// The amount added to the score of a row that ends at this node. It may be `None` (unknown) for a split, but not
    /// for a leaf.
    pub value: Option<f64>,
    /// Total weight of the training rows that reached the node.
    pub cover: f64,
}

/// A split as another program stores it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ForeignSplit {
    pub feature: u32,
    pub threshold: f32,
    pub missing_left: bool,
    pub left: i64,
    pub right: i64,
    pub gain: f64,
}

/// Assembles a tree in which the root comes first and parents come before their children. `find` returns the node with
/// a given number. `count` is the number of nodes. If more nodes are reachable from the root, they do not form a tree,
/// and an error is returned.
pub(super) fn assemble(
    root: i64,
    count: usize,
    find: &dyn Fn(i64) -> Result<ForeignNode, String>,
) -> Result<Tree, String> {
    assemble_numbered(root, count, find).map(|(tree, _)| tree)
}

/// Does what [`assemble`] does, and also returns the other program's number of every node of the tree.
pub(super) fn assemble_numbered(
    root: i64,
    count: usize,
    find: &dyn Fn(i64) -> Result<ForeignNode, String>,
) -> Result<(Tree, Vec<i64>), String> {
    let mut nodes: Vec<Node> = Vec::new();
    // For each node, whether its value is unknown and must be computed.
    let mut unknown = Vec::new();
    let mut pending = vec![(root, 0)];
    while let Some((number, depth)) = pending.get(nodes.len()).copied() {
        let node = find(number)?;
        let next = pending.len() as u32;
        let split = node.split.map(|split| {
            pending.extend([(split.left, depth + 1), (split.right, depth + 1)]);
            Split {
                feature: split.feature,
                threshold: split.threshold,
                missing: if split.missing_left { Branch::Left } else { Branch::Right },
                left: next,
                right: next + 1,
                middle: None,
                gain: split.gain,
            }
        });
        if pending.len() > count {
            return Err("the nodes do not form a tree: more children than nodes".to_owned());
        }
        unknown.push(node.value.is_none());
        nodes.push(Node { depth, split, value: node.value.unwrap_or(0.0), cover: node.cover });
    }
    // The value that a split would have as a leaf is the mean of its children's values, weighted by cover.
    for index in (0..nodes.len()).rev().filter(|index| unknown[*index]) {
        let Some(split) = &nodes[index].split else { return Err("a leaf has no value".to_owned()) };
        let [left, right] = [split.left, split.right].map(|child| &nodes[child as usize]);
        let cover = left.cover + right.cover;
        nodes[index].value = if cover > 0.0 {
            (left.cover * left.value + right.cover * right.value) / cover
        } else {
            (left.value + right.value) / 2.0
        };
    }
    Ok((Tree { nodes }, pending.into_iter().map(|(number, _)| number).collect()))
}

/// Returns the largest 32-bit float that is at most the threshold. Every 32-bit value goes to the same side as with the
/// original threshold.
pub(super) fn round_down(threshold: f64) -> f32 {
    let nearest = threshold.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
    if f64::from(nearest) > threshold && nearest > f32::MIN { nearest.next_down() } else { nearest }
}
