//! Growing one tree: find splits, make them, move rows to the children, find theirs.

use super::cell::{Cell, Sums};
use super::finder::{Family, Ground, OpenNode, SplitFinder};
use super::frontier::{Frontier, Order, Ready};
use super::holder::Holder;
use super::rows::{NodeId, NodeSplit};
use super::split::FoundSplit;
use planetree_base::error::Result;

/// A tree as it was grown.
#[derive(Debug, Clone, PartialEq)]
pub struct GrownTree {
    /// Its nodes, the root first, every parent before its children.
    pub nodes: Vec<GrownNode>,
}

/// A node of a grown tree.
#[derive(Debug, Clone, PartialEq)]
pub struct GrownNode {
    /// 0 for the root.
    pub depth: u32,
    /// Of the rows it was grown from.
    pub sums: Sums,
    /// How it is split, and its left child; the right one follows it.
    pub split: Option<(FoundSplit, NodeId)>,
}

/// How large a tree may be.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimits {
    /// Splits from the root to a leaf at most.
    pub depth: u32,
    /// Which nodes first.
    pub order: Order,
}

/// Grows a tree over the rows, which end up sorted by its leaves.
pub fn grow<C: Cell>(
    ground: &Ground<'_>,
    limits: TreeLimits,
    rows: &mut dyn Holder<C>,
    finder: &mut dyn SplitFinder<C>,
) -> Result<GrownTree> {
    let mut growth = Growth { ground, limits, nodes: Vec::new(), frontier: Frontier::new(limits.order) };
    let root = growth.add_node(rows.root()?, 0);
    growth.find(rows, finder, &[Family { parent: None, first: root, second: None }])?;
    loop {
        let batch = growth.frontier.next();
        if batch.is_empty() {
            return Ok(GrownTree { nodes: growth.nodes });
        }
        let splits = growth.make_room(&batch);
        let totals = rows.split(&splits)?;
        let children = splits.iter().zip(totals);
        let families: Vec<Family<C>> =
            children.map(|(split, totals)| growth.add_children(split, totals)).collect();
        growth.find(rows, finder, &families)?;
    }
}

struct Growth<'a> {
    ground: &'a Ground<'a>,
    limits: TreeLimits,
    nodes: Vec<GrownNode>,
    frontier: Frontier,
}

impl Growth<'_> {
    /// Numbers the children of nodes that are split.
    fn make_room(&self, batch: &[Ready]) -> Vec<NodeSplit> {
        let first = self.nodes.len();
        let numbered = batch.iter().enumerate();
        numbered
            .map(|(place, ready)| NodeSplit { node: ready.node, left: first + 2 * place, split: ready.split })
            .collect()
    }

    fn add_node<C: Cell>(&mut self, total: C, depth: u32) -> OpenNode<C> {
        let node = self.nodes.len();
        let sums = total.sums(self.ground.rules.scale.count_bits);
        self.nodes.push(GrownNode { depth, sums, split: None });
        OpenNode { node, total, wanted: depth < self.limits.depth && self.ground.rules.may_split(sums) }
    }

    /// Adds the children of a split, whose rows add up to `left` and `right`.
    fn add_children<C: Cell>(&mut self, split: &NodeSplit, [left, right]: [C; 2]) -> Family<C> {
        let depth = self.nodes[split.node].depth + 1;
        let first = self.add_node(left, depth);
        let second = self.add_node(right, depth);
        self.nodes[split.node].split = Some((split.split, split.left));
        Family { parent: Some(split.node), first, second: Some(second) }
    }

    fn find<C: Cell>(
        &mut self,
        rows: &mut dyn Holder<C>,
        finder: &mut dyn SplitFinder<C>,
        families: &[Family<C>],
    ) -> Result<()> {
        let splits = finder.find(self.ground, rows, families)?;
        for (open, split) in families.iter().flat_map(Family::nodes).zip(splits) {
            if let Some(split) = split {
                self.frontier.push(Ready { node: open.node, split });
            }
        }
        Ok(())
    }
}
