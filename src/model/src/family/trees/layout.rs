//! Flattens a tree into a list of binary tests. Feature values are encoded as bytes for scoring, and a test compares
//! the bytes in a plane, which is an array with one byte per row (`planes.rs`).

use super::planes::{MissingSide, PlaneTest, Planes};
use super::tree::{Branch, Split, Tree};
use std::collections::VecDeque;

/// A node of a flattened tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FlatNode {
    /// A leaf with its value.
    Leaf(f64),
    /// A test, and the index of the node that rows go to if they fail the test. Rows that pass the test go to the node
    /// after that one.
    Split(PlaneTest, u32),
}

/// A node of the tree that is not yet flattened.
enum QueuedNode {
    Node(u32),
    /// A split with three branches, restricted to rows whose value is not missing.
    Present(u32),
}

/// Flattens a tree breadth-first: the root comes first, and the two children of a split are adjacent and come after it.
pub(super) fn flatten(tree: &Tree, planes: &mut Planes) -> Vec<FlatNode> {
    let mut flat = Vec::with_capacity(tree.nodes.len());
    let mut queue = VecDeque::from([QueuedNode::Node(0)]);
    let mut next = 1;
    while let Some(queued) = queue.pop_front() {
        let (node, missing_is_separated) = match queued {
            QueuedNode::Node(node) => (node, false),
            QueuedNode::Present(node) => (node, true),
        };
        let Split { feature, threshold, missing, left, right, middle, .. } =
            match &tree.nodes[node as usize].split {
                Some(split) => split,
                None => {
                    flat.push(FlatNode::Leaf(tree.nodes[node as usize].value));
                    continue;
                }
            };
        let (test, low, high) = match (missing, middle) {
            (Branch::Middle, Some(middle)) if !missing_is_separated => {
                let test = planes.missing(*feature, *threshold);
                (test, QueuedNode::Present(node), QueuedNode::Node(*middle))
            }
            _ => {
                let side = if *missing == Branch::Left { MissingSide::Below } else { MissingSide::Above };
                let test = planes.above(*feature, *threshold, side);
                (test, QueuedNode::Node(*left), QueuedNode::Node(*right))
            }
        };
        flat.push(FlatNode::Split(test, next));
        next += 2;
        queue.extend([low, high]);
    }
    flat
}
