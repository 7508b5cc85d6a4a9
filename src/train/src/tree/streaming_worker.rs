//! Builds the streaming histograms of workers, each of which has some of the rows; see `streaming.rs`. A worker sums
//! the rows of a node by code (bin number) and inserts the sums into streaming histograms, one per feature. The
//! histograms of workers are merged pairwise; see `workers.rs`.

use super::add_rows::add_rows;
use super::cell::{Cell, GradientSums, Scale, exact};
use super::centroids::{Bin, Centroid, MomentBounds, PART, StreamingHistogram, ValueBlock};
use super::code_sums::CodeSums;
use super::histogram::{feature_cells, finish, lane_cells_of_group};
use super::rows::{NodeId, NodeRows, RowSets};
use super::workers::{MergeTree, WorkerBounds, WorkerPiece};
use crate::bins::{BinnedData, Codes, FeatureBins, GroupCodes, GroupKind};
use fearless_simd::{Level, dispatch};
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The histogram of one feature over the rows of one node on one or more workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerHistogram {
    /// The bins, in ascending order of their centres.
    pub bins: Vec<Centroid>,
    /// The sums of rows whose value is missing.
    pub missing: GradientSums,
}

/// The histograms of a feature group, indexed by node and then by feature.
pub type NodeHistograms = Vec<Vec<WorkerHistogram>>;

impl WorkerHistogram {
    /// Builds a histogram of at most `most` bins from the sums of all codes.
    pub fn of_cells<C: Cell>(most: usize, bins: &FeatureBins, scale: &Scale, cells: &[C]) -> Self {
        let (values, missing) = cells.split_at(bins.bins());
        let units = Units::of(scale);
        let blocks = values.chunks(BLOCK).zip(bins.centres.chunks(BLOCK));
        let blocks = blocks.map(|(cells, centres)| CellValues { cells, centres, units });
        Self::of_blocks(most, bins, units, blocks, missing.first())
    }

    /// Builds a histogram of at most `most` bins from the sums of the codes that occur, in ascending order.
    pub fn of_list<C: Cell>(most: usize, bins: &FeatureBins, scale: &Scale, list: &[(u32, C)]) -> Self {
        let (values, missing) = split_missing(list, bins);
        let units = Units::of(scale);
        let blocks = values.chunks(BLOCK).map(|list| ListBlock { list, centres: &bins.centres, units });
        Self::of_blocks(most, bins, units, blocks, missing)
    }

    fn of_blocks<C: Cell>(
        most: usize,
        bins: &FeatureBins,
        units: Units,
        blocks: impl Iterator<Item = impl ValueBlock>,
        missing: Option<&C>,
    ) -> Self {
        let magnitude = |centre: Option<&f32>| centre.map_or(0.0, |centre| f64::from(centre.abs()));
        let reach = magnitude(bins.centres.first()).max(magnitude(bins.centres.last()));
        let mut histogram = StreamingHistogram::new(most);
        // Sums whose order matters are computed in order, so the vector width does not affect results.
        dispatch!(Level::new(), _ => histogram.insert_ascending(blocks, reach, units.weight));
        let missing = missing.map_or_else(GradientSums::default, |cell| cell.sums(units.count_bits));
        WorkerHistogram { bins: histogram.bins(), missing }
    }

    /// Merges the histogram of the workers after those of this one.
    fn merge(self, other: &WorkerHistogram, most: usize) -> Self {
        let mut histogram = StreamingHistogram::of_bins(most, &self.bins);
        histogram.merge(&other.bins);
        WorkerHistogram { bins: histogram.bins(), missing: self.missing + other.missing }
    }
}

/// Number of codes that are inserted together if possible.
const BLOCK: usize = 128;

/// Converts integer sums to numbers.
#[derive(Clone, Copy)]
pub(super) struct Units {
    count_bits: u32,
    gradient: f64,
    weight: f64,
}

impl Units {
    pub(super) fn of(scale: &Scale) -> Self {
        // Scales are powers of two, so their reciprocals are exact.
        Units { count_bits: scale.count_bits, gradient: 1.0 / scale.gradient, weight: 1.0 / scale.weight }
    }

    #[inline(always)]
    pub(super) fn count<C: Cell>(&self, cell: C) -> f64 {
        exact(cell.sums(self.count_bits).weight) * self.weight
    }

    #[inline(always)]
    pub(super) fn sum<C: Cell>(&self, cell: C) -> f64 {
        exact(cell.sums(self.count_bits).gradient) * self.gradient
    }

    /// Returns a value with its sums, or `None` if it has neither weight nor gradients.
    #[inline(always)]
    fn value<C: Cell>(&self, centre: f32, cell: C) -> Option<Centroid> {
        let (count, sum) = (self.count(cell), self.sum(cell));
        (count > 0.0 || sum != 0.0).then(|| Centroid { centre: centre.into(), count, sum })
    }

    /// Adds values to a bin in order. Counts and sums are exact, so their order does not matter; that of the moments does.
    #[inline(always)]
    fn add<C: Cell>(&self, mut bin: Bin, values: impl Iterator<Item = (f32, C)>) -> Bin {
        let mut all = C::default();
        for (centre, cell) in values {
            all.add(cell);
            bin.moment += f64::from(centre) * self.count(cell);
        }
        self.with_sums(bin, all)
    }

    /// Adds parts of values to a bin, given the number of parts. The moments are added in order unless the bounds show that
    /// their order does not matter.
    #[inline(always)]
    fn add_parts<C: Cell>(
        &self,
        bin: Bin,
        bounds: MomentBounds,
        parts: usize,
        value: impl Fn(usize, usize) -> (f32, C),
    ) -> Bin {
        let moment = |part: usize, place: usize| {
            let (centre, cell) = value(part, place);
            f64::from(centre) * self.count(cell)
        };
        // Independent sums, which the compiler computes with vectors.
        let (mut all, mut moments) = ([C::default(); PART], [0.0; PART]);
        for part in 0..parts {
            for (place, (sum, all)) in moments.iter_mut().zip(&mut all).enumerate() {
                *sum += moment(part, place);
                all.add(value(part, place).1);
            }
        }
        let sum = all.into_iter().fold(C::default(), |mut sum, cell| {
            sum.add(cell);
            sum
        });
        let mut bin = self.with_sums(bin, sum);
        if bounds.are_exact(bin.count) {
            bin.moment += moments.iter().sum::<f64>();
        } else {
            let places = (0..parts).flat_map(|part| (0..PART).map(move |place| (part, place)));
            places.for_each(|(part, place)| bin.moment += moment(part, place));
        }
        bin
    }

    #[inline(always)]
    fn with_sums<C: Cell>(&self, mut bin: Bin, all: C) -> Bin {
        bin.count += self.count(all);
        bin.sum += self.sum(all);
        bin
    }
}

/// The sums of neighbouring codes, some of which may not occur.
struct CellValues<'a, C> {
    cells: &'a [C],
    centres: &'a [f32],
    units: Units,
}

impl<C: Cell> ValueBlock for CellValues<'_, C> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.cells.len()
    }

    #[inline(always)]
    fn at(&self, place: usize) -> f64 {
        self.centres[place].into()
    }

    #[inline(always)]
    fn split_at(&self, count: usize) -> (Self, Self) {
        let block = |cells, centres| CellValues { cells, centres, units: self.units };
        let (cells, other_cells) = self.cells.split_at(count);
        let (centres, other_centres) = self.centres.split_at(count);
        (block(cells, centres), block(other_cells, other_centres))
    }

    #[inline(always)]
    fn values(&self) -> impl Iterator<Item = Centroid> {
        self.centres.iter().zip(self.cells).filter_map(|(centre, cell)| self.units.value(*centre, *cell))
    }

    #[inline(always)]
    fn add_to(&self, bin: Bin, bounds: MomentBounds) -> Bin {
        let (cells, last_cells) = self.cells.as_chunks::<PART>();
        let (centres, last_centres) = self.centres.as_chunks::<PART>();
        let value = |part: usize, place: usize| (centres[part][place], cells[part][place]);
        let bin = self.units.add_parts(bin, bounds, cells.len(), value);
        self.units.add(bin, last_centres.iter().copied().zip(last_cells.iter().copied()))
    }
}

/// The sums of codes that occur.
struct ListBlock<'a, C> {
    list: &'a [(u32, C)],
    /// Centres of all codes.
    centres: &'a [f32],
    units: Units,
}

impl<C: Cell> ListBlock<'_, C> {
    #[inline(always)]
    fn value(&self, place: usize) -> (f32, C) {
        let (code, cell) = self.list[place];
        (self.centres[code as usize], cell)
    }
}

impl<C: Cell> ValueBlock for ListBlock<'_, C> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.list.len()
    }

    #[inline(always)]
    fn at(&self, place: usize) -> f64 {
        self.value(place).0.into()
    }

    #[inline(always)]
    fn split_at(&self, count: usize) -> (Self, Self) {
        let block = |list| ListBlock { list, centres: self.centres, units: self.units };
        let (list, others) = self.list.split_at(count);
        (block(list), block(others))
    }

    #[inline(always)]
    fn values(&self) -> impl Iterator<Item = Centroid> {
        (0..self.list.len()).filter_map(|place| {
            let (centre, cell) = self.value(place);
            self.units.value(centre, cell)
        })
    }

    #[inline(always)]
    fn add_to(&self, bin: Bin, bounds: MomentBounds) -> Bin {
        let (parts, others) = self.list.as_chunks::<PART>();
        let value = |(code, cell): (u32, C)| (self.centres[code as usize], cell);
        let bin = self.units.add_parts(bin, bounds, parts.len(), |part, place| value(parts[part][place]));
        self.units.add(bin, others.iter().copied().map(value))
    }
}

/// Merges the histograms of a feature group over two neighbouring ranges of workers.
pub(crate) fn merge_histograms(
    most: usize,
) -> impl FnMut(NodeHistograms, NodeHistograms) -> Result<NodeHistograms> {
    move |left, right| {
        let fits = |(left, right): (&Vec<_>, &Vec<_>)| left.len() == right.len();
        if left.len() != right.len() || !left.iter().zip(&right).all(fits) {
            return Err(malformed());
        }
        let of_node = |(left, right): (Vec<WorkerHistogram>, Vec<WorkerHistogram>)| {
            left.into_iter().zip(&right).map(|(left, right)| left.merge(right, most)).collect()
        };
        Ok(left.into_iter().zip(right).map(of_node).collect())
    }
}

/// Neighbouring workers whose rows are in this process.
pub struct WorkerRows<'a, C: Cell> {
    /// The data that contain the rows of the workers. They may contain other rows too.
    pub data: &'a BinnedData,
    /// The rows of each node, in all partitions of `data`.
    pub rows: &'a RowSets<C>,
    /// The rows of all workers of the training run.
    pub bounds: &'a WorkerBounds,
    /// The workers in this process.
    pub workers: Range<usize>,
    /// The quantisation scale of gradients and weights.
    pub scale: Scale,
    /// b: maximum number of bins per histogram.
    pub centroids: usize,
}

impl<C: Cell> WorkerRows<'_, C> {
    /// Computes the histograms of nodes for each feature group, merged over workers as far as possible.
    pub fn histograms(&self, groups: &[usize], nodes: &[NodeId]) -> Result<Vec<MergeTree<NodeHistograms>>> {
        groups.par_iter().with_max_len(1).map(|group| self.of_group(*group, nodes)).collect()
    }

    /// Computes the histograms of nodes for one feature group, merged over workers as far as possible.
    pub fn of_group(&self, group: usize, nodes: &[NodeId]) -> Result<MergeTree<NodeHistograms>> {
        let mut summer = GroupSummer::new(self.data, self.scale.count_bits, group);
        let mut tree = MergeTree::new(self.bounds.workers());
        let mut merge = merge_histograms(self.centroids);
        for worker in self.workers.clone() {
            let of_worker = worker..worker + 1;
            let pieces = self.bounds.pieces(of_worker.clone(), &self.data.rows);
            let histograms = self.of_pieces(&mut summer, &pieces, nodes)?;
            tree.add(of_worker, histograms, &mut merge)?;
        }
        Ok(tree)
    }

    fn of_pieces(
        &self,
        summer: &mut GroupSummer<'_, C>,
        pieces: &[WorkerPiece],
        nodes: &[NodeId],
    ) -> Result<NodeHistograms> {
        let (binning, group) = (&self.data.binning, summer.group);
        let codes: Vec<Codes> =
            pieces.iter().map(|piece| self.data.codes(piece.partition, &[group])).collect::<Result<_>>()?;
        let of_node = |node: &NodeId| {
            for (piece, codes) in pieces.iter().zip(&codes) {
                let rows = self.rows.partitions[piece.partition].node_within(*node, piece.rows.clone());
                summer.add(codes.group(group), rows);
            }
            let mut of_node = Vec::new();
            summer.drain(|lane, list| {
                let feature = binning.layout.groups[group].features[lane];
                let bins = &binning.features[feature as usize];
                of_node.push(WorkerHistogram::of_list(self.centroids, bins, &self.scale, list));
            });
            of_node
        };
        Ok(nodes.iter().map(of_node).collect())
    }
}

/// Separates the sums of values from those of missing values, which have the last code.
fn split_missing<'a, C>(list: &'a [(u32, C)], bins: &FeatureBins) -> (&'a [(u32, C)], Option<&'a C>) {
    match list.split_last() {
        Some(((code, cell), values)) if Some(*code) == bins.missing_code => (values, Some(cell)),
        _ => (list, None),
    }
}

/// Sums rows of one node by code, for all features of a group.
pub(super) struct GroupSummer<'a, C: Cell> {
    data: &'a BinnedData,
    count_bits: u32,
    group: usize,
    cells: Vec<C>,
    total: C,
    column: CodeSums<C>,
    list: Vec<(u32, C)>,
}

impl<'a, C: Cell> GroupSummer<'a, C> {
    /// Creates sums without any rows.
    pub(super) fn new(data: &'a BinnedData, count_bits: u32, group: usize) -> Self {
        let binning = &data.binning;
        let cells = match binning.layout.groups[group].kind {
            GroupKind::Column(_) => Vec::new(),
            _ => vec![C::default(); lane_cells_of_group::<C>(binning, group)],
        };
        let (total, column, list) = (C::default(), CodeSums::new(), Vec::new());
        GroupSummer { data, count_bits, group, cells, total, column, list }
    }

    /// Adds rows of the node in one partition.
    pub(super) fn add(&mut self, codes: GroupCodes<'_>, node: NodeRows<'_, C>) {
        let group = &self.data.binning.layout.groups[self.group];
        if let GroupKind::Column(_) = group.kind {
            let count = self.data.binning.features[group.features[0] as usize].codes();
            self.column.add(count, codes, node, self.count_bits);
            return;
        }
        node.entries.iter().for_each(|entry| self.total.add(C::of(entry.target, self.count_bits)));
        add_rows(codes, group, node, self.count_bits, &mut self.cells);
    }

    /// Passes the sums of each feature to `take`, in ascending order of the codes that occur, and resets them.
    pub(super) fn drain(&mut self, mut take: impl FnMut(usize, &[(u32, C)])) {
        let binning = &self.data.binning;
        let members = &binning.layout.groups[self.group];
        if let GroupKind::Column(_) = members.kind {
            take(0, self.column.drain());
            return;
        }
        let empty = vec![C::default(); self.cells.len()];
        let cells = std::mem::replace(&mut self.cells, empty);
        let cells = finish(binning, self.group, cells, std::mem::take(&mut self.total));
        for lane in 0..members.features.len() {
            let cells = &cells[feature_cells(binning, self.group, lane)];
            self.list.clear();
            let present = (0..).zip(cells).filter(|(_, cell)| cell.sums(self.count_bits).count > 0);
            self.list.extend(present.map(|(code, cell)| (code, *cell)));
            take(lane, &self.list);
        }
    }
}

#[cfg(test)]
mod tests;
