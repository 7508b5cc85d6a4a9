//! Nodes in any order become a tree of ours: the root first, every parent before its children.

use crate::model::{Branch, Node, Split, Tree};

/// A node as another program has it; its children by that program's numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// `None` for a leaf.
    pub split: Option<FoundSplit>,
    /// What rows that end here add to their score; `None` where it is not known.
    pub value: Option<f64>,
    /// The weight of the training rows that came here.
    pub cover: f64,
}

/// A decision as another program has it.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundSplit {
    pub feature: u32,
    pub threshold: f32,
    pub missing_left: bool,
    pub left: i64,
    pub right: i64,
    pub gain: f64,
}

/// Puts a tree together. `most` is how many nodes there are; more cannot be reached unless they go in circles.
pub fn assemble(root: i64, most: usize, find: &dyn Fn(i64) -> Result<Found, String>) -> Result<Tree, String> {
    let mut nodes: Vec<Node> = Vec::new();
    // Whether a node's value is yet to be worked out.
    let mut unknown = Vec::new();
    let mut pending = vec![(root, 0)];
    while let Some((number, depth)) = pending.get(nodes.len()).copied() {
        let found = find(number)?;
        let next = pending.len() as u32;
        let split = found.split.map(|split| {
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
        if pending.len() > most {
            return Err("its nodes have more children than there are nodes".to_owned());
        }
        unknown.push(found.value.is_none());
        nodes.push(Node { depth, split, value: found.value.unwrap_or(0.0), cover: found.cover });
    }
    // What a split would give as a leaf: the mean of what is below.
    for place in (0..nodes.len()).rev().filter(|place| unknown[*place]) {
        let Some(split) = &nodes[place].split else { return Err("a leaf has no value".to_owned()) };
        let [left, right] = [split.left, split.right].map(|child| &nodes[child as usize]);
        let cover = left.cover + right.cover;
        nodes[place].value = if cover > 0.0 {
            (left.cover * left.value + right.cover * right.value) / cover
        } else {
            (left.value + right.value) / 2.0
        };
    }
    Ok(Tree { group: 0, nodes })
}
