//! Determines the order in which leaves are split. The gain of a listwise split depends on all other leaves, so the
//! order matters (section 4.3.3 of Ibrahim & Carman 2016).

use crate::config::LeafOrder;
use planetree_base::random::Stream;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A leaf that waits to be split.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingLeaf {
    /// Index of the leaf.
    pub node: u32,
    /// Number of rows in the leaf.
    pub rows: i64,
    /// Score of the leaf.
    pub score: f64,
}

/// The leaves that wait to be split.
pub(super) struct Queue {
    waiting: LeafQueue,
    key: [u64; 2],
    asked: u64,
}

enum LeafQueue {
    Line(VecDeque<u32>),
    Crowd(Vec<u32>),
    /// The newest leaf comes first, and a left child before its sibling.
    Stack(Vec<u32>),
    /// The leaf with the largest key comes first. If keys are equal, the leaf with the lowest index comes first.
    Ranked(BinaryHeap<(u64, Reverse<u32>)>, fn(&PendingLeaf) -> u64),
}

const OF_LEAF: u64 = 0x6661_654C;

impl Queue {
    /// Creates an empty queue for a tree. Random numbers depend only on the seed, the tree and the number of earlier
    /// draws.
    pub(super) fn new(order: LeafOrder, seed: u64, tree: u64) -> Self {
        let waiting = match order {
            LeafOrder::Breadth => LeafQueue::Line(VecDeque::new()),
            LeafOrder::Random => LeafQueue::Crowd(Vec::new()),
            LeafOrder::Depth => LeafQueue::Stack(Vec::new()),
            LeafOrder::Biggest => LeafQueue::Ranked(BinaryHeap::new(), |leaf| leaf.rows as u64),
            LeafOrder::MostRelevant => LeafQueue::Ranked(BinaryHeap::new(), |leaf| ascending(leaf.score)),
        };
        Queue { waiting, key: [seed, tree], asked: 0 }
    }

    /// Adds a leaf.
    pub(super) fn push(&mut self, leaf: PendingLeaf) {
        match &mut self.waiting {
            LeafQueue::Line(line) => line.push_back(leaf.node),
            LeafQueue::Crowd(crowd) => crowd.push(leaf.node),
            LeafQueue::Stack(stack) => {
                // The root is node 0, so left children have odd indices, and right children follow them.
                let is_after_sibling =
                    leaf.node.is_multiple_of(2) && stack.last().map(|last| last + 1) == Some(leaf.node);
                stack.insert(stack.len() - usize::from(is_after_sibling), leaf.node);
            }
            LeafQueue::Ranked(heap, key) => heap.push((key(&leaf), Reverse(leaf.node))),
        }
    }

    /// Removes and returns the leaf that is split next.
    pub(super) fn next(&mut self) -> Option<u32> {
        match &mut self.waiting {
            LeafQueue::Line(line) => line.pop_front(),
            LeafQueue::Stack(stack) => stack.pop(),
            LeafQueue::Crowd(crowd) if crowd.is_empty() => None,
            LeafQueue::Crowd(crowd) => {
                self.asked += 1;
                let mut stream = Stream::new(&[self.key[0], OF_LEAF, self.key[1], self.asked]);
                let place = (stream.uniform() * crowd.len() as f64) as usize;
                Some(crowd.swap_remove(place))
            }
            LeafQueue::Ranked(heap, _) => heap.pop().map(|(_, Reverse(node))| node),
        }
    }
}

/// Maps a float to an integer with the same order.
fn ascending(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(order: LeafOrder, seed: u64) -> Vec<u32> {
        let mut queue = Queue::new(order, seed, 1);
        let leaves = [(10, 0.5), (30, -1.0), (20, 2.0), (30, 0.5), (5, -2.0)];
        for (node, (rows, score)) in (0..).zip(leaves) {
            queue.push(PendingLeaf { node, rows, score });
        }
        std::iter::from_fn(|| queue.next()).collect()
    }

    #[test]
    fn depth_first_completes_a_subtree_before_the_next() {
        let mut queue = Queue::new(LeafOrder::Depth, 0, 1);
        let leaf = |node| PendingLeaf { node, rows: 1, score: 0.0 };
        queue.push(leaf(0));
        let mut order = Vec::new();
        // Node 0 has children 1 and 2, node 1 has 3 and 4, node 3 only a right child that can be split, and so on.
        let mut children = [vec![1, 2], vec![3, 4], vec![6], Vec::new(), Vec::new(), vec![9, 10]].into_iter();
        while let Some(node) = queue.next() {
            order.push(node);
            children.next().into_iter().flatten().for_each(|child| queue.push(leaf(child)));
        }
        assert_eq!(order, [0, 1, 3, 6, 4, 2, 9, 10]);
    }

    #[test]
    fn every_order_takes_every_leaf_once() {
        assert_eq!(order_of(LeafOrder::Breadth, 0), [0, 1, 2, 3, 4]);
        assert_eq!(order_of(LeafOrder::Biggest, 0), [1, 3, 2, 0, 4]);
        assert_eq!(order_of(LeafOrder::MostRelevant, 0), [2, 0, 3, 1, 4]);
        let orders: Vec<Vec<u32>> = (0..20).map(|seed| order_of(LeafOrder::Random, seed)).collect();
        assert!(orders.iter().any(|order| *order != orders[0]));
        assert_eq!(orders[3], order_of(LeafOrder::Random, 3));
        for mut order in orders {
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
    }
}
