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
    from: u32,
    to: u32,
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
        let blocks = |of: &SlotMove| (of.from as usize / BLOCK, of.to as usize / BLOCK);
        let lanes = self.entries.as_chunks_mut::<BLOCK>().0;
        let mut places = Vec::with_capacity(BLOCK);
        // Lane by lane for all moves between the same two blocks, so that each cache line is read once.
        for moves in moves.chunk_by(|one, other| blocks(one) == blocks(other)) {
            let (from, to) = blocks(&moves[0]);
            places.clear();
            places.extend(moves.iter().map(SlotMove::places));
            if from == to {
                lanes[to * self.width..][..self.width].iter_mut().for_each(|lane| move_within(lane, &places));
            } else {
                // Gaps come before the documents that fill them.
                let (before, rest) = lanes.split_at_mut(from * self.width);
                move_between(&rest[..self.width], &mut before[to * self.width..][..self.width], &places);
            }
        }
        self.count = slots.div_ceil(BLOCK);
        self.entries.truncate(self.count * self.width * BLOCK);
    }
}

impl SlotMove {
    /// Returns the places within the blocks.
    fn places(&self) -> [u8; 2] {
        const { assert!(BLOCK <= 1 << u8::BITS) };
        [self.from, self.to].map(|slot| (slot as usize % BLOCK) as u8)
    }
}

/// Moves the entries of a lane.
fn move_within<T: Copy>(lane: &mut [T; BLOCK], places: &[[u8; 2]]) {
    for [from, to] in places {
        lane[usize::from(*to) % BLOCK] = lane[usize::from(*from) % BLOCK];
    }
}

/// Moves entries from the lanes of one block to those of another. Several lanes at a time, so that the places of a
/// document are read once for all of them.
fn move_between<T: Copy>(from: &[[T; BLOCK]], to: &mut [[T; BLOCK]], places: &[[u8; 2]]) {
    const LANES: usize = 8;
    let (from, last_from) = from.as_chunks::<LANES>();
    let (to, last_to) = to.as_chunks_mut::<LANES>();
    for (from, to) in from.iter().zip(to) {
        move_lanes(from, to, places);
    }
    for (from, to) in last_from.iter().zip(last_to) {
        move_lanes(std::array::from_ref(from), std::array::from_mut(to), places);
    }
}

#[inline(always)]
fn move_lanes<T: Copy, const LANES: usize>(
    from: &[[T; BLOCK]; LANES],
    to: &mut [[T; BLOCK]; LANES],
    places: &[[u8; 2]],
) {
    for [from_place, to_place] in places {
        for lane in 0..LANES {
            to[lane][usize::from(*to_place) % BLOCK] = from[lane][usize::from(*from_place) % BLOCK];
        }
    }
}

/// Moves the values of documents that are stored by slot.
pub(super) fn move_slots<T: Copy>(values: &mut [T], moves: &[SlotMove]) {
    moves.iter().for_each(|SlotMove { from, to }| values[*to as usize] = values[*from as usize]);
}

/// Closes gaps by moving documents from the end into them, so that few documents move. `slots` has the document of each slot,
/// and `is_gap` says whether it left. Replaces `moves` by those that were made.
pub(super) fn close_gaps(slots: &mut Vec<u32>, moves: &mut Vec<SlotMove>, is_gap: impl Fn(u32) -> bool) {
    let (mut gap, mut end) = (0, slots.len());
    moves.clear();
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
        moves.push(SlotMove { from: end as u32, to: gap as u32 });
    }
    slots.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_lanes_follow_their_documents(
            leaves in prop::collection::vec(any::<bool>(), 0..5 * BLOCK), width in 0usize..20,
        ) {
            let mut slots: Vec<u32> = (0..leaves.len() as u32).collect();
            let mut blocks = Blocks::new(width, leaves.len());
            for first in (0..leaves.len()).step_by(BLOCK) {
                for (lane, entries) in blocks.push().iter_mut().enumerate() {
                    *entries = std::array::from_fn(|slot| 100 * (first + slot) + lane);
                }
            }
            let mut by_slot = slots.clone();
            let mut moves = Vec::new();
            close_gaps(&mut slots, &mut moves, |row| leaves[row as usize]);
            blocks.compact(&moves, slots.len());
            move_slots(&mut by_slot, &moves);
            prop_assert_eq!(&by_slot[..slots.len()], &slots[..]);
            let left = leaves.iter().filter(|leaves| !**leaves).count();
            prop_assert!(moves.len() <= left.min(leaves.len() - left));
            for (slot, row) in slots.iter().enumerate() {
                for lane in 0..width {
                    prop_assert_eq!(blocks.lane(slot / BLOCK, lane)[slot % BLOCK], 100 * *row as usize + lane);
                }
            }
            slots.sort_unstable();
            let expected = (0..leaves.len() as u32).filter(|row| !leaves[*row as usize]);
            prop_assert_eq!(slots, expected.collect::<Vec<u32>>());
        }
    }
}
