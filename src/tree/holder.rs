//! The seam between growing a tree and where its rows are: in this process, or in those of a cluster. Whoever
//! holds rows moves them to their nodes and adds them up; what comes back is sums, which add up over all holders.

use super::cell::Cell;
use super::finder::{Ground, OpenNode};
use super::histogram::{HistogramBuilder, NodeHistogram, WantedNode};
use super::rows::{NodeId, NodeSplit, PartitionRows, RowSets};
use super::split::FoundSplit;
use crate::bins::BinnedData;
use crate::error::Result;
use rayon::prelude::*;

/// Whoever holds the rows of a tree while it grows.
pub trait Holder<C: Cell> {
    /// What all rows of the tree add up to.
    fn root(&mut self) -> Result<C>;

    /// Moves the rows of split nodes to their children; what the rows of both children of each split add up to.
    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<[C; 2]>>;

    /// The histograms of some nodes: the cells of some groups.
    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>>;

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
        Ok(self.total(0))
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<[C; 2]>> {
        self.sets.split(self.data, splits)?;
        Ok(splits.iter().map(|split| [self.total(split.left), self.total(split.left + 1)]).collect())
    }

    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>> {
        let builder = HistogramBuilder { data: self.data, count_bits: self.count_bits, groups };
        builder.build(self.sets, nodes)
    }

    fn here(&self) -> Result<&RowSets<C>> {
        Ok(self.sets)
    }
}

impl<C: Cell> HeldHere<'_, C> {
    /// What the rows of a node add up to.
    pub fn total(&self, node: NodeId) -> C {
        let of_partition = |partition: &PartitionRows<C>| {
            let mut total = C::default();
            let targets = partition.node(node).targets;
            targets.iter().for_each(|target| total.add(C::of(*target, self.count_bits)));
            total
        };
        let mut total = C::default();
        let totals: Vec<C> = self.sets.partitions.par_iter().map(of_partition).collect();
        totals.into_iter().for_each(|part| total.add(part));
        total
    }
}
