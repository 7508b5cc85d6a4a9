//! The innermost loop of training: adds rows of a node to the cells of a feature group. Groups, blocks and lanes are
//! explained in `bins/layout.rs`.

use super::cell::Cell;
use super::rows::{NodeRows, RowEntry};
use crate::bins::{BLOCKS, Group, GroupCodes, GroupKind, JOINT_CODES, JOINT_LANES, LANES, STRIDE};
use prefetch_index::prefetch_index;
use std::cell::RefCell;

/// Number of cells from the start of one lane of a joint group to the start of the next.
const JOINT_STRIDE: usize = JOINT_CODES + 4;
/// Upper bound of the joint codes, as a power of two that lets the compiler omit bounds checks.
const JOINT_SPAN: usize = JOINT_CODES.next_power_of_two();
/// Number of cells of the lanes that are added together: the lanes of a block or half a block,
/// in a dense or joint group. For joint groups, this includes the whole span of the last lane.
const BLOCK: usize = LANES * STRIDE;
const HALF: usize = BLOCK / 2;
pub(super) const JOINT_BLOCK: usize = (JOINT_LANES - 1) * JOINT_STRIDE + JOINT_SPAN;
pub(super) const JOINT_HALF: usize = (JOINT_LANES / 2 - 1) * JOINT_STRIDE + JOINT_SPAN;

/// Returns the index of the first cell of a lane in a joint group.
pub(super) fn lane_start<C: Cell>(lane: usize) -> usize {
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
