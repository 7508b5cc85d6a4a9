//! The seam between growing a tree and where its rows are: in this process, or in those of a cluster. Whoever
//! holds rows moves them to their nodes and adds them up; what comes back is sums, which add up over all holders.

use super::cell::Cell;
use super::finder::{Ground, OpenNode};
use super::histogram::{HistogramBuilder, NodeHistogram, WantedNode};
use super::rows::{AT_A_TIME, Entry, NodeId, NodeSplit, RowSets};
use super::split::FoundSplit;
use crate::bins::BinnedData;
use planetree_base::error::Result;
use rayon::prelude::*;

/// Whoever holds the rows of a tree while it grows.
pub trait Holder<C: Cell> {
    /// What all rows of the tree add up to.
    fn root(&mut self) -> Result<C>;

    /// Moves the rows of split nodes to their children; what the rows of both children of each split add up to.
    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<[C; 2]>>;

    /// The histograms of some nodes: the cells of some groups.
    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>>;

    /// The histogram of some nodes together if every row of a node had so large a gradient, in units. What gradients
    /// the rows had is gone then: the tree is complete. `None` if the rows are elsewhere and this is not worth a
    /// journey.
    fn moved(&mut self, _groups: &[usize], _moves: &[(NodeId, i32)]) -> Result<Option<NodeHistogram<C>>> {
        Ok(None)
    }

    /// Is told of a split that was found in a node's histogram and may be made.
    fn found(
        &mut self,
        _ground: &Ground<'_>,
        _open: &OpenNode<C>,
        _split: &FoundSplit,
        _of: &NodeHistogram<C>,
    ) {
    }

    /// The rows themselves, for finders that look at each of them; an error if they are elsewhere.
    fn here(&self) -> Result<&RowSets<C>>;
}

/// Rows that are in this process.
pub struct HeldHere<'a, C: Cell> {
    /// The data.
    pub data: &'a BinnedData,
    /// The rows of each node.
    pub sets: &'a mut RowSets<C>,
    /// Bits for counts in packed cells.
    pub count_bits: u32,
}

impl<C: Cell> Holder<C> for HeldHere<'_, C> {
    fn root(&mut self) -> Result<C> {
        let total = self.totals(&[0])[0];
        self.sets.totals.insert(0, total);
        Ok(total)
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<[C; 2]>> {
        self.sets.split(self.data, splits)?;
        // The larger child is what the smaller one leaves of its parent.
        let is_left_smaller =
            |split: &NodeSplit| self.sets.count(split.left) <= self.sets.count(split.left + 1);
        let smaller: Vec<usize> = splits.iter().map(|split| usize::from(!is_left_smaller(split))).collect();
        let nodes: Vec<NodeId> = splits.iter().zip(&smaller).map(|(split, side)| split.left + side).collect();
        let totals = self.totals(&nodes);
        let mut children = Vec::with_capacity(splits.len());
        for ((split, side), total) in splits.iter().zip(smaller).zip(totals) {
            let mut other = self.total(split.node);
            other.subtract(total);
            let pair = if side == 0 { [total, other] } else { [other, total] };
            self.sets.totals.insert(split.left, pair[0]);
            self.sets.totals.insert(split.left + 1, pair[1]);
            children.push(pair);
        }
        Ok(children)
    }

    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>> {
        let builder = HistogramBuilder { data: self.data, count_bits: self.count_bits, groups };
        builder.build(self.sets, nodes)
    }

    fn moved(&mut self, groups: &[usize], moves: &[(NodeId, i32)]) -> Result<Option<NodeHistogram<C>>> {
        self.sets.partitions.par_iter_mut().for_each(|rows| {
            moves.iter().for_each(|(node, units)| rows.aim(*node, C::target(*units, 0)));
        });
        let nodes: Vec<NodeId> = moves.iter().map(|(node, _)| *node).collect();
        let mut total = C::default();
        self.totals(&nodes).into_iter().for_each(|of_node| total.add(of_node));
        let builder = HistogramBuilder { data: self.data, count_bits: self.count_bits, groups };
        Ok(builder.build_unions(self.sets, &[(&nodes, total)])?.pop())
    }

    fn here(&self) -> Result<&RowSets<C>> {
        Ok(self.sets)
    }
}

impl<C: Cell> HeldHere<'_, C> {
    /// What the rows of a node add up to.
    pub fn total(&self, node: NodeId) -> C {
        self.sets.totals.get(&node).copied().unwrap_or_else(|| self.totals(&[node])[0])
    }

    /// What the rows of nodes add up to, each for itself.
    fn totals(&self, nodes: &[NodeId]) -> Vec<C> {
        let partitions = self.sets.partitions.iter();
        let stretches = partitions.flat_map(|rows| {
            let of_node = |(place, node): (usize, &NodeId)| {
                rows.node(*node).entries.chunks(AT_A_TIME).map(move |entries| (place, entries))
            };
            nodes.iter().enumerate().flat_map(of_node)
        });
        let stretches: Vec<(usize, &[Entry<C::Target>])> = stretches.collect();
        let add_up = |(place, entries): &(usize, &[Entry<C::Target>])| {
            let mut total = C::default();
            entries.iter().for_each(|entry| total.add(C::of(entry.target, self.count_bits)));
            (*place, total)
        };
        let of_stretches: Vec<(usize, C)> = stretches.par_iter().map(add_up).collect();
        let mut totals = vec![C::default(); nodes.len()];
        of_stretches.into_iter().for_each(|(place, total)| totals[place].add(total));
        totals
    }
}
