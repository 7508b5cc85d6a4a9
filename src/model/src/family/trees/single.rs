//! Scores few rows, as a service does that ranks one document at a time. A block of rows would mostly be empty, so rows
//! walk the trees one by one. Several trees advance together, one step at a time, so that their memory accesses overlap.

use super::ensemble::TreeEnsemble;
use super::tree::{Branch, Split, Tree};
use crate::family::ModelFeature;
use std::collections::VecDeque;

/// Up to this many rows are scored one by one. From there on, a block is faster.
pub(super) const MAX_ROWS: usize = 12;
/// Models with more nodes have no copy of their trees for single rows, because it would need too much memory.
const MAX_NODES: usize = 1 << 22;
/// Number of trees that advance together.
const LANES: usize = 8;
/// Bit of [`SingleNode::feature`] that is set if missing values take the second child.
const MISSING_HIGH: u32 = 1 << 31;

/// A node. A leaf is a split that every value fails, and whose child is the leaf itself.
#[derive(Debug, Clone, Copy)]
struct SingleNode {
    /// Values above it take the second child.
    threshold: f32,
    /// Index of the feature, and [`MISSING_HIGH`].
    feature: u32,
    /// Index of the first child; the second one follows it.
    low: u32,
}

/// Trees for scoring single rows.
#[derive(Debug)]
pub(super) struct SingleTrees {
    nodes: Vec<SingleNode>,
    /// The value of every node. The values of splits are not used.
    values: Vec<f64>,
    /// The root and the depth of every tree.
    trees: Vec<(u32, u32)>,
}

/// A node of a tree that is not yet laid out.
enum QueuedBranch {
    Node(u32),
    /// A split with three branches, restricted to rows whose value is not missing.
    Present(u32),
    /// The branch of missing values of a split that has no child for them: the value of the split itself.
    Untaken(u32),
}

impl SingleTrees {
    /// Lays out the trees of an ensemble. Returns `None` if they are too large.
    pub(super) fn new(ensemble: &TreeEnsemble, features: &[ModelFeature]) -> Option<Self> {
        let total: usize = ensemble.trees.iter().map(|tree| tree.nodes.len()).sum();
        if total > MAX_NODES {
            return None;
        }
        let mut all = SingleTrees {
            nodes: Vec::with_capacity(total),
            values: Vec::with_capacity(total),
            trees: Vec::with_capacity(ensemble.trees.len()),
        };
        ensemble.trees.iter().for_each(|tree| all.add(tree, features));
        Some(all)
    }

    /// Adds a tree breadth-first, so that the two children of a split are adjacent.
    fn add(&mut self, tree: &Tree, features: &[ModelFeature]) {
        let root = self.nodes.len() as u32;
        let mut queue = VecDeque::from([(QueuedBranch::Node(0), 0)]);
        let (mut next, mut depth) = (root + 1, 0);
        while let Some((queued, level)) = queue.pop_front() {
            depth = depth.max(level);
            let (index, is_present, is_untaken) = match queued {
                QueuedBranch::Node(index) => (index, false, false),
                QueuedBranch::Present(index) => (index, true, false),
                QueuedBranch::Untaken(index) => (index, false, true),
            };
            let node = &tree.nodes[index as usize];
            self.values.push(node.value);
            let Some(split) = node.split.as_ref().filter(|_| !is_untaken) else {
                let low = self.nodes.len() as u32;
                self.nodes.push(SingleNode { threshold: f32::INFINITY, feature: 0, low });
                continue;
            };
            let Split { feature, threshold, missing, left, right, middle, .. } = split;
            let fill = features.get(*feature as usize).and_then(|feature| feature.fill);
            let (threshold, is_high, children) = match (missing, fill) {
                // No value is above infinity, so this split separates missing values from all others.
                (Branch::Middle, None) if !is_present => {
                    let missing = middle.map_or(QueuedBranch::Untaken(index), QueuedBranch::Node);
                    (f32::INFINITY, true, [QueuedBranch::Present(index), missing])
                }
                _ => {
                    let is_high = fill.map_or(*missing == Branch::Right, |fill| fill > *threshold);
                    (*threshold, is_high, [QueuedBranch::Node(*left), QueuedBranch::Node(*right)])
                }
            };
            let feature = feature | if is_high { MISSING_HIGH } else { 0 };
            self.nodes.push(SingleNode { threshold, feature, low: next });
            next += 2;
            queue.extend(children.map(|child| (child, level + 1)));
        }
        self.trees.push((root, depth));
    }

    /// Adds the values of the trees to a sum, in order. `row` has a value for each feature that the trees use.
    pub(super) fn add_values(&self, row: &[f32], mut sum: f64) -> f64 {
        for trees in self.trees.chunks(LANES) {
            let mut positions = [0; LANES];
            let mut depth = 0;
            for (position, (root, levels)) in positions.iter_mut().zip(trees) {
                *position = *root;
                depth = depth.max(*levels);
            }
            for _ in 0..depth {
                for position in &mut positions[..trees.len()] {
                    let node = &self.nodes[*position as usize];
                    let value = row[(node.feature & !MISSING_HIGH) as usize];
                    let is_high =
                        (value > node.threshold) | (value.is_nan() & (node.feature >= MISSING_HIGH));
                    *position = node.low + u32::from(is_high);
                }
            }
            for position in &positions[..trees.len()] {
                sum += self.values[*position as usize];
            }
        }
        sum
    }
}
