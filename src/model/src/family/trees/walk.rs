//! Trees of many leaves, evaluated from the root down. Several rows advance together, one step at a time, so that
//! their memory accesses overlap.

use super::layout::FlatNode;
use super::planes::{BLOCK, Plane, PlaneTest};
use std::ops::Range;

/// Rows that advance together.
const LANES: usize = 16;

/// No code is above this one: the test always fails, so rows stay at a leaf.
const NEVER: i8 = i8::MAX;

#[derive(Debug)]
struct WalkNode {
    test: PlaneTest,
    /// The next node if the test fails; the node itself for a leaf.
    low: u32,
}

/// A tree of [`WalkTrees`].
#[derive(Debug)]
pub struct WalkTree(Range<usize>);

/// Storage of trees of any size.
#[derive(Debug, Default)]
pub struct WalkTrees {
    nodes: Vec<WalkNode>,
    /// The value of every node; unused for splits.
    values: Vec<f64>,
}

impl WalkTrees {
    /// Whether there are no trees.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a tree.
    pub fn add(&mut self, nodes: &[FlatNode]) -> WalkTree {
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
    pub fn add_values(&self, tree: &WalkTree, planes: &[Plane], sums: &mut [f64; BLOCK]) {
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
