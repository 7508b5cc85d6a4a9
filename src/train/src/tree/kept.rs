//! Keeps node histograms while a tree is grown. Of several siblings, the histograms of the smaller ones are built from
//! their rows; that of the largest is the parent's histogram minus those of its siblings. If the root histogram of the next tree
//! is to be derived from this tree, the histograms of leaves are also kept until the tree is complete.

use super::cell::Cell;
use super::finder::{GrowContext, OpenNode, Siblings};
use super::histogram::{NodeHistogram, WantedNode};
use super::row_store::RowStore;
use super::rows::NodeId;
use planetree_base::error::Result;
use rayon::prelude::*;
use std::collections::HashMap;

/// Histograms that are kept for later use, within a memory limit.
pub struct KeptHistograms<C> {
    kept: HashMap<NodeId, NodeHistogram<C>>,
    kept_bytes: usize,
    carry: Option<CarryStore<C>>,
}

/// Histograms that are kept until the tree is complete, to derive the root of the next tree.
struct CarryStore<C> {
    /// Root histogram derived from the previous tree, until it is used.
    given: Option<NodeHistogram<C>>,
    /// Copy of this tree's root histogram, once it is known.
    root: Option<NodeHistogram<C>>,
    /// Histograms of leaves. For sibling leaves without histograms, the histogram of their parent.
    others: Vec<(NodeId, NodeHistogram<C>)>,
}

impl<C> Default for KeptHistograms<C> {
    fn default() -> Self {
        KeptHistograms { kept: HashMap::new(), kept_bytes: 0, carry: None }
    }
}

impl<C: Cell> KeptHistograms<C> {
    /// Creates a store that also keeps what is needed to derive the root of the next tree. `given` is the root
    /// histogram of this tree, if it was derived from the previous tree.
    pub fn for_carry(given: Option<NodeHistogram<C>>) -> Self {
        let carry = Some(CarryStore { given, root: None, others: Vec::new() });
        KeptHistograms { carry, ..Self::default() }
    }

    /// Returns the histograms of all wanted nodes, in the order of `siblings`.
    pub fn build(
        &mut self,
        context: &GrowContext<'_>,
        groups: &[usize],
        rows: &mut dyn RowStore<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<(OpenNode<C>, NodeHistogram<C>)>> {
        let bits = context.rules.scale.count_bits;
        let mut plans = Vec::with_capacity(siblings.len());
        let mut wanted = Vec::new();
        for pair in siblings {
            let plan = match (self.plan(pair, bits), pair.parent) {
                (HistogramPlan::Unused(histogram), Some(node)) => {
                    self.keep_for_next_root(node, histogram, context.histogram_bytes);
                    continue;
                }
                (plan, _) => plan,
            };
            wanted.extend(plan.built().iter().map(|open| WantedNode { node: open.node, total: open.total }));
            plans.push(plan);
        }
        let mut built = rows.histograms(groups, &wanted)?.into_iter();
        let plans: Vec<(HistogramPlan<C>, Vec<NodeHistogram<C>>)> = plans
            .into_iter()
            .map(|plan| {
                let built = built.by_ref().take(plan.built().len()).collect();
                (plan, built)
            })
            .collect();
        let of_siblings: Vec<_> = plans.into_par_iter().map(|(plan, built)| plan.finish(built)).collect();
        let mut all = Vec::with_capacity(siblings.len() * 2);
        for (open, histogram) in of_siblings.into_iter().flatten() {
            if let (0, Some(carry)) = (open.node, &mut self.carry) {
                carry.root = Some(histogram.clone());
            }
            if open.wanted {
                all.push((open, histogram));
            } else {
                self.keep_for_next_root(open.node, histogram, context.histogram_bytes);
            }
        }
        Ok(all)
    }

    /// Returns how the histograms of siblings are obtained, which uses up that of their parent.
    pub(super) fn plan(&mut self, siblings: &Siblings<C>, count_bits: u32) -> HistogramPlan<C> {
        let parent = siblings.parent.and_then(|parent| self.kept.remove(&parent));
        if let Some(parent) = &parent {
            self.kept_bytes -= parent.bytes();
        }
        let given = match &mut self.carry {
            Some(carry) if siblings.parent.is_none() => carry.given.take(),
            _ => None,
        };
        HistogramPlan::of(siblings, parent, given, count_bits, self.carries())
    }

    /// Returns whether histograms are kept to derive the root of the next tree.
    pub(super) fn carries(&self) -> bool {
        self.carry.is_some()
    }

    /// Keeps a histogram that this tree no longer needs, to derive the root histogram of the next tree. It is dropped
    /// if the kept histograms would exceed half of `room` bytes.
    pub fn keep_for_next_root(&mut self, node: NodeId, histogram: NodeHistogram<C>, room: usize) {
        let bytes = histogram.bytes();
        if let Some(carry) = &mut self.carry
            && self.kept_bytes + bytes <= room / 2
        {
            self.kept_bytes += bytes;
            carry.others.push((node, histogram));
        }
    }

    /// Removes and returns the root histogram, if it was kept.
    pub fn take_root(&mut self) -> Option<NodeHistogram<C>> {
        self.carry.as_mut()?.root.take()
    }

    /// Returns all kept histograms. No row is in more than one of them.
    pub fn all(&self) -> impl Iterator<Item = (NodeId, &NodeHistogram<C>)> {
        let others = self.carry.iter().flat_map(|carry| &carry.others);
        let kept = self.kept.iter().map(|(node, histogram)| (*node, histogram));
        kept.chain(others.map(|(node, histogram)| (*node, histogram)))
    }

    /// Keeps the histogram of a node for its children, if there is space within `room` bytes. Otherwise, all children
    /// are built from their rows, with the same result.
    pub fn keep(&mut self, node: NodeId, histogram: NodeHistogram<C>, room: usize) {
        let bytes = histogram.bytes();
        if self.kept_bytes + bytes <= room {
            self.kept_bytes += bytes;
            self.kept.insert(node, histogram);
        }
    }
}

/// How the histograms of siblings, or of the root, are obtained.
pub(super) enum HistogramPlan<C> {
    /// The histogram is already known.
    Given(OpenNode<C>, NodeHistogram<C>),
    /// The histogram of each node is built from its rows.
    Built(Vec<OpenNode<C>>),
    /// The histograms of all nodes but the last are built from their rows. That of the last node is the given histogram
    /// of the parent minus the others.
    Subtracted(Vec<OpenNode<C>>, NodeHistogram<C>),
    /// No histogram is needed, so the given histogram of the parent is left over.
    Unused(NodeHistogram<C>),
}

impl<C: Cell> HistogramPlan<C> {
    fn of(
        pair: &Siblings<C>,
        parent: Option<NodeHistogram<C>>,
        given: Option<NodeHistogram<C>>,
        bits: u32,
        carries: bool,
    ) -> Self {
        let wanted: Vec<OpenNode<C>> = pair.nodes().filter(|open| open.wanted).collect();
        match (&pair.nodes[..], parent, given) {
            ([root], _, Some(given)) => HistogramPlan::Given(*root, given),
            ([_, _, ..], Some(parent), _) if wanted.is_empty() => HistogramPlan::Unused(parent),
            ([_, _, ..], Some(parent), _) => {
                let mut nodes = pair.nodes.clone();
                let largest = nodes.remove(pair.largest(bits));
                // Of three siblings, fewer rows may be wanted than a subtraction needs.
                let rows = |nodes: &[OpenNode<C>]| -> i64 {
                    nodes.iter().map(|open| open.total.sums(bits).count).sum()
                };
                if !carries && rows(&wanted) < rows(&nodes) {
                    return HistogramPlan::Built(wanted);
                }
                nodes.push(largest);
                HistogramPlan::Subtracted(nodes, parent)
            }
            _ => HistogramPlan::Built(wanted),
        }
    }

    /// Returns the nodes whose histograms must be built from rows.
    fn built(&self) -> &[OpenNode<C>] {
        match self {
            HistogramPlan::Given(..) | HistogramPlan::Unused(_) => &[],
            HistogramPlan::Built(nodes) => nodes,
            HistogramPlan::Subtracted(nodes, _) => &nodes[..nodes.len() - 1],
        }
    }

    /// Returns the nodes with their histograms in tree order, given the histograms that were built from rows.
    fn finish(self, mut built: Vec<NodeHistogram<C>>) -> Vec<(OpenNode<C>, NodeHistogram<C>)> {
        match self {
            HistogramPlan::Given(node, histogram) => vec![(node, histogram)],
            HistogramPlan::Built(nodes) => nodes.into_iter().zip(built).collect(),
            HistogramPlan::Subtracted(nodes, mut parent) => {
                parent.subtract(&built);
                built.push(parent);
                let mut all: Vec<_> = nodes.into_iter().zip(built).collect();
                all.sort_by_key(|(open, _)| open.node);
                all
            }
            HistogramPlan::Unused(_) => Vec::new(),
        }
    }
}
