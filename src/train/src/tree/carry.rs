//! The root's histogram of the next tree, from what is known of this one.
//!
//! Under the squared error a tree moves the gradient of every row by its leaf's value. The sums of a bin then move by the
//! values of all leaves, each as often as the bin has rows of the leaf; and how often that is, histograms of leaves
//! say, or of their parents. Where a parent has two leaves, the smaller one is gone through again; so the root of
//! every tree but the first costs a part of the rows where it would cost all of them. The sums are of whole numbers, and are
//! those that all rows would give, to the bit.

use super::cell::{Cell, Scale};
use super::finder::Ground;
use super::frontier::Order;
use super::grow::{GrownTree, TreeLimits};
use super::histogram::{NodeHistogram, cells_of_group};
use super::holder::Holder;
use super::kept::KeptHistograms;
use super::rows::NodeId;
use crate::bins::BinnedData;
use planetree_base::error::Result;
use rayon::prelude::*;

/// The histogram of all rows, before any tree of their gradients is grown.
pub struct CarriedRoot<C> {
    /// Of every group.
    pub histogram: NodeHistogram<C>,
    /// How its gradients are scaled.
    pub scale: Scale,
}

/// Whether histograms of the leaves of such trees cost much less than the rows, in time and memory.
pub fn carrying_pays(data: &BinnedData, limits: TreeLimits) -> bool {
    let by_depth = if limits.depth > 40 { u64::MAX } else { 1 << limits.depth };
    let leaves = match limits.order {
        Order::Levels => by_depth,
        Order::BestFirst { leaves } => by_depth.min(leaves.into()),
    };
    let groups = 0..data.binning.layout.groups.len();
    let cells: usize = groups.map(|group| cells_of_group(&data.binning, group)).sum();
    let codes = data.row_count() * data.binning.features.len() as u64;
    leaves.saturating_mul(cells as u64) <= codes / 4
}

/// How the gradients of a node's rows move.
struct Moves<'a, C> {
    /// Nodes with histograms, and by how many units each of their rows moves.
    known: Vec<(&'a NodeHistogram<C>, i64)>,
    /// Nodes to go through, and the units by which their rows move beyond that.
    unknown: Vec<(NodeId, i64)>,
}

impl<'a, C: Cell> Moves<'a, C> {
    /// `units` are what the leaves take from their rows' gradients.
    fn of(tree: &GrownTree, units: &[i64], kept: &'a KeptHistograms<C>) -> Self {
        let mut moves = Moves { known: Vec::new(), unknown: Vec::new() };
        let mut is_known = vec![false; tree.nodes.len()];
        for (node, histogram) in kept.all() {
            let Some((_, left)) = tree.nodes[node].split else {
                moves.known.push((histogram, units[node]));
                is_known[node] = true;
                continue;
            };
            let count = |node: NodeId| tree.nodes[node].sums.count;
            let right = left + 1;
            let (small, large) = if count(left) <= count(right) { (left, right) } else { (right, left) };
            moves.known.push((histogram, units[large]));
            moves.unknown.push((small, units[small] - units[large]));
            is_known[left..=right].fill(true);
        }
        let leaves = (0..tree.nodes.len()).filter(|node| tree.nodes[*node].split.is_none());
        moves.unknown.extend(leaves.filter(|leaf| !is_known[*leaf]).map(|leaf| (leaf, units[leaf])));
        moves
    }
}

impl<C: Cell> CarriedRoot<C> {
    /// The root of the next tree, after a tree whose leaves take so many units from the gradients of their rows. The
    /// rows are those of this tree, and their gradients are gone then. `None` if it cannot be known without all rows.
    pub fn after(
        tree: &GrownTree,
        units: &[i64],
        mut kept: KeptHistograms<C>,
        ground: &Ground<'_>,
        rows: &mut dyn Holder<C>,
    ) -> Result<Option<Self>> {
        let Some(mut root) = kept.take_root() else { return Ok(None) };
        let scale = ground.rules.scale;
        let moves = Moves::of(tree, units, &kept);
        let mut unknown = Vec::with_capacity(moves.unknown.len());
        for (node, units) in moves.unknown {
            let Ok(units) = i32::try_from(units) else { return Ok(None) };
            unknown.push((node, units));
        }
        let groups: Vec<usize> = (0..root.groups.len()).collect();
        let Some(moved) = rows.moved(&groups, &unknown)? else { return Ok(None) };
        /// Cells that stay in the nearest cache while all histograms are gone through.
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
