//! The order in which nodes are split: level by level, or the node with the largest gain first.

use super::rows::NodeId;
use super::split::FoundSplit;

/// A node that can be split, with its best split.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    /// Index of the node.
    pub node: NodeId,
    /// Best split of the node.
    pub split: FoundSplit,
}

impl Ready {
    /// Returns by how many leaves the tree grows if the node is split.
    fn added_leaves(&self) -> u32 {
        self.split.missing.children() as u32 - 1
    }
}

/// The order in which nodes are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Level by level: all nodes of a level at once.
    Levels,
    /// Best-first: the node with the largest gain, until the tree has a given number of leaves.
    BestFirst {
        /// Maximum number of leaves.
        leaves: u32,
    },
}

/// The nodes that can be split.
pub(super) struct Frontier {
    order: Order,
    ready: Vec<Ready>,
    leaves: u32,
}

impl Frontier {
    /// Creates the frontier of a new tree, whose only leaf is the root.
    pub(super) fn new(order: Order) -> Self {
        Frontier { order, ready: Vec::new(), leaves: 1 }
    }

    /// Adds a node that can be split.
    pub(super) fn push(&mut self, ready: Ready) {
        self.ready.push(ready);
    }

    /// Returns whether the tree has as many leaves as it may have, so that no other node is split.
    pub(super) fn is_full(&self) -> bool {
        matches!(self.order, Order::BestFirst { leaves } if self.leaves >= leaves)
    }

    /// Removes and returns the nodes to split now. The result is empty when the tree is complete.
    pub(super) fn next(&mut self) -> Vec<Ready> {
        let batch = match self.order {
            Order::Levels => std::mem::take(&mut self.ready),
            Order::BestFirst { leaves } => {
                // A split with three children may be too large where one with two is not.
                let fits = |place: &usize| self.leaves + self.ready[*place].added_leaves() <= leaves;
                // Ties go to the node that was added first.
                let best = (0..self.ready.len()).filter(fits).reduce(|best, other| {
                    if self.ready[other].split.gain > self.ready[best].split.gain { other } else { best }
                });
                best.map(|best| self.ready.remove(best)).into_iter().collect()
            }
        };
        self.leaves += batch.iter().map(Ready::added_leaves).sum::<u32>();
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bins::MissingBranch;

    fn ready(node: NodeId, gain: f64, missing: MissingBranch) -> Ready {
        let split = FoundSplit { feature: 0, code: 0, threshold: 0.0, missing_code: Some(1), missing, gain };
        Ready { node, split }
    }

    #[test]
    fn a_tree_with_all_its_leaves_is_full() {
        let mut frontier = Frontier::new(Order::BestFirst { leaves: 4 });
        frontier.push(ready(0, 1.0, MissingBranch::Middle));
        assert_eq!(frontier.next()[0].node, 0);
        assert!(!frontier.is_full(), "one of three leaves may still have two children");
        frontier.push(ready(1, 3.0, MissingBranch::Middle));
        frontier.push(ready(2, 2.0, MissingBranch::Right));
        assert_eq!(frontier.next()[0].node, 2, "three children are too many");
        assert!(frontier.is_full() && frontier.next().is_empty());
        let mut levels = Frontier::new(Order::Levels);
        levels.push(ready(0, 1.0, MissingBranch::Right));
        assert!(levels.next().len() == 1 && !levels.is_full());
    }
}
