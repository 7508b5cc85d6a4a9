//! Trees with two branches a split, as other programs have them.

use crate::model::{Branch, ModelFeature, Split, Tree};

/// A decision between two.
#[derive(Debug, Clone, PartialEq)]
pub struct BinarySplit {
    /// The feature by its place.
    pub feature: u32,
    /// A row goes left when its value is at most this.
    pub threshold: f32,
    /// Whether a row goes left whose value is missing; one that is filled goes where its fill does.
    pub missing_left: bool,
    /// Whether missing values are filled with zero.
    pub zero_filled: bool,
    /// The node for rows that go left.
    pub left: usize,
    /// The node for rows that go right.
    pub right: usize,
    /// How much the split reduced the loss.
    pub gain: f64,
}

/// A node: a leaf, or a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct BinaryNode {
    /// `None` for a leaf.
    pub split: Option<BinarySplit>,
    /// What rows that end here add to their score.
    pub value: f64,
    /// The weight of the training rows that came here.
    pub cover: f64,
}

/// What is still to be written: a node, or what is left of one when values below its threshold are gone.
enum Pending {
    Node(u32),
    /// Missing values go left here, all others right.
    Above(u32),
}

/// A tree with two branches a split, parents first. A third branch is a second split on the same
/// threshold: of the rows that went right, missing values go left.
pub fn binary(tree: &Tree, features: &[ModelFeature]) -> Vec<BinaryNode> {
    let mut nodes = Vec::with_capacity(tree.nodes.len());
    let mut pending = vec![Pending::Node(0)];
    while nodes.len() < pending.len() {
        let next = pending.len();
        let (node, children) = match &pending[nodes.len()] {
            Pending::Node(place) => {
                let node = &tree.nodes[*place as usize];
                let of = |split: &Split| one_of_two(split, features, next);
                let split = node.split.as_ref();
                let children = split.map(|split| match split.middle {
                    Some(_) => [Pending::Node(split.left), Pending::Above(*place)],
                    None => [Pending::Node(split.left), Pending::Node(split.right)],
                });
                (BinaryNode { split: split.map(of), value: node.value, cover: node.cover }, children)
            }
            Pending::Above(place) => {
                let (node, children) = above(tree, features, *place, next);
                (node, Some(children))
            }
        };
        nodes.push(node);
        pending.extend(children.into_iter().flatten());
    }
    nodes
}

fn one_of_two(split: &Split, features: &[ModelFeature], next: usize) -> BinarySplit {
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

/// The second split of a node with three branches.
fn above(tree: &Tree, features: &[ModelFeature], place: u32, next: usize) -> (BinaryNode, [Pending; 2]) {
    let split = tree.nodes[place as usize].split.as_ref().expect("only splits have three branches");
    let middle = split.middle.expect("only splits with three branches have a second one");
    let [one, other] = [middle, split.right].map(|child| &tree.nodes[child as usize]);
    let cover = one.cover + other.cover;
    // A value that is filled is never missing: nothing comes to the middle, but its cover is kept.
    let missing_left = features[split.feature as usize].fill.is_none();
    let second = BinarySplit { missing_left, gain: 0.0, ..one_of_two(split, features, next) };
    let value = if cover > 0.0 {
        (one.cover * one.value + other.cover * other.value) / cover
    } else {
        tree.nodes[place as usize].value
    };
    (BinaryNode { split: Some(second), value, cover }, [Pending::Node(middle), Pending::Node(split.right)])
}
