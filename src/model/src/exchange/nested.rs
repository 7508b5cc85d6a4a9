//! Visits the nodes of a tree in the order in which nested formats write them. There is no recursion, so that a tree may
//! be as deep as it has leaves.

use super::binary::{BinaryNode, BinarySplit};

/// A step of the visit.
pub(super) enum Visit<'a> {
    /// A leaf with its value.
    Leaf(&'a BinaryNode),
    /// A split, before its children.
    Open(&'a BinarySplit),
    /// Between the left and the right child of a split.
    Between,
    /// After the right child of a split.
    Close,
}

/// Where a node is in its tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Index of the node.
    pub index: usize,
    /// Depth; 0 for the root.
    pub depth: usize,
    /// Whether the node is a left child; `None` for the root.
    pub is_left: Option<bool>,
}

/// Calls `visit` for every leaf, and before, between and after the children of every split.
pub(super) fn visit_nested(nodes: &[BinaryNode], visit: &mut dyn FnMut(Place, Visit<'_>)) {
    enum PendingVisit {
        Node(Place),
        Between(Place),
        Close(Place),
    }
    let mut pending = vec![PendingVisit::Node(Place { index: 0, depth: 0, is_left: None })];
    while let Some(next) = pending.pop() {
        let (PendingVisit::Node(place) | PendingVisit::Between(place) | PendingVisit::Close(place)) = next;
        let Some(split) = &nodes[place.index].split else {
            visit(place, Visit::Leaf(&nodes[place.index]));
            continue;
        };
        match next {
            PendingVisit::Node(_) => {
                visit(place, Visit::Open(split));
                let child = |index, is_left| Place { index, depth: place.depth + 1, is_left: Some(is_left) };
                pending.extend([
                    PendingVisit::Close(place),
                    PendingVisit::Node(child(split.right, false)),
                    PendingVisit::Between(place),
                    PendingVisit::Node(child(split.left, true)),
                ]);
            }
            PendingVisit::Between(_) => visit(place, Visit::Between),
            PendingVisit::Close(_) => visit(place, Visit::Close),
        }
    }
}
