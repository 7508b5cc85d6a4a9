//! Histograms of nodes: of two children the smaller is built from its rows, the larger is what it
//! leaves of their parent's.

use super::cell::Cell;
use super::finder::{Family, Ground, OpenNode};
use super::histogram::{NodeHistogram, WantedNode};
use super::holder::Holder;
use super::rows::NodeId;
use crate::error::Result;
use std::collections::HashMap;

/// Keeps the histograms of nodes whose children may be asked for.
pub struct KeptHistograms<C> {
    kept: HashMap<NodeId, NodeHistogram<C>>,
    kept_bytes: usize,
}

impl<C> Default for KeptHistograms<C> {
    fn default() -> Self {
        KeptHistograms { kept: HashMap::new(), kept_bytes: 0 }
    }
}

impl<C: Cell> KeptHistograms<C> {
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
            let plan = Plan::of(family, parent, bits);
            wanted.extend(plan.built.iter().map(|open| WantedNode { node: open.node, total: open.total }));
            plans.push(plan);
        }
        let mut built = rows.histograms(groups, &wanted)?.into_iter();
        let mut all = Vec::with_capacity(families.len() * 2);
        for plan in plans {
            let mut of_family: Vec<(OpenNode<C>, NodeHistogram<C>)> = Vec::with_capacity(2);
            of_family.extend(plan.built.iter().copied().zip(built.by_ref()));
            if let Some((sibling, mut parent)) = plan.subtracted {
                parent.subtract(&of_family[0].1);
                of_family.push((sibling, parent));
            }
            of_family.sort_by_key(|(open, _)| open.node);
            all.extend(of_family.into_iter().filter(|(open, _)| open.wanted));
        }
        Ok(all)
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
struct Plan<C> {
    built: Vec<OpenNode<C>>,
    subtracted: Option<(OpenNode<C>, NodeHistogram<C>)>,
}

impl<C: Cell> Plan<C> {
    fn of(family: &Family<C>, parent: Option<NodeHistogram<C>>, bits: u32) -> Self {
        let wanted: Vec<OpenNode<C>> = family.nodes().filter(|open| open.wanted).collect();
        let count = |open: &OpenNode<C>| open.total.sums(bits).count;
        match (parent, family.second) {
            (Some(parent), Some(second)) if !wanted.is_empty() => {
                let (small, large) = if count(&family.first) <= count(&second) {
                    (family.first, second)
                } else {
                    (second, family.first)
                };
                if large.wanted {
                    Plan { built: vec![small], subtracted: Some((large, parent)) }
                } else {
                    Plan { built: vec![small], subtracted: None }
                }
            }
            _ => Plan { built: wanted, subtracted: None },
        }
    }
}
