//! The inner loop: rows of nodes are added into histograms, group by group, partition by partition.

use super::cell::Cell;
use super::rows::{NodeId, NodeRows, RowSets};
use crate::bins::{BinnedData, Binning, GroupCodes, GroupKind, JOINT_CODES, JOINT_LANES, LANES, STRIDE};
use crate::error::Result;
use prefetch_index::prefetch_index;
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
        let built: Vec<Vec<Vec<C>>> = pieces
            .par_iter()
            .with_max_len(1)
            .map(|piece| self.build_piece(rows, nodes, piece))
            .collect::<Result<_>>()?;
        let mut sums: Vec<Sum<C>> = nodes
            .iter()
            .flat_map(|wanted| self.groups.iter().map(|group| Sum::new(*group, wanted.total)))
            .collect();
        for (piece, of_nodes) in built.into_iter().enumerate() {
            let of_group = sums.iter_mut().skip(piece % self.groups.len()).step_by(self.groups.len());
            of_group.zip(of_nodes).for_each(|(sum, cells)| sum.parts.push(cells));
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
        Ok(nodes.iter().map(histogram).collect())
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
        let cells = lane_cells_of_group::<C>(&self.data.binning, piece.group);
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

/// What threads added up for a group of a node.
struct Sum<C> {
    group: usize,
    total: C,
    parts: Vec<Vec<C>>,
}

impl<C: Cell> Sum<C> {
    fn new(group: usize, total: C) -> Self {
        Sum { group, total, parts: Vec::new() }
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

/// Cells of a group's histogram.
pub fn cells_of_group(binning: &Binning, group: usize) -> usize {
    let members = &binning.layout.groups[group];
    match members.kind {
        GroupKind::Dense => members.blocks() * LANES * STRIDE,
        GroupKind::Sparse => members.features.len() * STRIDE,
        GroupKind::Joint => members.features.iter().map(|f| binning.features[*f as usize].codes()).sum(),
        GroupKind::Column(_) => binning.features[members.features[0] as usize].codes(),
    }
}

/// Cells of a group while rows are added: a joint group has one for each joint code.
pub fn lane_cells_of_group<C: Cell>(binning: &Binning, group: usize) -> usize {
    let members = &binning.layout.groups[group];
    match members.kind {
        GroupKind::Joint if C::LANES_AT_A_TIME == LANES => members.blocks() * JOINT_BLOCK,
        GroupKind::Joint => members.blocks() * 2 * JOINT_HALF,
        _ => cells_of_group(binning, group),
    }
}

/// The cells of one feature within its group's.
pub fn feature_cells(binning: &Binning, group: usize, place: usize) -> Range<usize> {
    let members = &binning.layout.groups[group];
    let start = members.starts[place];
    start..start + binning.features[members.features[place] as usize].codes()
}

/// Makes a group's histogram of the cells that rows were added into. `total` is of all these rows.
pub fn finish<C: Cell>(binning: &Binning, group: usize, mut cells: Vec<C>, total: C) -> Vec<C> {
    match binning.layout.groups[group].kind {
        GroupKind::Joint => return come_apart(binning, group, &mut cells),
        GroupKind::Sparse => fill_common(binning, group, &mut cells, total),
        GroupKind::Dense | GroupKind::Column(_) => {}
    }
    cells
}

/// Gives the common code of sparse features what the listed entries leave over.
fn fill_common<C: Cell>(binning: &Binning, group: usize, cells: &mut [C], total: C) {
    for (place, feature) in binning.layout.groups[group].features.iter().enumerate() {
        let cells = &mut cells[feature_cells(binning, group, place)];
        let common = binning.features[*feature as usize].common_code as usize;
        let mut rest = total;
        cells.iter().for_each(|cell| rest.subtract(*cell));
        cells[common] = rest;
    }
}

/// The sums of each feature of a joint group, of the sums by joint code.
fn come_apart<C: Cell>(binning: &Binning, group: usize, lane_cells: &mut [C]) -> Vec<C> {
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
            // All with one code of the features behind this one stand together: their sum takes their place.
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
    /// Leaves the rows that are not in `other`, which are some of this node's.
    pub fn subtract(&mut self, other: &NodeHistogram<C>) {
        self.groups.par_iter_mut().zip(&other.groups).for_each(|(mine, theirs)| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.subtract(*theirs));
        });
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.groups.iter().map(|cells| std::mem::size_of_val(cells.as_slice())).sum()
    }
}

/// Cells from one lane of a joint group to the next.
const JOINT_STRIDE: usize = JOINT_CODES + 4;
/// A joint code is below this, for all that the compiler knows.
const JOINT_SPAN: usize = JOINT_CODES.next_power_of_two();
/// Cells of the lanes that are added at a time: blocks, or halves of them. The last lane's span fits, too.
const BLOCK: usize = LANES * STRIDE;
const HALF: usize = BLOCK / 2;
const JOINT_BLOCK: usize = (JOINT_LANES - 1) * JOINT_STRIDE + JOINT_SPAN;
const JOINT_HALF: usize = (JOINT_LANES / 2 - 1) * JOINT_STRIDE + JOINT_SPAN;

/// Where the cells of a lane of a joint group start.
fn lane_start<C: Cell>(lane: usize) -> usize {
    let (lanes, cells) = match C::LANES_AT_A_TIME {
        LANES => (JOINT_LANES, JOINT_BLOCK),
        _ => (JOINT_LANES / 2, JOINT_HALF),
    };
    lane / lanes * cells + lane % lanes * JOINT_STRIDE
}

/// Adds a node's rows of one partition into one group's cells, lane by lane.
pub fn add_rows<C: Cell>(
    codes: GroupCodes<'_>,
    kind: GroupKind,
    node: NodeRows<'_, C>,
    count_bits: u32,
    cells: &mut [C],
) {
    match codes {
        GroupCodes::Blocks { blocks, per_row } => {
            let blocks = Blocks { blocks, per_row };
            match (kind, C::LANES_AT_A_TIME) {
                (GroupKind::Joint, LANES) => {
                    blocks.add::<C, true, LANES, JOINT_BLOCK>(node, count_bits, cells)
                }
                (GroupKind::Joint, _) => blocks.add::<C, true, 8, JOINT_HALF>(node, count_bits, cells),
                (_, LANES) => blocks.add::<C, false, LANES, BLOCK>(node, count_bits, cells),
                _ => blocks.add::<C, false, 8, HALF>(node, count_bits, cells),
            }
        }
        GroupCodes::Sparse { offsets, entries } => add_sparse(offsets, entries, node, count_bits, cells),
        GroupCodes::Bytes(codes) => add_column(|row| usize::from(codes[row]), node, count_bits, cells),
        GroupCodes::Words(codes) => add_column(|row| usize::from(codes[row]), node, count_bits, cells),
        GroupCodes::Longs(codes) => add_column(|row| codes[row] as usize, node, count_bits, cells),
    }
}

/// Rows that are added block after block while they are in the cache. Rows of a node are first copied from where they
/// are, and the rows after them fetched meanwhile.
const STRETCH: usize = 256;

/// The rows of a dense or joint group.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    blocks: &'a [[u8; LANES]],
    per_row: usize,
}

impl Blocks<'_> {
    fn add<C: Cell, const JOINT: bool, const BYTES: usize, const CELLS: usize>(
        self,
        node: NodeRows<'_, C>,
        count_bits: u32,
        cells: &mut [C],
    ) {
        // A row of a known size is copied without a call.
        match self.per_row {
            1 => self.add_rows::<C, JOINT, BYTES, CELLS, 1>(node, count_bits, cells),
            2 => self.add_rows::<C, JOINT, BYTES, CELLS, 2>(node, count_bits, cells),
            3 => self.add_rows::<C, JOINT, BYTES, CELLS, 3>(node, count_bits, cells),
            _ => self.add_rows::<C, JOINT, BYTES, CELLS, 4>(node, count_bits, cells),
        }
    }

    fn add_rows<C: Cell, const JOINT: bool, const BYTES: usize, const CELLS: usize, const BLOCKS: usize>(
        self,
        node: NodeRows<'_, C>,
        count_bits: u32,
        cells: &mut [C],
    ) {
        let all = self.blocks.as_chunks::<BLOCKS>().0;
        let parts = cells.as_chunks_mut::<CELLS>().0;
        let mut own = [C::default(); STRETCH];
        let mut copied = [[[0; LANES]; STRETCH]; BLOCKS];
        for (stretch, targets) in node.targets.chunks(STRETCH).enumerate() {
            for (own, target) in own.iter_mut().zip(targets) {
                *own = C::of(*target, count_bits);
            }
            let own = &own[..targets.len()];
            let start = stretch * STRETCH;
            match node.rows {
                None => {
                    let first = node.first + start;
                    let rows = &all[first..][..targets.len()];
                    let mut next = first + STRETCH..(first + 2 * STRETCH).min(all.len());
                    let fetch = || next.next().into_iter().for_each(|row| prefetch_index(all, row));
                    add_stretch::<C, JOINT, BYTES, CELLS, BLOCKS>(|b, r| &rows[r][b], own, parts, fetch);
                }
                Some(rows) => {
                    let (rows, next) = rows[start..].split_at(targets.len());
                    for (place, row) in rows.iter().enumerate() {
                        for (block, copied) in copied.iter_mut().enumerate() {
                            copied[place % STRETCH] = all[*row as usize][block];
                        }
                    }
                    let mut next = next.iter();
                    let fetch = || next.next().into_iter().for_each(|row| prefetch_index(all, *row as usize));
                    add_stretch::<C, JOINT, BYTES, CELLS, BLOCKS>(
                        |b, r| &copied[b][r % STRETCH],
                        own,
                        parts,
                        fetch,
                    );
                }
            }
        }
    }
}

/// Adds some rows, block after block. `fetch` is called once a row in all, for a row that comes later.
#[inline(always)]
fn add_stretch<
    'a,
    C: Cell,
    const JOINT: bool,
    const BYTES: usize,
    const CELLS: usize,
    const BLOCKS: usize,
>(
    row_of_block: impl Fn(usize, usize) -> &'a [u8; LANES],
    own: &[C],
    parts: &mut [[C; CELLS]],
    mut fetch: impl FnMut(),
) {
    let passes = BLOCKS * LANES / BYTES;
    for (part, cells) in parts.iter_mut().enumerate().take(passes) {
        let (block, part) = (part * BYTES / LANES, part % (LANES / BYTES));
        for (few, own) in own.chunks(passes).enumerate() {
            fetch(); // not all at once: the processor has few misses under way at a time
            for (row, cell) in (few * passes..).zip(own) {
                let codes = &row_of_block(block, row).as_chunks::<BYTES>().0[part];
                add_lanes::<C, JOINT, BYTES, CELLS>(codes, *cell, cells);
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
    // No sum of a lane's start and a code within its span can be beyond the cells, so none is checked.
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
