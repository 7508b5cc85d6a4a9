//! Evaluates trees with many leaves, from the root down. Several rows advance together, one step at a time, so that
//! their memory accesses overlap.

use super::layout::FlatNode;
use super::planes::{BLOCK, Plane, PlaneTest};
use std::ops::Range;

/// Number of rows that advance together.
const LANES: usize = 16;

/// The code that a leaf is tested with. No code is above it, so the test always fails, and rows stay at the leaf.
const NEVER: i8 = i8::MAX;

#[derive(Debug)]
struct WalkNode {
    test: PlaneTest,
    /// Index of the next node if the test fails. For a leaf, the index of the leaf itself.
    low: u32,
}

/// A tree stored in [`WalkTrees`], as the range of its nodes.
#[derive(Debug)]
pub(super) struct WalkTree(Range<usize>);

/// Storage for trees of any size.
#[derive(Debug, Default)]
pub(super) struct WalkTrees {
    nodes: Vec<WalkNode>,
    /// The value of every node. The values of splits are not used.
    values: Vec<f64>,
}

impl WalkTrees {
    /// Returns whether there are no trees.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a tree.
    pub(super) fn add(&mut self, nodes: &[FlatNode]) -> WalkTree {
        let start = self.nodes.len();
        for (index, node) in nodes.iter().enumerate() {
            let (node, value) = match *node {
                FlatNode::Leaf(value) => {
                    (WalkNode { test: PlaneTest { plane: 0, code: NEVER }, low: index as u32 }, value)
                }
                FlatNode::Split(test, low) => (WalkNode { test, low }, 0.0),
            };
            self.nodes.push(node);
            self.values.push(value);
        }
        WalkTree(start..self.nodes.len())
    }

    /// Adds a tree's values to the score sums of a block.
    #[inline(always)]
    pub(super) fn add_values(&self, tree: &WalkTree, planes: &[Plane], sums: &mut [f64; BLOCK]) {
        let (nodes, values) = (&self.nodes[tree.0.clone()], &self.values[tree.0.clone()]);
        for (group, sums) in sums.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut positions = [0; LANES];
            let mut moved = nodes.len() > 1;
            while moved {
                moved = false;
                for (lane, position) in positions.iter_mut().enumerate() {
                    let WalkNode { test, low } = &nodes[*position as usize];
                    let row = (group * LANES + lane) % BLOCK;
                    let next = low + u32::from(planes[test.plane as usize][row] > test.code);
                    moved |= next != *position;
                    *position = next;
                }
            }
            for (sum, position) in sums.iter_mut().zip(positions) {
                *sum += values[position as usize];
            }
        }
    }
}
