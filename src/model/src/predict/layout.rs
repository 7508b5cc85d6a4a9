//! A tree as tests on planes, each with two outcomes.

use super::planes::{Missing, Planes, Test};
use crate::model::{Branch, Split, Tree};
use std::collections::VecDeque;

/// A place in a tree: an end, or a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// The value of a leaf.
    Leaf(f64),
    /// A test; the rows that fail it go on at a place, those that pass it at the place behind that one.
    Fork(Test, u32),
}

/// What is still to be laid out.
enum Pending {
    Node(u32),
    /// A split whose missing values were sent elsewhere already.
    Present(u32),
}

/// Lays out a tree breadth first: the root is the first place, and both ways out of a fork are side by
/// side behind it.
pub fn lay_out(tree: &Tree, planes: &mut Planes) -> Vec<Place> {
    let mut places = Vec::with_capacity(tree.nodes.len());
    let mut pending = VecDeque::from([Pending::Node(0)]);
    let mut next = 1;
    while let Some(item) = pending.pop_front() {
        let (node, missing_is_elsewhere) = match item {
            Pending::Node(node) => (node, false),
            Pending::Present(node) => (node, true),
        };
        let Split { feature, threshold, missing, left, right, middle, .. } =
            match &tree.nodes[node as usize].split {
                Some(split) => split,
                None => {
                    places.push(Place::Leaf(tree.nodes[node as usize].value));
                    continue;
                }
            };
        let (test, low, high) = match (missing, middle) {
            (Branch::Middle, Some(middle)) if !missing_is_elsewhere => {
                let test = planes.missing(*feature, *threshold);
                (test, Pending::Present(node), Pending::Node(*middle))
            }
            _ => {
                let side = if *missing == Branch::Left { Missing::Below } else { Missing::Above };
                let test = planes.above(*feature, *threshold, side);
                (test, Pending::Node(*left), Pending::Node(*right))
            }
        };
        places.push(Place::Fork(test, next));
        next += 2;
        pending.extend([low, high]);
    }
    places
}
