//! Grows one tree by repeating three steps: find splits, apply them, and move rows to the children.

use super::cell::{Cell, GradientSums};
use super::finder::{GrowContext, OpenNode, Siblings, SplitFinder};
use super::frontier::{Frontier, Order, Ready};
use super::monotone::ValueBounds;
use super::row_store::RowStore;
use super::rows::{NodeId, NodeSplit};
use super::split::FoundSplit;
use planetree_base::error::Result;

/// A tree whose growth is complete, before leaf values are computed.
#[derive(Debug, Clone, PartialEq)]
pub struct GrownTree {
    /// All nodes, starting with the root. Every parent comes before its children.
    pub nodes: Vec<GrownNode>,
}

/// A node of a grown tree.
#[derive(Debug, Clone, PartialEq)]
pub struct GrownNode {
    /// Depth of the node; 0 for the root.
    pub depth: u32,
    /// Sums over the rows of the node.
    pub sums: GradientSums,
    /// Split and left child; `None` for a leaf. The other children have the next indices.
    pub split: Option<(FoundSplit, NodeId)>,
    /// The bounds of its value, and of the values of all leaves below it.
    pub bounds: ValueBounds,
}

/// Size limits of a tree.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimits {
    /// Maximum depth of a leaf.
    pub depth: u32,
    /// Order in which nodes are split.
    pub order: Order,
}

/// Grows a tree. Afterwards, the rows are sorted by leaf.
pub fn grow<C: Cell>(
    context: &GrowContext<'_>,
    limits: TreeLimits,
    rows: &mut dyn RowStore<C>,
    finder: &mut dyn SplitFinder<C>,
) -> Result<GrownTree> {
    let mut growth = TreeGrowth { context, limits, nodes: Vec::new(), frontier: Frontier::new(limits.order) };
    let root = growth.add_node(rows.root()?, 0, ValueBounds::ALL);
    growth.find(rows, finder, &[Siblings::root(root)])?;
    loop {
        let batch = growth.frontier.next();
        if batch.is_empty() {
            return Ok(GrownTree { nodes: growth.nodes });
        }
        let splits = growth.number_children(&batch);
        let totals = rows.split(&splits)?;
        let children = splits.iter().zip(totals);
        let siblings: Vec<Siblings<C>> =
            children.map(|(split, totals)| growth.add_children(split, totals)).collect();
        growth.find(rows, finder, &siblings)?;
    }
}

struct TreeGrowth<'a> {
    context: &'a GrowContext<'a>,
    limits: TreeLimits,
    nodes: Vec<GrownNode>,
    frontier: Frontier,
}

impl TreeGrowth<'_> {
    /// Assigns node ids to the children of split nodes.
    fn number_children(&self, batch: &[Ready]) -> Vec<NodeSplit> {
        let mut next = self.nodes.len();
        let number = |ready: &Ready| {
            let split = NodeSplit { node: ready.node, left: next, split: ready.split };
            next = split.children().end;
            split
        };
        batch.iter().map(number).collect()
    }

    fn add_node<C: Cell>(&mut self, total: C, depth: u32, bounds: ValueBounds) -> OpenNode<C> {
        let node = self.nodes.len();
        let sums = total.sums(self.context.rules.scale.count_bits);
        self.nodes.push(GrownNode { depth, sums, split: None, bounds });
        let has_room = depth < self.limits.depth && !self.frontier.is_full();
        let wanted = has_room && self.context.rules.may_split(sums);
        OpenNode { node, total, bounds, wanted, deepest: depth + 1 >= self.limits.depth }
    }

    /// Adds the children of a split, given the sums over their rows.
    fn add_children<C: Cell>(&mut self, split: &NodeSplit, totals: Vec<C>) -> Siblings<C> {
        let GrownNode { depth, bounds, .. } = self.nodes[split.node];
        let bits = self.context.rules.scale.count_bits;
        let sums = |child: usize| totals.get(child).copied().unwrap_or_default().sums(bits);
        let (left, right) = (sums(0), sums(1));
        let bounds = self.context.bounds_of_children(bounds, &split.split, left, right);
        let children = totals.into_iter().zip(bounds);
        let nodes = children.map(|(total, bounds)| self.add_node(total, depth + 1, bounds)).collect();
        self.nodes[split.node].split = Some((split.split, split.left));
        Siblings { parent: Some(split.node), nodes }
    }

    fn find<C: Cell>(
        &mut self,
        rows: &mut dyn RowStore<C>,
        finder: &mut dyn SplitFinder<C>,
        siblings: &[Siblings<C>],
    ) -> Result<()> {
        let splits = finder.find(self.context, rows, siblings)?;
        for (open, split) in siblings.iter().flat_map(Siblings::nodes).zip(splits) {
            if let Some(split) = split {
                self.frontier.push(Ready { node: open.node, split });
            }
        }
        Ok(())
    }
}
