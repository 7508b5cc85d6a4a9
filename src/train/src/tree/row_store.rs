//! The interface between the tree grower and the rows, which are in this process or on a cluster. A row store assigns
//! rows to nodes and returns sums over nodes. The sums of several stores can be added up.

use super::cell::Cell;
use super::exact::{GroupNodes, ValueList};
use super::finder::{GrowContext, OpenNode};
use super::histogram::{HistogramBuilder, NodeHistogram, WantedNode};
use super::rows::{AT_A_TIME, NodeId, NodeSplit, RowEntry, RowSets};
use super::split::FoundSplit;
use super::streaming_cuts::NodePart;
use super::streaming_worker::NodeHistograms;
use super::workers::WorkerPiece;
use crate::bins::BinnedData;
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use rayon::prelude::*;

/// Stores the rows of a tree while it grows.
pub trait RowStore<C: Cell> {
    /// Returns the sum over all rows of the tree.
    fn root(&mut self) -> Result<C>;

    /// Moves the rows of split nodes to their children. Returns the sums over the children of each split: left, right
    /// and, if there is one, middle.
    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<Vec<C>>>;

    /// Returns the histograms of nodes, for the given feature groups.
    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>>;

    /// Replaces the gradient of every row by the number that `_moves` gives for its node, and returns the histogram of
    /// these gradients over all nodes together. The rows' own gradients are lost, so it is called only when the tree is
    /// complete. Returns `None` if the rows are remote, because a round trip would take longer than it saves.
    fn moved(&mut self, _groups: &[usize], _moves: &[(NodeId, i32)]) -> Result<Option<NodeHistogram<C>>> {
        Ok(None)
    }

    /// Returns the streaming histograms of nodes for each feature group, merged over all workers. Returns `None` if the
    /// rows are in this process.
    fn merged_histograms(
        &mut self,
        _groups: &[usize],
        _nodes: &[NodeId],
    ) -> Result<Option<Vec<NodeHistograms>>> {
        Ok(None)
    }

    /// Returns the sums of nodes by code, by feature group and, for each, by node. Returns `None` if
    /// the rows are in this process.
    fn value_sums(&mut self, _wanted: &[GroupNodes]) -> Result<Option<Vec<Vec<ValueList<C>>>>> {
        Ok(None)
    }

    /// Returns the sums over some rows of nodes.
    fn part_sums(&mut self, parts: &[NodePart]) -> Result<Vec<C>>;

    /// Called with the sums over the children of the split that was chosen for a node by exact counts. The split may or
    /// may not be applied later.
    fn chosen(&mut self, _node: NodeId, _children: Vec<C>) {}

    /// Called with every split found in the histogram of a node. The split may or may not be applied later.
    fn found(
        &mut self,
        _ground: &GrowContext<'_>,
        _open: &OpenNode<C>,
        _split: &FoundSplit,
        _of: &NodeHistogram<C>,
    ) {
    }

    /// Returns the rows themselves, for split finders that read single rows. Returns an error if the rows are remote.
    fn local(&self) -> Result<&RowSets<C>>;
}

/// Row store in this process.
pub(crate) struct LocalRows<'a, C: Cell> {
    /// The training data.
    pub data: &'a BinnedData,
    /// The rows of each node.
    pub sets: &'a mut RowSets<C>,
    /// Number of bits for the count in packed cells.
    pub count_bits: u32,
}

impl<C: Cell> RowStore<C> for LocalRows<'_, C> {
    fn root(&mut self) -> Result<C> {
        let total = self.totals(&[0])[0];
        self.sets.totals.insert(0, total);
        Ok(total)
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<Vec<C>>> {
        self.sets.split(self.data, splits)?;
        // The sum of the largest child is the parent's sum minus those of its siblings.
        let largest = |split: &NodeSplit| split.children().max_by_key(|child| self.sets.count(*child));
        let largest: Vec<NodeId> = splits.iter().filter_map(largest).collect();
        let smaller = splits.iter().zip(&largest);
        let smaller: Vec<NodeId> = smaller
            .flat_map(|(split, largest)| split.children().filter(move |child| child != largest))
            .collect();
        let mut totals = self.totals(&smaller).into_iter();
        let mut all = Vec::with_capacity(splits.len());
        for (split, largest) in splits.iter().zip(largest) {
            let mut rest = self.total(split.node);
            let mut children = Vec::with_capacity(split.children().len());
            for child in split.children() {
                let total = if child == largest { None } else { totals.next() };
                total.iter().for_each(|total| rest.subtract(*total));
                children.push(total.unwrap_or_default());
            }
            children[largest - split.left] = rest;
            for (child, total) in split.children().zip(&children) {
                self.sets.totals.insert(child, *total);
            }
            all.push(children);
        }
        Ok(all)
    }

    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>> {
        let builder = HistogramBuilder { data: self.data, count_bits: self.count_bits, groups };
        builder.build(self.sets, nodes)
    }

    fn moved(&mut self, groups: &[usize], moves: &[(NodeId, i32)]) -> Result<Option<NodeHistogram<C>>> {
        self.sets.partitions.par_iter_mut().for_each(|rows| {
            moves.iter().for_each(|(node, units)| rows.set_targets(*node, C::target(*units, 0)));
        });
        let nodes: Vec<NodeId> = moves.iter().map(|(node, _)| *node).collect();
        let mut total = C::default();
        self.totals(&nodes).into_iter().for_each(|of_node| total.add(of_node));
        let builder = HistogramBuilder { data: self.data, count_bits: self.count_bits, groups };
        Ok(builder.build_unions(self.sets, &[(&nodes, total)])?.pop())
    }

    fn part_sums(&mut self, parts: &[NodePart]) -> Result<Vec<C>> {
        let rows = self.data.rows.iter().enumerate();
        let all = rows.map(|(partition, rows)| WorkerPiece { partition, rows: 0..rows.len() as u32 });
        self.part_sums_within(parts, &all.collect::<Vec<_>>())
    }

    fn local(&self) -> Result<&RowSets<C>> {
        Ok(self.sets)
    }
}

impl<C: Cell> LocalRows<'_, C> {
    /// Returns the sum over the rows of a node.
    pub(crate) fn total(&self, node: NodeId) -> C {
        self.sets.totals.get(&node).copied().unwrap_or_else(|| self.totals(&[node])[0])
    }

    /// Returns the sums over those rows of node parts that are in the given pieces of partitions.
    pub(crate) fn part_sums_within(&self, parts: &[NodePart], pieces: &[WorkerPiece]) -> Result<Vec<C>> {
        let tasks: Vec<(&NodePart, &WorkerPiece)> =
            parts.iter().flat_map(|part| pieces.iter().map(move |piece| (part, piece))).collect();
        let sums = tasks.par_iter().with_max_len(1).map(|(part, piece)| self.part_sum(part, piece));
        let sums: Vec<C> = sums.collect::<Result<_>>()?;
        let add_up = |of_part: &[C]| {
            let mut total = C::default();
            of_part.iter().for_each(|sum| total.add(*sum));
            total
        };
        match pieces {
            [] => Ok(vec![C::default(); parts.len()]),
            _ => Ok(sums.chunks(pieces.len()).map(add_up).collect()),
        }
    }

    fn part_sum(&self, part: &NodePart, piece: &WorkerPiece) -> Result<C> {
        let rows = self.sets.partitions[piece.partition].node_within(part.node, piece.rows.clone());
        let sum = |is_in: &(dyn Fn(u32) -> bool + Sync)| {
            let of_chunk = |entries: &[RowEntry<C::Target>]| {
                let mut sum = C::default();
                let counted = entries.iter().filter(|entry| is_in(entry.row));
                counted.for_each(|entry| sum.add(C::of(entry.target, self.count_bits)));
                sum
            };
            let add = |mut one: C, other: C| {
                one.add(other);
                one
            };
            rows.entries.par_chunks(AT_A_TIME).map(of_chunk).reduce(C::default, add)
        };
        let Some(split) = part.left_of else { return Ok(sum(&|_| true)) };
        let binning = &self.data.binning;
        let place = binning.layout.places.get(split.feature as usize).copied().flatten();
        let place = place.ok_or_else(malformed)?;
        let codes = self.data.codes(piece.partition, &[place.column])?;
        let column = codes.column(place, &binning.features[split.feature as usize]);
        let missing = split.missing_goes_left();
        Ok(sum(&|row| {
            let code = column.code(row);
            code <= split.code || Some(code) == missing
        }))
    }

    /// Returns the sum over the rows of each node.
    fn totals(&self, nodes: &[NodeId]) -> Vec<C> {
        let partitions = self.sets.partitions.iter();
        let chunks = partitions.flat_map(|rows| {
            let of_node = |(place, node): (usize, &NodeId)| {
                rows.node(*node).entries.chunks(AT_A_TIME).map(move |entries| (place, entries))
            };
            nodes.iter().enumerate().flat_map(of_node)
        });
        let chunks: Vec<(usize, &[RowEntry<C::Target>])> = chunks.collect();
        let add_up = |(place, entries): &(usize, &[RowEntry<C::Target>])| {
            let mut total = C::default();
            entries.iter().for_each(|entry| total.add(C::of(entry.target, self.count_bits)));
            (*place, total)
        };
        let of_chunks: Vec<(usize, C)> = chunks.par_iter().map(add_up).collect();
        let mut totals = vec![C::default(); nodes.len()];
        of_chunks.into_iter().for_each(|(place, total)| totals[place].add(total));
        totals
    }
}
