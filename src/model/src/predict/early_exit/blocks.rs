//! Keeps the values of documents in blocks, and closes the gaps that documents leave when they exit. A block has one
//! lane per feature or plane, and a lane has one entry per slot of the block.

use crate::family::trees::BLOCK;

/// The lanes of all blocks, block by block.
pub(super) struct Blocks<T> {
    /// The entries of all lanes. There may be space for more blocks at the end.
    entries: Vec<T>,
    /// Number of lanes per block.
    width: usize,
    /// Number of blocks.
    count: usize,
}

/// Moves a document from one slot to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotMove {
    from: usize,
    to: usize,
}

impl<T: Copy + Default> Blocks<T> {
    /// Creates blocks with `width` lanes. There is space for this many rows.
    pub(super) fn new(width: usize, rows: usize) -> Self {
        let space = width * rows.next_multiple_of(BLOCK);
        Blocks { entries: vec![T::default(); space], width, count: 0 }
    }

    /// Appends a block, and returns its lanes.
    pub(super) fn push(&mut self) -> &mut [[T; BLOCK]] {
        let start = self.count * self.width;
        self.count += 1;
        let entries = self.count * self.width * BLOCK;
        self.entries.resize(self.entries.len().max(entries), T::default());
        &mut self.entries.as_chunks_mut().0[start..start + self.width]
    }

    /// Returns the lanes from a block on.
    pub(super) fn starting_at(&self, block: usize) -> &[[T; BLOCK]] {
        &self.entries.as_chunks().0[block * self.width..]
    }

    /// Returns a lane of a block.
    pub(super) fn lane(&self, block: usize, lane: usize) -> &[T; BLOCK] {
        &self.entries.as_chunks().0[block * self.width + lane]
    }

    /// Moves documents, and keeps the blocks of the first `slots` slots.
    pub(super) fn compact(&mut self, moves: &[SlotMove], slots: usize) {
        let blocks = |of: &SlotMove| (of.from / BLOCK, of.to / BLOCK);
        let lanes = self.entries.as_chunks_mut::<BLOCK>().0;
        // Lane by lane for all moves between the same two blocks, so that each cache line is read once.
        for moves in moves.chunk_by(|one, other| blocks(one) == blocks(other)) {
            let (from, to) = blocks(&moves[0]);
            for lane in 0..self.width {
                let source = lanes[from * self.width + lane];
                let target = &mut lanes[to * self.width + lane];
                for SlotMove { from, to } in moves {
                    target[to % BLOCK] = source[from % BLOCK];
                }
            }
        }
        self.count = slots.div_ceil(BLOCK);
        self.entries.truncate(self.count * self.width * BLOCK);
    }
}

/// Closes gaps by moving documents from the end into them, so that few documents move. `slots` has the document of each slot,
/// and `is_gap` says whether it left.
pub(super) fn close_gaps(slots: &mut Vec<u32>, is_gap: impl Fn(u32) -> bool) -> Vec<SlotMove> {
    let (mut gap, mut end, mut moves) = (0, slots.len(), Vec::new());
    loop {
        while gap < end && !is_gap(slots[gap]) {
            gap += 1;
        }
        while gap < end && is_gap(slots[end - 1]) {
            end -= 1;
        }
        if gap == end {
            break;
        }
        end -= 1;
        slots[gap] = slots[end];
        moves.push(SlotMove { from: end, to: gap });
    }
    slots.truncate(end);
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_lanes_follow_their_documents(
            leaves in prop::collection::vec(any::<bool>(), 0..5 * BLOCK), width in 0usize..4,
        ) {
            let mut slots: Vec<u32> = (0..leaves.len() as u32).collect();
            let mut blocks = Blocks::new(width, leaves.len());
            for first in (0..leaves.len()).step_by(BLOCK) {
                for (lane, entries) in blocks.push().iter_mut().enumerate() {
                    *entries = std::array::from_fn(|slot| 10 * (first + slot) + lane);
                }
            }
            let moves = close_gaps(&mut slots, |row| leaves[row as usize]);
            blocks.compact(&moves, slots.len());
            let left = leaves.iter().filter(|leaves| !**leaves).count();
            prop_assert!(moves.len() <= left.min(leaves.len() - left));
            for (slot, row) in slots.iter().enumerate() {
                for lane in 0..width {
                    prop_assert_eq!(blocks.lane(slot / BLOCK, lane)[slot % BLOCK], 10 * *row as usize + lane);
                }
            }
            slots.sort_unstable();
            let expected = (0..leaves.len() as u32).filter(|row| !leaves[*row as usize]);
            prop_assert_eq!(slots, expected.collect::<Vec<u32>>());
        }
    }
}
