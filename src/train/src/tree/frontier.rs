//! The order of splitting: all nodes of a level, or the node with the largest gain.

use super::rows::NodeId;
use super::split::FoundSplit;

/// A node with its best split.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// The node.
    pub node: NodeId,
    /// Its best split.
    pub split: FoundSplit,
}

/// Level by level or best-first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All nodes of a level at once.
    Levels,
    /// The node with the largest gain first, up to a number of leaves.
    BestFirst {
        /// Maximum number of leaves.
        leaves: u32,
    },
}

/// The nodes to be split.
pub struct Frontier {
    order: Order,
    ready: Vec<Ready>,
    leaves: u32,
}

impl Frontier {
    /// The frontier of a new tree, which has one leaf: the root.
    pub fn new(order: Order) -> Self {
        Frontier { order, ready: Vec::new(), leaves: 1 }
    }

    /// Adds a node.
    pub fn push(&mut self, ready: Ready) {
        self.ready.push(ready);
    }

    /// The nodes to split now; none when the tree is complete.
    pub fn next(&mut self) -> Vec<Ready> {
        let batch = match self.order {
            Order::Levels => std::mem::take(&mut self.ready),
            Order::BestFirst { leaves } if self.leaves < leaves => {
                // Ties go to the first node.
                let best = (0..self.ready.len()).reduce(|best, other| {
                    if self.ready[other].split.gain > self.ready[best].split.gain { other } else { best }
                });
                best.map(|best| self.ready.remove(best)).into_iter().collect()
            }
            Order::BestFirst { .. } => Vec::new(),
        };
        self.leaves += batch.len() as u32;
        batch
    }
}
