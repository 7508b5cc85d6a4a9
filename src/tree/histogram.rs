//! The inner loop: rows of nodes are added into histograms, group by group, partition by partition.

use super::cell::Cell;
use super::rows::{NodeId, NodeRows, RowSets};
use crate::bins::{BinnedData, Binning, GroupCodes, GroupKind, LANES, SPARSE_STRIDE, Width};
use crate::error::Result;
use rayon::prelude::*;
use std::ops::Range;

/// The histograms of one node: the cells of each group.
pub struct NodeHistogram<C> {
    /// Empty for a group that was left out.
    pub groups: Vec<Vec<C>>,
}

/// A node whose histograms are wanted.
#[derive(Debug, Clone, Copy)]
pub struct WantedNode<C> {
    /// Which node.
    pub node: NodeId,
    /// Of all its rows.
    pub total: C,
}

/// Adds nodes' rows into histograms.
pub struct HistogramBuilder<'a> {
    /// The data.
    pub data: &'a BinnedData,
    /// Bits for counts in packed cells.
    pub count_bits: u32,
    /// Which groups are wanted.
    pub groups: &'a [usize],
}

/// Some rows of one group, of every partition and node the same share: what one thread does at a
/// time.
struct Piece {
    group: usize,
    part: usize,
    parts: usize,
}

impl HistogramBuilder<'_> {
    /// The histograms of some nodes.
    pub fn build<C: Cell>(
        &self,
        rows: &RowSets<C>,
        nodes: &[WantedNode<C>],
    ) -> Result<Vec<NodeHistogram<C>>> {
        let pieces = self.pieces();
        let built: Vec<(usize, Vec<Vec<C>>)> = pieces
            .par_iter()
            .with_max_len(1)
            .map(|piece| Ok((piece.group, self.build_piece(rows, nodes, piece)?)))
            .collect::<Result<_>>()?;
        let groups = self.data.binning.layout.groups.len();
        let mut histograms: Vec<NodeHistogram<C>> =
            nodes.iter().map(|_| NodeHistogram { groups: vec![Vec::new(); groups] }).collect();
        for (group, of_nodes) in built {
            for (histogram, cells) in histograms.iter_mut().zip(of_nodes) {
                let sum = &mut histogram.groups[group];
                if sum.is_empty() {
                    *sum = cells;
                } else {
                    sum.iter_mut().zip(cells).for_each(|(sum, cell)| sum.add(cell));
                }
            }
        }
        for (histogram, wanted) in histograms.iter_mut().zip(nodes) {
            fill_common(&self.data.binning, self.groups, histogram, wanted.total);
        }
        Ok(histograms)
    }

    /// Cuts the work evenly, whatever the number of groups and partitions: every thread takes its
    /// share of the rows of each group.
    fn pieces(&self) -> Vec<Piece> {
        let parts = rayon::current_num_threads();
        let of_part = |part| self.groups.iter().map(move |group| Piece { group: *group, part, parts });
        (0..parts).flat_map(of_part).collect()
    }

    fn build_piece<C: Cell>(
        &self,
        rows: &RowSets<C>,
        nodes: &[WantedNode<C>],
        piece: &Piece,
    ) -> Result<Vec<Vec<C>>> {
        let cells = cells_of_group(&self.data.binning, piece.group);
        let mut histograms: Vec<Vec<C>> = nodes.iter().map(|_| vec![C::default(); cells]).collect();
        let kind = self.data.binning.layout.groups[piece.group].kind;
        for partition in 0..self.data.partitions() {
            let codes = self.data.codes(partition, &[piece.group])?;
            let codes = codes.group(piece.group);
            for (wanted, cells) in nodes.iter().zip(&mut histograms) {
                let node_rows = rows.partitions[partition].node(wanted.node).part(piece.part, piece.parts);
                add_rows(codes, kind, node_rows, self.count_bits, cells);
            }
        }
        Ok(histograms)
    }
}

/// Cells of a group's histogram.
pub fn cells_of_group(binning: &Binning, group: usize) -> usize {
    let group = &binning.layout.groups[group];
    match group.kind {
        GroupKind::Dense(width) => group.blocks() * LANES * width.stride(),
        GroupKind::Sparse => group.features.len() * SPARSE_STRIDE,
        GroupKind::Column(_) => binning.features[group.features[0] as usize].codes(),
    }
}

/// The cells of one feature within its group's.
pub fn feature_cells(binning: &Binning, group: usize, lane: usize) -> Range<usize> {
    let members = &binning.layout.groups[group];
    let codes = binning.features[members.features[lane] as usize].codes();
    let stride = match members.kind {
        GroupKind::Dense(width) => width.stride(),
        GroupKind::Sparse => SPARSE_STRIDE,
        GroupKind::Column(_) => 0,
    };
    lane * stride..lane * stride + codes
}

/// Gives the common code of sparse features what the listed entries leave over.
pub fn fill_common<C: Cell>(binning: &Binning, groups: &[usize], histogram: &mut NodeHistogram<C>, total: C) {
    for group in groups {
        let members = &binning.layout.groups[*group];
        if members.kind != GroupKind::Sparse {
            continue;
        }
        for (lane, feature) in members.features.iter().enumerate() {
            let cells = &mut histogram.groups[*group][feature_cells(binning, *group, lane)];
            let common = binning.features[*feature as usize].common_code as usize;
            let mut rest = total;
            cells.iter().for_each(|cell| rest.subtract(*cell));
            cells[common] = rest;
        }
    }
}

impl<C: Cell> NodeHistogram<C> {
    /// Leaves the rows that are not in `other`, which are some of this node's.
    pub fn subtract(&mut self, other: &NodeHistogram<C>) {
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.subtract(*theirs));
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.groups.iter().map(|cells| std::mem::size_of_val(cells.as_slice())).sum()
    }
}

/// Adds a node's rows of one partition into one group's cells.
pub fn add_rows<C: Cell>(
    codes: GroupCodes<'_>,
    kind: GroupKind,
    node: NodeRows<'_, C>,
    count_bits: u32,
    cells: &mut [C],
) {
    match (codes, kind) {
        (GroupCodes::Dense { blocks, per_row }, GroupKind::Dense(Width::Narrow)) => {
            add_dense::<C, { Width::Narrow.stride() }, 31>(blocks, per_row, node, count_bits, cells);
        }
        (GroupCodes::Dense { blocks, per_row }, _) => {
            add_dense::<C, { Width::Byte.stride() }, 255>(blocks, per_row, node, count_bits, cells);
        }
        (GroupCodes::Sparse { offsets, entries }, _) => add_sparse(offsets, entries, node, count_bits, cells),
        (GroupCodes::Bytes(codes), _) => add_column(|row| usize::from(codes[row]), node, count_bits, cells),
        (GroupCodes::Words(codes), _) => add_column(|row| usize::from(codes[row]), node, count_bits, cells),
        (GroupCodes::Longs(codes), _) => add_column(|row| codes[row] as usize, node, count_bits, cells),
    }
}

/// Rows that are added block after block while they are in the cache. Rows of a node are first
/// fetched from where they are: fetching alone keeps many cache misses under way at a time, while
/// fetched and added row by row, the processor would wait for each.
const FETCHED: usize = 1024;

fn add_dense<C: Cell, const STRIDE: usize, const MASK: usize>(
    blocks: &[[u8; LANES]],
    per_row: usize,
    node: NodeRows<'_, C>,
    count_bits: u32,
    cells: &mut [C],
) {
    // A row of a known size is copied without a call.
    match per_row {
        1 => add_dense_rows::<C, STRIDE, MASK, 1>(blocks.as_chunks().0, node, count_bits, cells),
        2 => add_dense_rows::<C, STRIDE, MASK, 2>(blocks.as_chunks().0, node, count_bits, cells),
        3 => add_dense_rows::<C, STRIDE, MASK, 3>(blocks.as_chunks().0, node, count_bits, cells),
        _ => add_dense_rows::<C, STRIDE, MASK, 4>(blocks.as_chunks().0, node, count_bits, cells),
    }
}

fn add_dense_rows<C: Cell, const STRIDE: usize, const MASK: usize, const BLOCKS: usize>(
    all: &[[[u8; LANES]; BLOCKS]],
    node: NodeRows<'_, C>,
    count_bits: u32,
    cells: &mut [C],
) {
    let of_blocks = cells.as_chunks_mut::<STRIDE>().0.as_chunks_mut::<LANES>().0;
    let Some(rows) = node.rows else {
        for (place, targets) in node.targets.chunks(FETCHED).enumerate() {
            let rows = &all[node.first + place * FETCHED..][..targets.len()];
            for (block, features) in of_blocks.iter_mut().enumerate().take(BLOCKS) {
                let rows = rows.iter().map(|row| &row[block % BLOCKS]);
                add_block::<C, STRIDE, MASK>(rows, targets, count_bits, features);
            }
        }
        return;
    };
    // Block after block, so that each is read in one go.
    let mut fetched = [[[0; LANES]; FETCHED]; BLOCKS];
    for (rows, targets) in rows.chunks(FETCHED).zip(node.targets.chunks(FETCHED)) {
        for (place, row) in rows.iter().enumerate() {
            let row = &all[*row as usize];
            for (block, fetched) in fetched.iter_mut().enumerate() {
                fetched[place % FETCHED] = row[block];
            }
        }
        for (fetched, features) in fetched.iter().zip(of_blocks.iter_mut()) {
            add_block::<C, STRIDE, MASK>(fetched.iter(), targets, count_bits, features);
        }
    }
}

fn add_block<'a, C: Cell, const STRIDE: usize, const MASK: usize>(
    rows: impl Iterator<Item = &'a [u8; LANES]> + Clone,
    targets: &[C::Target],
    count_bits: u32,
    features: &mut [[C; STRIDE]; LANES],
) {
    for first in (0..LANES).step_by(C::FEATURES_AT_A_TIME) {
        for (row, target) in rows.clone().zip(targets) {
            let cell = C::of(*target, count_bits);
            for lane in first..first + C::FEATURES_AT_A_TIME {
                // The mask is below the stride, so no bound needs checking.
                features[lane][usize::from(row[lane]) & MASK].add(cell);
            }
        }
    }
}

fn add_sparse<C: Cell>(
    offsets: &[i32],
    entries: &[u16],
    node: NodeRows<'_, C>,
    count_bits: u32,
    cells: &mut [C],
) {
    let mut add = |row: usize, target: C::Target| {
        let cell = C::of(target, count_bits);
        for entry in &entries[offsets[row] as usize..offsets[row + 1] as usize] {
            cells[usize::from(*entry)].add(cell);
        }
    };
    match node.rows {
        None => (node.first..).zip(node.targets).for_each(|(row, target)| add(row, *target)),
        Some(rows) => rows.iter().zip(node.targets).for_each(|(row, target)| add(*row as usize, *target)),
    }
}

fn add_column<C: Cell>(
    code: impl Fn(usize) -> usize,
    node: NodeRows<'_, C>,
    count_bits: u32,
    cells: &mut [C],
) {
    let mut add = |row: usize, target: C::Target| cells[code(row)].add(C::of(target, count_bits));
    match node.rows {
        None => (node.first..).zip(node.targets).for_each(|(row, target)| add(row, *target)),
        Some(rows) => rows.iter().zip(node.targets).for_each(|(row, target)| add(*row as usize, *target)),
    }
}
