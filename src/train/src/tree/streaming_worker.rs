//! Builds the streaming histograms of workers, each of which has some of the rows; see `streaming.rs`. A worker sums
//! the rows of a node by code (bin number) and inserts the sums into streaming histograms, one per feature. The
//! histograms of workers are merged pairwise; see `workers.rs`.

use super::cell::{Cell, GradientSums, Scale, exact};
use super::centroids::{Centroid, StreamingHistogram};
use super::code_sums::CodeSums;
use super::histogram::{add_rows, feature_cells, finish, lane_cells_of_group};
use super::rows::{NodeId, NodeRows, RowSets};
use super::workers::{MergeTree, WorkerBounds, WorkerPiece};
use crate::bins::{BinnedData, Codes, FeatureBins, GroupCodes, GroupKind};
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
    /// Builds a histogram of at most `most` bins from the sums of the codes that occur, in ascending order, and of
    /// missing values.
    pub fn of_cells<C: Cell>(
        most: usize,
        bins: &FeatureBins,
        scale: &Scale,
        cells: impl Iterator<Item = (u32, C)>,
        missing: Option<C>,
    ) -> Self {
        // Scales are powers of two, so their reciprocals are exact.
        let (gradient_unit, weight_unit) = (1.0 / scale.gradient, 1.0 / scale.weight);
        let values = cells.filter_map(|(code, cell)| {
            let sums = cell.sums(scale.count_bits);
            // Rows without weight have no effect on centroids.
            (sums.weight > 0).then(|| Centroid {
                centre: f64::from(bins.centres[code as usize]),
                count: exact(sums.weight) * weight_unit,
                sum: exact(sums.gradient) * gradient_unit,
            })
        });
        let magnitude = |centre: Option<&f32>| centre.map_or(0.0, |centre| f64::from(centre.abs()));
        let reach = magnitude(bins.centres.first()).max(magnitude(bins.centres.last()));
        let mut histogram = StreamingHistogram::new(most);
        histogram.insert_ascending(values, reach);
        let missing = missing.map_or_else(GradientSums::default, |cell| cell.sums(scale.count_bits));
        WorkerHistogram { bins: histogram.bins(), missing }
    }

    /// Merges the histogram of the workers after those of this one.
    fn merge(self, other: &WorkerHistogram, most: usize) -> Self {
        let mut histogram = StreamingHistogram::of_bins(most, &self.bins);
        histogram.merge(&other.bins);
        WorkerHistogram { bins: histogram.bins(), missing: self.missing + other.missing }
    }
}

/// Merges the histograms of a feature group over two neighbouring ranges of workers.
pub fn merge_histograms(most: usize) -> impl FnMut(NodeHistograms, NodeHistograms) -> Result<NodeHistograms> {
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
                let (values, missing) = split_missing(list, bins);
                let values = values.iter().copied();
                of_node.push(WorkerHistogram::of_cells(self.centroids, bins, &self.scale, values, missing));
            });
            of_node
        };
        Ok(nodes.iter().map(of_node).collect())
    }
}

/// Separates the sums of values from those of missing values, which have the last code.
pub fn split_missing<'a, C: Copy>(list: &'a [(u32, C)], bins: &FeatureBins) -> (&'a [(u32, C)], Option<C>) {
    match list.split_last() {
        Some(((code, cell), values)) if Some(*code) == bins.missing_code => (values, Some(*cell)),
        _ => (list, None),
    }
}

/// The codes that occur among dense cells, in ascending order, with their sums.
pub struct PresentCells<'a, C> {
    cells: &'a [C],
    count_bits: u32,
    /// Index of the first cell of the current chunk.
    first: usize,
    /// Positions within the chunk of the cells that have rows.
    present: [u8; CHUNK],
    /// The part of `present` that has not been returned yet.
    left: Range<usize>,
}

/// Number of cells that are examined at a time, without a branch per cell.
const CHUNK: usize = 256;

impl<'a, C: Cell> PresentCells<'a, C> {
    /// Creates an iterator over the cells of a feature.
    pub fn new(cells: &'a [C], count_bits: u32) -> Self {
        let mut all = PresentCells { cells, count_bits, first: 0, present: [0; CHUNK], left: 0..0 };
        all.examine();
        all
    }

    fn examine(&mut self) {
        let mut used = 0;
        for (place, cell) in (0..=u8::MAX).zip(self.cells[self.first..].iter().take(CHUNK)) {
            self.present[used & (CHUNK - 1)] = place;
            used += usize::from(cell.sums(self.count_bits).count > 0);
        }
        self.left = 0..used;
    }
}

impl<C: Cell> Iterator for PresentCells<'_, C> {
    type Item = (u32, C);

    #[inline]
    fn next(&mut self) -> Option<(u32, C)> {
        while self.left.is_empty() {
            self.first += CHUNK;
            if self.first >= self.cells.len() {
                self.first = self.cells.len();
                return None;
            }
            self.examine();
        }
        let code = self.first + usize::from(self.present[self.left.start & (CHUNK - 1)]);
        self.left.start += 1;
        Some((code as u32, self.cells[code]))
    }
}

/// Sums rows of one node by code, for all features of a group.
pub struct GroupSummer<'a, C: Cell> {
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
    pub fn new(data: &'a BinnedData, count_bits: u32, group: usize) -> Self {
        let binning = &data.binning;
        let cells = match binning.layout.groups[group].kind {
            GroupKind::Column(_) => Vec::new(),
            _ => vec![C::default(); lane_cells_of_group::<C>(binning, group)],
        };
        let (total, column, list) = (C::default(), CodeSums::new(), Vec::new());
        GroupSummer { data, count_bits, group, cells, total, column, list }
    }

    /// Adds rows of the node in one partition.
    pub fn add(&mut self, codes: GroupCodes<'_>, node: NodeRows<'_, C>) {
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
    pub fn drain(&mut self, mut take: impl FnMut(usize, &[(u32, C)])) {
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
            self.list.extend(PresentCells::new(cells, self.count_bits));
            take(lane, &self.list);
        }
    }
}
