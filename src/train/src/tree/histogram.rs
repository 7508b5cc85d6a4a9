//! Histograms of nodes: divides the work of adding rows (`add_rows.rs`) among threads, for each group of features and
//! each partition. Groups, blocks and lanes are explained in `bins/layout.rs`.

use super::add_rows::{JOINT_BLOCK, JOINT_HALF, add_rows, lane_start};
use super::cell::Cell;
use super::rows::{NodeId, RowSets};
use crate::bins::{BinnedData, Binning, GroupKind, LANES, STRIDE};
use planetree_base::error::Result;
use rayon::prelude::*;
use std::ops::Range;

/// The histograms of all features in one node, stored by feature group.
#[derive(Clone)]
pub struct NodeHistogram<C> {
    /// Cells of each group; empty for groups that were not requested.
    pub groups: Vec<Vec<C>>,
}

/// A node whose histograms are requested.
#[derive(Debug, Clone, Copy)]
pub struct WantedNode<C> {
    /// Index of the node.
    pub node: NodeId,
    /// Sum over the rows of the node.
    pub total: C,
}

/// Builds the histograms of nodes.
pub(super) struct HistogramBuilder<'a> {
    /// The training data.
    pub data: &'a BinnedData,
    /// Number of bits for the count in packed cells.
    pub count_bits: u32,
    /// Groups whose cells are requested.
    pub groups: &'a [usize],
}

/// A unit of work for one thread: one feature group, a range of unions (sets of nodes that share a histogram), and a
/// fraction of their rows. This fraction is taken from each node in each partition.
struct WorkPiece {
    /// Index among the requested groups.
    group: usize,
    unions: Range<usize>,
    part: usize,
    parts: usize,
}

impl HistogramBuilder<'_> {
    /// Builds the histogram of each node.
    pub(super) fn build<C: Cell>(
        &self,
        rows: &RowSets<C>,
        nodes: &[WantedNode<C>],
    ) -> Result<Vec<NodeHistogram<C>>> {
        let each: Vec<_> =
            nodes.iter().map(|wanted| (std::slice::from_ref(&wanted.node), wanted.total)).collect();
        self.build_unions(rows, &each)
    }

    /// Builds one histogram for each union of nodes. The sum over the rows of each union is given.
    pub(super) fn build_unions<C: Cell>(
        &self,
        rows: &RowSets<C>,
        unions: &[(&[NodeId], C)],
    ) -> Result<Vec<NodeHistogram<C>>> {
        let pieces = self.pieces(rows, unions);
        let built: Vec<Vec<Vec<C>>> = pieces
            .par_iter()
            .with_max_len(1)
            .map(|piece| self.build_piece(rows, unions, piece))
            .collect::<Result<_>>()?;
        let mut sums: Vec<GroupSum<C>> = unions
            .iter()
            .flat_map(|(_, total)| self.groups.iter().map(|group| GroupSum::new(*group, *total)))
            .collect();
        for (piece, of_unions) in pieces.iter().zip(built) {
            for (union, cells) in piece.unions.clone().zip(of_unions) {
                sums[union * self.groups.len() + piece.group].parts.push(cells);
            }
        }
        let cells: Vec<Vec<C>> =
            sums.into_par_iter().with_max_len(1).map(|sum| sum.finish(&self.data.binning)).collect();
        let mut cells = cells.into_iter();
        let all = self.data.binning.layout.groups.len();
        let histogram = |_| {
            let mut groups = vec![Vec::new(); all];
            self.groups.iter().zip(cells.by_ref()).for_each(|(group, cells)| groups[*group] = cells);
            NodeHistogram { groups }
        };
        Ok(unions.iter().map(histogram).collect())
    }

    /// Divides the work evenly between threads, for any number of groups, nodes and partitions. Every part of a union
    /// has its own histogram, and these must be summed at the end, so a union is divided into only as many parts as
    /// needed to keep all threads busy.
    fn pieces<C: Cell>(&self, rows: &RowSets<C>, unions: &[(&[NodeId], C)]) -> Vec<WorkPiece> {
        /// Number of pieces per thread, chosen so that all threads finish at about the same time.
        const EACH: usize = 4;
        let threads = rayon::current_num_threads();
        let mut pieces = Vec::new();
        if unions.is_empty() {
            return pieces;
        }
        let mut cut = |group: usize, unions: Range<usize>, parts: usize| {
            pieces.extend((0..parts).map(|part| WorkPiece { group, unions: unions.clone(), part, parts }));
        };
        if threads == 1 || !self.data.is_in_memory() {
            // If partitions must be loaded, each is loaded once for all unions.
            (0..self.groups.len()).for_each(|group| cut(group, 0..unions.len(), threads));
            return pieces;
        }
        let count =
            |(nodes, _): &(&[NodeId], C)| -> usize { nodes.iter().map(|node| rows.count(*node)).sum() };
        let counts: Vec<usize> = unions.iter().map(count).collect();
        let lanes: Vec<usize> =
            self.groups.iter().map(|group| self.data.binning.layout.groups[*group].lanes_per_row()).collect();
        let all = counts.iter().sum::<usize>() * lanes.iter().sum::<usize>();
        for (union, count) in counts.iter().enumerate() {
            for (group, lanes) in lanes.iter().enumerate() {
                let parts = (count * lanes * threads * EACH).div_ceil(all.max(1)).clamp(1, threads);
                cut(group, union..union + 1, parts);
            }
        }
        pieces
    }

    fn build_piece<C: Cell>(
        &self,
        rows: &RowSets<C>,
        unions: &[(&[NodeId], C)],
        piece: &WorkPiece,
    ) -> Result<Vec<Vec<C>>> {
        let unions = &unions[piece.unions.clone()];
        let number = self.groups[piece.group];
        let group = &self.data.binning.layout.groups[number];
        let cells = lane_cells_of_group::<C>(&self.data.binning, number);
        let mut histograms: Vec<Vec<C>> = unions.iter().map(|_| vec![C::default(); cells]).collect();
        for partition in 0..self.data.partitions() {
            let codes = self.data.codes(partition, &[number])?;
            let codes = codes.group(number);
            for ((nodes, _), cells) in unions.iter().zip(&mut histograms) {
                for node in *nodes {
                    let node_rows = rows.partitions[partition].node(*node).part(piece.part, piece.parts);
                    add_rows(codes, group, node_rows, self.count_bits, cells);
                }
            }
        }
        Ok(histograms)
    }
}

/// Partial histograms of one group of a union, one for each part of its rows.
struct GroupSum<C> {
    group: usize,
    total: C,
    parts: Vec<Vec<C>>,
}

impl<C: Cell> GroupSum<C> {
    fn new(group: usize, total: C) -> Self {
        GroupSum { group, total, parts: Vec::new() }
    }

    fn finish(self, binning: &Binning) -> Vec<C> {
        let mut parts = self.parts.into_iter();
        let mut sum = parts.next().unwrap_or_default();
        for part in parts {
            sum.iter_mut().zip(part).for_each(|(sum, cell)| sum.add(cell));
        }
        finish(binning, self.group, sum, self.total)
    }
}

/// Returns the number of cells in the histogram of a group.
pub fn cells_of_group(binning: &Binning, group: usize) -> usize {
    let members = &binning.layout.groups[group];
    match members.kind {
        GroupKind::Dense => members.blocks() * LANES * STRIDE,
        GroupKind::Sparse => members.features.len() * STRIDE,
        GroupKind::Joint => members.features.iter().map(|f| binning.features[*f as usize].codes()).sum(),
        GroupKind::Column(_) => binning.features[members.features[0] as usize].codes(),
    }
}

/// Returns the number of cells to which the rows of a group are added. Unlike the final histogram, they include one
/// cell per joint code of a joint group.
pub(super) fn lane_cells_of_group<C: Cell>(binning: &Binning, group: usize) -> usize {
    let members = &binning.layout.groups[group];
    match members.kind {
        GroupKind::Joint if C::LANES_AT_A_TIME == LANES => members.blocks() * JOINT_BLOCK,
        GroupKind::Joint => members.blocks() * 2 * JOINT_HALF,
        _ => cells_of_group(binning, group),
    }
}

/// Returns the range of a feature's cells within the histogram of its group.
pub fn feature_cells(binning: &Binning, group: usize, place: usize) -> Range<usize> {
    let members = &binning.layout.groups[group];
    let start = members.starts[place];
    start..start + binning.features[members.features[place] as usize].codes()
}

/// Converts the cells to which rows were added into the histogram of a group. `total` is the sum over these rows.
pub(super) fn finish<C: Cell>(binning: &Binning, group: usize, mut cells: Vec<C>, total: C) -> Vec<C> {
    match binning.layout.groups[group].kind {
        GroupKind::Joint => return marginalise(binning, group, &mut cells),
        GroupKind::Sparse => fill_common(binning, group, &mut cells, total),
        GroupKind::Dense | GroupKind::Column(_) => {}
    }
    cells
}

/// Sets the cell for the common code of each sparse feature to the total minus the feature's other cells.
fn fill_common<C: Cell>(binning: &Binning, group: usize, cells: &mut [C], total: C) {
    for (place, feature) in binning.layout.groups[group].features.iter().enumerate() {
        let cells = &mut cells[feature_cells(binning, group, place)];
        let common = binning.features[*feature as usize].common_code as usize;
        let mut rest = total;
        cells.iter().for_each(|cell| rest.subtract(*cell));
        cells[common] = rest;
    }
}

/// Computes the sums of each feature as marginals of the sums by joint code.
fn marginalise<C: Cell>(binning: &Binning, group: usize, lane_cells: &mut [C]) -> Vec<C> {
    let members = &binning.layout.groups[group];
    let mut cells = vec![C::default(); cells_of_group(binning, group)];
    let mut features = &mut cells[..];
    for (lane, places) in members.lanes.iter().enumerate() {
        let joint = &mut lane_cells[lane_start::<C>(lane)..];
        let codes = members.features[places.clone()].iter().map(|f| binning.features[*f as usize].codes());
        let mut left: usize = codes.clone().product();
        for codes in codes {
            let (feature, others) = features.split_at_mut(codes);
            features = others;
            left /= codes;
            // Cells that differ only in the code of this feature are adjacent. They are replaced by their sum.
            for row in 0..left {
                let mut sum = C::default();
                for (code, cell) in feature.iter_mut().enumerate() {
                    let joint = joint[row * codes + code];
                    cell.add(joint);
                    sum.add(joint);
                }
                joint[row] = sum;
            }
        }
    }
    cells
}

impl<C: Cell> NodeHistogram<C> {
    /// Subtracts histograms of disjoint subsets of this node's rows: those of its children but one.
    pub fn subtract(&mut self, others: &[NodeHistogram<C>]) {
        self.groups.par_iter_mut().enumerate().for_each(|(group, mine)| match others {
            // Two at a time, so that the cells of the node are read and written once.
            [one, other] => {
                let theirs = one.groups[group].iter().zip(&other.groups[group]);
                mine.iter_mut().zip(theirs).for_each(|(mine, (one, other))| {
                    mine.subtract(*one);
                    mine.subtract(*other);
                });
            }
            _ => {
                for other in others {
                    let theirs = &other.groups[group];
                    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.subtract(*theirs));
                }
            }
        });
    }

    /// Returns the size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.groups.iter().map(|cells| std::mem::size_of_val(cells.as_slice())).sum()
    }
}
