//! Derives the root histogram of the next tree from the histograms of this tree.
//!
//! With squared error, a tree changes the gradient of every row by the value of the row's leaf. For each leaf, the
//! gradient sum of a bin therefore changes by the leaf value times the number of the bin's rows in the leaf. This
//! number is in the leaf's histogram, or follows from the histogram of the leaf's parent. If only the parent's
//! histogram was kept, the rows of all its leaves but the largest are scanned again. Deriving a root histogram is much
//! less work than scanning all rows. All sums are integers, so the result is identical to that of a scan.

use super::cell::{Cell, Scale};
use super::finder::GrowContext;
use super::frontier::Order;
use super::grow::{GrownTree, TreeLimits};
use super::histogram::{NodeHistogram, cells_of_group};
use super::kept::KeptHistograms;
use super::row_store::RowStore;
use super::rows::NodeId;
use super::split::SplitRules;
use crate::bins::BinnedData;
use planetree_base::error::Result;
use rayon::prelude::*;

/// Root histogram of the next tree.
pub(crate) struct CarriedRoot<C> {
    /// Cells of all groups, summed over all rows.
    pub histogram: NodeHistogram<C>,
    /// Quantisation scale of the gradients.
    pub scale: Scale,
}

/// Returns whether keeping the leaf histograms of trees with these limits costs much less time and memory than
/// scanning the rows.
pub(crate) fn carrying_pays(data: &BinnedData, rules: &SplitRules, limits: TreeLimits) -> bool {
    let by_depth = (rules.missing.most_children() as u64).saturating_pow(limits.depth);
    let leaves = match limits.order {
        Order::Levels => by_depth,
        Order::BestFirst { leaves } => by_depth.min(leaves.into()),
    };
    let groups = 0..data.binning.layout.groups.len();
    let cells: usize = groups.map(|group| cells_of_group(&data.binning, group)).sum();
    let codes = data.row_count() * data.binning.features.len() as u64;
    leaves.saturating_mul(cells as u64) <= codes / 4
}

/// How a tree changes the gradients of its rows.
struct Moves<'a, C> {
    /// Histograms of nodes, each with the units that are subtracted from the gradients of the node's rows.
    known: Vec<(&'a NodeHistogram<C>, i64)>,
    /// Nodes whose rows must be scanned, each with the units that are subtracted from the gradients of the node's
    /// rows. If the parent of a node is in `known`, this is in addition to the parent's units.
    unknown: Vec<(NodeId, i64)>,
}

impl<'a, C: Cell> Moves<'a, C> {
    /// Collects the changes of a tree. `units` contains, for each leaf, the units that are subtracted from the
    /// gradients of its rows.
    fn of(tree: &GrownTree, units: &[i64], kept: &'a KeptHistograms<C>) -> Self {
        let mut moves = Moves { known: Vec::new(), unknown: Vec::new() };
        let mut is_known = vec![false; tree.nodes.len()];
        for (node, histogram) in kept.all() {
            let Some((split, left)) = tree.nodes[node].split else {
                moves.known.push((histogram, units[node]));
                is_known[node] = true;
                continue;
            };
            let count = |node: NodeId| tree.nodes[node].sums.count;
            let children = left..left + split.missing.children();
            let large = children.clone().max_by_key(|child| count(*child)).unwrap_or(left);
            moves.known.push((histogram, units[large]));
            let smaller = children.clone().filter(|child| *child != large);
            moves.unknown.extend(smaller.map(|small| (small, units[small] - units[large])));
            is_known[children].fill(true);
        }
        let leaves = (0..tree.nodes.len()).filter(|node| tree.nodes[*node].split.is_none());
        moves.unknown.extend(leaves.filter(|leaf| !is_known[*leaf]).map(|leaf| (leaf, units[leaf])));
        moves
    }
}

impl<C: Cell> CarriedRoot<C> {
    /// Derives the root histogram of the next tree. `units` contains, for each leaf of `tree`, the units that are
    /// subtracted from the gradients of the leaf's rows. The quantised gradients in `rows` are overwritten. Returns
    /// `None` if all rows must be scanned instead.
    pub(crate) fn after(
        tree: &GrownTree,
        units: &[i64],
        mut kept: KeptHistograms<C>,
        context: &GrowContext<'_>,
        rows: &mut dyn RowStore<C>,
    ) -> Result<Option<Self>> {
        let Some(mut root) = kept.take_root() else { return Ok(None) };
        let scale = context.rules.scale;
        let moves = Moves::of(tree, units, &kept);
        let mut unknown = Vec::with_capacity(moves.unknown.len());
        for (node, units) in moves.unknown {
            let Ok(units) = i32::try_from(units) else { return Ok(None) };
            unknown.push((node, units));
        }
        let groups: Vec<usize> = (0..root.groups.len()).collect();
        let Some(moved) = rows.moved(&groups, &unknown)? else { return Ok(None) };
        /// Number of cells from which all histograms are subtracted before the next cells are processed, so that the
        /// cells stay in the L1 cache.
        const AT_A_TIME: usize = 2048;
        for (group, cells) in root.groups.iter_mut().enumerate() {
            cells.par_chunks_mut(AT_A_TIME).enumerate().for_each(|(chunk, cells)| {
                let range = chunk * AT_A_TIME..chunk * AT_A_TIME + cells.len();
                for (known, units) in &moves.known {
                    for (cell, known) in cells.iter_mut().zip(&known.groups[group][range.clone()]) {
                        cell.subtract(known.moved(*units, scale.count_bits));
                    }
                }
                for (cell, moved) in cells.iter_mut().zip(&moved.groups[group][range]) {
                    cell.subtract(moved.without_rows(scale.count_bits));
                }
            });
        }
        Ok(Some(CarriedRoot { histogram: root, scale }))
    }
}
