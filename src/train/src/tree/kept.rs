//! Histograms of nodes: of two children the smaller is built from its rows, the larger is what it
//! leaves of their parent's. Where the next tree's root comes of this one's leaves, their histograms are kept to the end.

use super::cell::Cell;
use super::finder::{Family, Ground, OpenNode};
use super::histogram::{NodeHistogram, WantedNode};
use super::holder::Holder;
use super::rows::NodeId;
use planetree_base::error::Result;
use rayon::prelude::*;
use std::collections::HashMap;

/// Keeps the histograms of nodes whose children may be asked for.
pub struct KeptHistograms<C> {
    kept: HashMap<NodeId, NodeHistogram<C>>,
    kept_bytes: usize,
    to_the_end: Option<ToTheEnd<C>>,
}

/// What is kept until the tree is complete.
struct ToTheEnd<C> {
    /// The root's histogram, if it was known before the tree.
    given: Option<NodeHistogram<C>>,
    /// The root's histogram, once it is known.
    root: Option<NodeHistogram<C>>,
    /// Those of leaves, and of parents of two leaves that have none.
    others: Vec<(NodeId, NodeHistogram<C>)>,
}

impl<C> Default for KeptHistograms<C> {
    fn default() -> Self {
        KeptHistograms { kept: HashMap::new(), kept_bytes: 0, to_the_end: None }
    }
}

impl<C: Cell> KeptHistograms<C> {
    /// Keeps what tells the next tree's root; this one's may be known already.
    pub fn to_the_end(given: Option<NodeHistogram<C>>) -> Self {
        let to_the_end = Some(ToTheEnd { given, root: None, others: Vec::new() });
        KeptHistograms { to_the_end, ..Self::default() }
    }

    /// The histograms of all wanted nodes of the families, in their order.
    pub fn build(
        &mut self,
        ground: &Ground<'_>,
        groups: &[usize],
        rows: &mut dyn Holder<C>,
        families: &[Family<C>],
    ) -> Result<Vec<(OpenNode<C>, NodeHistogram<C>)>> {
        let bits = ground.rules.scale.count_bits;
        let mut plans = Vec::with_capacity(families.len());
        let mut wanted = Vec::new();
        for family in families {
            let parent = family.parent.and_then(|parent| self.kept.remove(&parent));
            if let Some(parent) = &parent {
                self.kept_bytes -= parent.bytes();
            }
            let given = match &mut self.to_the_end {
                Some(to_the_end) if family.parent.is_none() => to_the_end.given.take(),
                _ => None,
            };
            let plan = match (Plan::of(family, parent, given, bits), family.parent) {
                (Plan::Unused(histogram), Some(node)) => {
                    self.leave(node, histogram, ground.histogram_bytes);
                    continue;
                }
                (plan, _) => plan,
            };
            wanted.extend(plan.built().iter().map(|open| WantedNode { node: open.node, total: open.total }));
            plans.push(plan);
        }
        let mut built = rows.histograms(groups, &wanted)?.into_iter();
        let plans: Vec<(Plan<C>, Vec<NodeHistogram<C>>)> = plans
            .into_iter()
            .map(|plan| {
                let built = built.by_ref().take(plan.built().len()).collect();
                (plan, built)
            })
            .collect();
        let of_families: Vec<_> = plans.into_par_iter().map(|(plan, built)| plan.finish(built)).collect();
        let mut all = Vec::with_capacity(families.len() * 2);
        for (open, histogram) in of_families.into_iter().flatten() {
            if let (0, Some(to_the_end)) = (open.node, &mut self.to_the_end) {
                to_the_end.root = Some(histogram.clone());
            }
            if open.wanted {
                all.push((open, histogram));
            } else {
                self.leave(open.node, histogram, ground.histogram_bytes);
            }
        }
        Ok(all)
    }

    /// Is given a histogram that the tree has no more use for. Half of the room is left to those that it has.
    pub fn leave(&mut self, node: NodeId, histogram: NodeHistogram<C>, room: usize) {
        let bytes = histogram.bytes();
        if let Some(to_the_end) = &mut self.to_the_end
            && self.kept_bytes + bytes <= room / 2
        {
            self.kept_bytes += bytes;
            to_the_end.others.push((node, histogram));
        }
    }

    /// The root's histogram, if it was to be kept.
    pub fn take_root(&mut self) -> Option<NodeHistogram<C>> {
        self.to_the_end.as_mut()?.root.take()
    }

    /// All that are there: no two of them have rows in common.
    pub fn all(&self) -> impl Iterator<Item = (NodeId, &NodeHistogram<C>)> {
        let others = self.to_the_end.iter().flat_map(|to_the_end| &to_the_end.others);
        let kept = self.kept.iter().map(|(node, histogram)| (*node, histogram));
        kept.chain(others.map(|(node, histogram)| (*node, histogram)))
    }

    /// Keeps a node's histogram for its children, while there is room. Without it both are built
    /// from their rows: slower, the same.
    pub fn keep(&mut self, node: NodeId, histogram: NodeHistogram<C>, room: usize) {
        let bytes = histogram.bytes();
        if self.kept_bytes + bytes <= room {
            self.kept_bytes += bytes;
            self.kept.insert(node, histogram);
        }
    }
}

/// How the histograms of a family come about.
enum Plan<C> {
    /// It was known before.
    Given(OpenNode<C>, NodeHistogram<C>),
    /// From the rows of each.
    Built(Vec<OpenNode<C>>),
    /// From the rows of the first, and what these leave of the parent's.
    Halves([OpenNode<C>; 2], NodeHistogram<C>),
    /// Nothing is wanted, and the parent's is left.
    Unused(NodeHistogram<C>),
}

impl<C: Cell> Plan<C> {
    fn of(
        family: &Family<C>,
        parent: Option<NodeHistogram<C>>,
        given: Option<NodeHistogram<C>>,
        bits: u32,
    ) -> Self {
        let wanted: Vec<OpenNode<C>> = family.nodes().filter(|open| open.wanted).collect();
        let count = |open: &OpenNode<C>| open.total.sums(bits).count;
        match (family.second, parent, given) {
            (None, _, Some(given)) => Plan::Given(family.first, given),
            (Some(_), Some(parent), _) if wanted.is_empty() => Plan::Unused(parent),
            (Some(second), Some(parent), _) if count(&family.first) <= count(&second) => {
                Plan::Halves([family.first, second], parent)
            }
            (Some(second), Some(parent), _) => Plan::Halves([second, family.first], parent),
            _ => Plan::Built(wanted),
        }
    }

    /// The nodes whose rows are added.
    fn built(&self) -> &[OpenNode<C>] {
        match self {
            Plan::Given(..) | Plan::Unused(_) => &[],
            Plan::Built(nodes) => nodes,
            Plan::Halves(nodes, _) => &nodes[..1],
        }
    }

    /// The nodes with their histograms in order, given those that were built.
    fn finish(self, mut built: Vec<NodeHistogram<C>>) -> Vec<(OpenNode<C>, NodeHistogram<C>)> {
        match self {
            Plan::Given(node, histogram) => vec![(node, histogram)],
            Plan::Built(nodes) => nodes.into_iter().zip(built).collect(),
            Plan::Halves(nodes, mut parent) => {
                parent.subtract(&built[0]);
                built.push(parent);
                let mut halves: Vec<_> = nodes.into_iter().zip(built).collect();
                halves.sort_by_key(|(open, _)| open.node);
                halves
            }
            Plan::Unused(_) => Vec::new(),
        }
    }
}
