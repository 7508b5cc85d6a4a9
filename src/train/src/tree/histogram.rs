//! The innermost loop of training: adds the rows of nodes to histograms, for each group of features and each
//! partition. Groups, blocks and lanes are explained in `bins/layout.rs`.

use super::cell::Cell;
use super::rows::{NodeId, NodeRows, RowEntry, RowSets};
use crate::bins::{
    BLOCKS, BinnedData, Binning, Group, GroupCodes, GroupKind, JOINT_CODES, JOINT_LANES, LANES, STRIDE,
};
use planetree_base::error::Result;
use prefetch_index::prefetch_index;
use rayon::prelude::*;
use std::cell::RefCell;
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
    /// Subtracts the histogram of `other`, whose rows must be a subset of this node's rows.
    pub fn subtract(&mut self, other: &NodeHistogram<C>) {
        self.groups.par_iter_mut().zip(&other.groups).for_each(|(mine, theirs)| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.subtract(*theirs));
        });
    }

    /// Returns the size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.groups.iter().map(|cells| std::mem::size_of_val(cells.as_slice())).sum()
    }
}

/// Number of cells from the start of one lane of a joint group to the start of the next.
const JOINT_STRIDE: usize = JOINT_CODES + 4;
/// Upper bound of the joint codes, as a power of two that lets the compiler omit bounds checks.
const JOINT_SPAN: usize = JOINT_CODES.next_power_of_two();
/// These constants are the numbers of cells for the lanes that are added at a time: those of a block or half a block,
/// in a dense or joint group. For joint groups, this includes the whole span of the last lane.
const BLOCK: usize = LANES * STRIDE;
const HALF: usize = BLOCK / 2;
const JOINT_BLOCK: usize = (JOINT_LANES - 1) * JOINT_STRIDE + JOINT_SPAN;
const JOINT_HALF: usize = (JOINT_LANES / 2 - 1) * JOINT_STRIDE + JOINT_SPAN;

/// Returns the index of the first cell of a lane in a joint group.
fn lane_start<C: Cell>(lane: usize) -> usize {
    let (lanes, cells) = match C::LANES_AT_A_TIME {
        LANES => (JOINT_LANES, JOINT_BLOCK),
        _ => (JOINT_LANES / 2, JOINT_HALF),
    };
    lane / lanes * cells + lane % lanes * JOINT_STRIDE
}

/// Adds the rows that a node has in one partition to the cells of a feature group.
pub(super) fn add_rows<C: Cell>(
    codes: GroupCodes<'_>,
    group: &Group,
    node: NodeRows<'_, C>,
    count_bits: u32,
    cells: &mut [C],
) {
    match codes {
        GroupCodes::Blocks { blocks, per_row } => {
            let blocks = Blocks { blocks, per_row, halves: group.half_blocks() };
            match (group.kind, C::LANES_AT_A_TIME) {
                (GroupKind::Joint, LANES) => {
                    blocks.add::<C, true, LANES, JOINT_BLOCK, JOINT_HALF>(node, count_bits, cells)
                }
                (GroupKind::Joint, _) => {
                    blocks.add::<C, true, 8, JOINT_HALF, JOINT_HALF>(node, count_bits, cells)
                }
                (_, LANES) => blocks.add::<C, false, LANES, BLOCK, HALF>(node, count_bits, cells),
                _ => blocks.add::<C, false, 8, HALF, HALF>(node, count_bits, cells),
            }
        }
        GroupCodes::Sparse { offsets, entries } => add_sparse(offsets, entries, node, count_bits, cells),
        GroupCodes::Bytes(codes) => add_column(|row| usize::from(codes[row]), node, count_bits, cells),
        GroupCodes::Words(codes) => add_column(|row| usize::from(codes[row]), node, count_bits, cells),
        GroupCodes::Longs(codes) => add_column(|row| codes[row] as usize, node, count_bits, cells),
    }
}

/// Number of rows per chunk. A chunk is added block by block, and the cells of each block fill the L1 cache, so larger
/// chunks switch less often between cells. Rows that are not consecutive are copied first.
const CHUNK: usize = 1024;

/// Maximum mean distance between rows that are prefetched before they are copied. If rows are further apart,
/// prefetching does not help and would only evict cells.
const NEAR: usize = 8;

/// One block of each row in a chunk.
type Copied = [[u8; LANES]; CHUNK];

thread_local! {
    /// Buffer for copied blocks, reused by each thread.
    static COPIED: RefCell<Vec<Copied>> = RefCell::new(vec![[[0; LANES]; CHUNK]; BLOCKS]);
}

/// Codes of a dense or joint group, by row.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    blocks: &'a [[u8; LANES]],
    per_row: usize,
    /// Number of half blocks per row that contain codes. The second half of the last block may be empty.
    halves: usize,
}

impl Blocks<'_> {
    fn add<C: Cell, const JOINT: bool, const BYTES: usize, const CELLS: usize, const HALF_CELLS: usize>(
        self,
        node: NodeRows<'_, C>,
        count_bits: u32,
        cells: &mut [C],
    ) {
        // A row whose size is known at compile time is copied without a function call.
        COPIED.with_borrow_mut(|copied| match self.per_row {
            1 => self.add_rows::<C, JOINT, BYTES, CELLS, HALF_CELLS, 1>(node, count_bits, cells, copied),
            2 => self.add_rows::<C, JOINT, BYTES, CELLS, HALF_CELLS, 2>(node, count_bits, cells, copied),
            3 => self.add_rows::<C, JOINT, BYTES, CELLS, HALF_CELLS, 3>(node, count_bits, cells, copied),
            _ => self.add_rows::<C, JOINT, BYTES, CELLS, HALF_CELLS, BLOCKS>(node, count_bits, cells, copied),
        });
    }

    fn add_rows<
        C: Cell,
        const JOINT: bool,
        const BYTES: usize,
        const CELLS: usize,
        const HALF_CELLS: usize,
        const PER_ROW: usize,
    >(
        self,
        node: NodeRows<'_, C>,
        count_bits: u32,
        cells: &mut [C],
        copied: &mut [Copied],
    ) {
        let all = self.blocks.as_chunks::<PER_ROW>().0;
        let fetch_row = |row: usize| {
            prefetch_index(all, row);
            if PER_ROW == 3 {
                prefetch_index(self.blocks, row * PER_ROW + PER_ROW - 1); // may be in the next cache line
            }
        };
        let mut passes = Passes::<C, JOINT, BYTES, CELLS, HALF_CELLS> {
            parts: cells.as_chunks_mut::<CELLS>().0,
            halves: self.halves,
        };
        let mut own = [C::default(); CHUNK];
        let Some(copied) = copied.first_chunk_mut::<PER_ROW>() else { return };
        let mut left = node.entries;
        while let [first, ..] = left {
            let (entries, next) = left.split_at(CHUNK.min(left.len()));
            left = next;
            for (own, entry) in own.iter_mut().zip(entries) {
                *own = C::of(entry.target, count_bits);
            }
            let own = &own[..entries.len()];
            if node.follow {
                let first = first.row as usize;
                let rows = &all[first..][..entries.len()];
                let mut next = first + CHUNK..(first + 2 * CHUNK).min(all.len());
                passes.add(|b, r| &rows[r][b], own, || next.next().into_iter().for_each(fetch_row));
            } else {
                for (place, entry) in entries.iter().enumerate() {
                    for (block, copied) in copied.iter_mut().enumerate() {
                        copied[place % CHUNK] = all[entry.row as usize][block];
                    }
                }
                let far = next
                    .get(entries.len() - 1)
                    .is_none_or(|last| (last.row - first.row) as usize > 2 * NEAR * entries.len());
                let next = if far { &[] } else { next };
                let mut next = next.iter().map(|entry| entry.row as usize);
                let fetch = || next.next().into_iter().for_each(fetch_row);
                passes.add(|b, r| &copied[b][r % CHUNK], own, fetch);
            }
        }
    }
}

/// The cells, divided into one part per pass. Each pass adds the lanes of a block or half a block.
struct Passes<'a, C, const JOINT: bool, const BYTES: usize, const CELLS: usize, const HALF_CELLS: usize> {
    parts: &'a mut [[C; CELLS]],
    halves: usize,
}

impl<C: Cell, const JOINT: bool, const BYTES: usize, const CELLS: usize, const HALF_CELLS: usize>
    Passes<'_, C, JOINT, BYTES, CELLS, HALF_CELLS>
{
    /// Adds rows block by block. `fetch` is called at regular intervals to prefetch a later row.
    #[inline(always)]
    fn add<'a>(
        &mut self,
        row_of_block: impl Fn(usize, usize) -> &'a [u8; LANES],
        own: &[C],
        mut fetch: impl FnMut(),
    ) {
        let per_part = BYTES * 2 / LANES;
        let passes = self.halves.div_ceil(per_part);
        for (pass, cells) in self.parts.iter_mut().enumerate().take(passes) {
            let (block, part) = (pass * BYTES / LANES, pass % (LANES / BYTES));
            let is_half = (pass + 1) * per_part > self.halves;
            for (few, own) in own.chunks(passes).enumerate() {
                fetch(); // spread out, because the processor handles few cache misses at a time
                let rows = (few * passes..).zip(own).map(|(row, cell)| (row_of_block(block, row), *cell));
                match cells.first_chunk_mut::<HALF_CELLS>() {
                    Some(cells) if is_half => rows.for_each(|(row, cell)| {
                        add_lanes::<C, JOINT, 8, HALF_CELLS>(&row.as_chunks().0[0], cell, cells);
                    }),
                    _ => rows.for_each(|(row, cell)| {
                        add_lanes::<C, JOINT, BYTES, CELLS>(&row.as_chunks().0[part], cell, cells);
                    }),
                }
            }
        }
    }
}

/// Adds a row to all lanes of a block or half a block.
#[inline(always)]
fn add_lanes<C: Cell, const JOINT: bool, const BYTES: usize, const CELLS: usize>(
    codes: &[u8; BYTES],
    cell: C,
    cells: &mut [C; CELLS],
) {
    // A lane's start plus a code within its span is always in bounds, so the compiler omits bounds checks.
    if JOINT {
        for (lane, code) in codes.as_chunks::<2>().0.iter().enumerate() {
            cells[lane * JOINT_STRIDE + usize::from(u16::from_le_bytes(*code)) % JOINT_SPAN].add(cell);
        }
    } else {
        for (lane, code) in codes.iter().enumerate() {
            cells[lane * STRIDE + usize::from(*code)].add(cell);
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
    /// Prefetch distance, in rows.
    const AHEAD: usize = 24;
    for (place, RowEntry { row, target }) in node.entries.iter().enumerate() {
        if let Some(later) = node.entries.get(place + AHEAD) {
            prefetch_index(entries, offsets[later.row as usize] as usize);
        }
        let (cell, row) = (C::of(*target, count_bits), *row as usize);
        for entry in &entries[offsets[row] as usize..offsets[row + 1] as usize] {
            cells[usize::from(*entry)].add(cell);
        }
    }
}

fn add_column<C: Cell>(
    code: impl Fn(usize) -> usize,
    node: NodeRows<'_, C>,
    count_bits: u32,
    cells: &mut [C],
) {
    for RowEntry { row, target } in node.entries {
        cells[code(*row as usize)].add(C::of(*target, count_bits));
    }
}
