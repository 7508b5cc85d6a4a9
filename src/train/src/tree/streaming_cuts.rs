//! Chooses among the candidates of streaming histograms, which know the sums on either side of a cut only
//! approximately: the best ones are summed exactly, to see whether their children have enough rows and keep the limits of the
//! node.

use super::cell::{Cell, GradientSums};
use super::finder::{GrowContext, OpenNode};
use super::row_store::RowStore;
use super::rows::NodeId;
use super::split::FoundSplit;
use crate::bins::MissingBranch;
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use serde::{Deserialize, Serialize};

/// A candidate split of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CandidateCut {
    /// The split, with its approximate gain.
    pub split: FoundSplit,
    /// Approximate count of the smallest child, or weight if rows have weights.
    pub fewest: f64,
    /// The sums over the rows with missing values, which are exact.
    pub missing: GradientSums,
}

/// Rows of a node that are summed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NodePart {
    /// The node.
    pub node: NodeId,
    /// The rows that this split sends to the left, or `None` for all rows.
    pub left_of: Option<FoundSplit>,
}

/// Returns the best candidate of each node that leaves enough rows to all children and keeps the limits of the node.
/// `candidates` has the candidates of each feature group, by node. Ties go to the feature with the lower index, then to
/// the lower threshold.
pub(super) fn choose<C: Cell>(
    context: &GrowContext<'_>,
    rows: &mut dyn RowStore<C>,
    wanted: &[OpenNode<C>],
    candidates: Vec<Vec<Vec<CandidateCut>>>,
) -> Result<Vec<Option<FoundSplit>>> {
    /// How many more candidates are counted after each attempt. Nearly always, the first candidate is chosen.
    const GROWTH: usize = 8;
    let mut by_gain: Vec<Vec<CandidateCut>> = vec![Vec::new(); wanted.len()];
    for of_group in candidates {
        by_gain.iter_mut().zip(of_group).for_each(|(all, cuts)| all.extend(cuts));
    }
    for cuts in &mut by_gain {
        cuts.sort_by(|one, other| {
            let (worth, others) = (context.worth(&one.split), context.worth(&other.split));
            others.total_cmp(&worth).then(one.split.feature.cmp(&other.split.feature))
        });
    }
    let rules = &context.rules;
    let least = rules.min_data.max(1);
    let mut chosen: Vec<Option<FoundSplit>> = vec![None; wanted.len()];
    let mut next = vec![0; wanted.len()];
    let mut most = 2;
    loop {
        let mut parts = Vec::new();
        for (place, cuts) in by_gain.iter().enumerate() {
            let cuts = &cuts[next[place]..];
            if chosen[place].is_some() || cuts.is_empty() {
                continue;
            }
            // Which candidates are counted at a time does not affect which one is chosen.
            let is_likely = |cut: &CandidateCut| cut.fewest >= 2.0 * least as f64;
            let likely = 1 + cuts.iter().position(is_likely).unwrap_or(cuts.len());
            let count = likely.min(most).min(cuts.len());
            next[place] += count;
            let node = wanted[place].node;
            let part = |cut: &CandidateCut| (place, *cut, NodePart { node, left_of: Some(cut.split) });
            parts.extend(cuts[..count].iter().map(part));
        }
        if parts.is_empty() {
            return Ok(chosen);
        }
        let asked: Vec<NodePart> = parts.iter().map(|(_, _, part)| *part).collect();
        let sums = rows.part_sums(&asked)?;
        if sums.len() != parts.len() {
            return Err(malformed());
        }
        let bits = rules.scale.count_bits;
        for ((place, cut, part), left) in parts.into_iter().zip(sums) {
            let mut right = wanted[place].total;
            right.subtract(left);
            let mut children = vec![left, right];
            if cut.split.missing == MissingBranch::Middle {
                let missing = C::of_sums(cut.missing, bits);
                children[1].subtract(missing);
                children.push(missing);
            }
            let is_allowed = || {
                let [left, right] = [children[0], children[1]].map(|child| child.sums(bits));
                let limits = context.limits(&wanted[place], cut.split.feature);
                limits.is_none_or(|limits| rules.allows(limits, left, right, cut.split.is_apart()))
            };
            let are_enough = || children.iter().all(|child| child.sums(bits).count >= least);
            if chosen[place].is_none() && are_enough() && is_allowed() {
                chosen[place] = part.left_of;
                rows.chosen(part.node, children);
            }
        }
        most = most.saturating_mul(GROWTH);
    }
}
