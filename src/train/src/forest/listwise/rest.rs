//! Computes the worth (expected NDCG in integer units) of a list after the documents of one node are removed from it
//! and reinserted at any score, either together or in two parts. A list is a query with its documents.
//!
//! The remaining documents with equal scores form ties. A slot is the position of a score among the ties: slot 2i is
//! between ties i - 1 and i, and slot 2i + 1 has the score of tie i. Ties above the higher part keep their ranks.
//! Ties between the two parts move down by the number of documents in the higher part, and ties below the lower part
//! move down by the number of documents in both. The worths of moved ties are cached as prefix sums, so that any
//! placement takes only a few lookups.

use super::lists::{Tie, TiePart};
use super::measure::NdcgMeasure;

/// One list without the documents of a node. The buffers are reused for each list.
#[derive(Default)]
pub(super) struct Rest {
    factor: f64,
    /// Scores of the ties, in descending order.
    scores: Vec<f64>,
    starts: Vec<u32>,
    parts: Vec<TiePart>,
    mean_gains: Vec<f64>,
    /// All documents of the node in this list.
    node: TiePart,
    /// Prefix sums of the worths of moved ties: a row of ties + 1 entries for each distance by which ties move down.
    moved: Vec<i64>,
    is_known: Vec<bool>,
    /// Worth of the list with the whole node in each slot; [`UNKNOWN`] until computed.
    whole: Vec<i64>,
}

/// Maximum number of cached sums per list. The sums of larger lists are computed on demand. The limit is low in tests,
/// so that they cover this case.
const MOST_SUMS: usize = if cfg!(test) { 40 } else { 1 << 18 };
const UNKNOWN: i64 = i64::MIN;

impl Rest {
    /// Loads a list without the documents of one leaf.
    pub(super) fn take(&mut self, ties: &[Tie], leaf: u32, factor: f64, measure: &NdcgMeasure) {
        self.factor = factor;
        self.take_ties(ties, leaf);
        self.starts.clear();
        self.mean_gains.clear();
        let mut start = 0;
        for part in &self.parts {
            self.starts.push(start);
            self.mean_gains.push(measure.mean_gain(part.gains, part.count, factor));
            start += part.count;
        }
        self.starts.push(start);
        let rows = self.node.count as usize + 1;
        let sums = rows * (self.parts.len() + 1);
        self.is_known.clear();
        if sums <= MOST_SUMS {
            self.is_known.resize(rows, false);
            // Old entries of other lists are never read.
            self.moved.resize(sums.max(self.moved.len()), 0);
        }
    }

    /// Loads only the ties of a list without the documents of one leaf, to find slots.
    pub(super) fn take_ties(&mut self, ties: &[Tie], leaf: u32) {
        self.scores.clear();
        self.parts.clear();
        self.node = TiePart::default();
        for tie in ties {
            if tie.leaf == leaf {
                self.node = TiePart { count: tie.count, gains: tie.gains };
            } else if self.scores.last() == Some(&tie.score) {
                let last = self.parts.len() - 1;
                self.parts[last].count += tie.count;
                self.parts[last].gains += tie.gains;
            } else {
                self.scores.push(tie.score);
                self.parts.push(TiePart { count: tie.count, gains: tie.gains });
            }
        }
        self.whole.clear();
        self.whole.resize(2 * self.parts.len() + 1, UNKNOWN);
    }

    /// Returns all documents of the node in this list.
    pub(super) fn node(&self) -> TiePart {
        self.node
    }

    /// Returns the slot of a score.
    #[inline]
    pub(super) fn find(&self, score: f64) -> usize {
        self.slot(score, 2 * self.scores.partition_point(|tie| *tie > score))
    }

    /// Returns the slot of a score, searching from the slot of a nearby score.
    #[inline]
    pub(super) fn slot(&self, score: f64, near: usize) -> usize {
        let mut above = (near / 2).min(self.scores.len());
        while above > 0 && self.scores[above - 1] <= score {
            above -= 1;
        }
        while above < self.scores.len() && self.scores[above] > score {
            above += 1;
        }
        2 * above + usize::from(self.scores.get(above) == Some(&score))
    }

    /// Returns the lowest and highest score that belong to a slot.
    #[inline]
    pub(super) fn bounds(&self, slot: usize) -> (f64, f64) {
        let tie = slot / 2;
        if slot % 2 == 1 {
            return (self.scores[tie], self.scores[tie]);
        }
        let lowest = self.scores.get(tie).map_or(f64::NEG_INFINITY, |below| below.next_up());
        let highest = if tie == 0 { f64::INFINITY } else { self.scores[tie - 1].next_down() };
        (lowest, highest)
    }

    /// Returns the worth of the list with all documents of the node in one slot.
    #[inline]
    pub(super) fn whole_node(&mut self, slot: usize, measure: &NdcgMeasure) -> i64 {
        if self.whole[slot] == UNKNOWN {
            let (tie, level) = (slot / 2, slot % 2);
            let ties = self.parts.len();
            self.whole[slot] = self.between(0, 0, tie, measure)
                + self.placed(self.node, slot, 0, measure)
                + self.between(self.node.count, tie + level, ties, measure);
        }
        self.whole[slot]
    }

    /// Returns the worth of the list with one part of the node's documents in a slot, and the other part in the same or
    /// a lower slot.
    #[inline]
    pub(super) fn two_parts(
        &mut self,
        high: (TiePart, usize),
        low: (TiePart, usize),
        measure: &NdcgMeasure,
    ) -> i64 {
        let ties = self.parts.len();
        let ((high, high_slot), (low, low_slot)) = (high, low);
        let (above, below) = (high_slot / 2, low_slot / 2);
        self.between(0, 0, above, measure)
            + self.placed(high, high_slot, 0, measure)
            + self.between(high.count, above + high_slot % 2, below, measure)
            + self.placed(low, low_slot, high.count, measure)
            + self.between(self.node.count, below + low_slot % 2, ties, measure)
    }

    /// Returns the worth of documents in a slot, together with the tie that has the same score, if any. `moved`
    /// documents were inserted above.
    #[inline]
    fn placed(&self, part: TiePart, slot: usize, moved: u32, measure: &NdcgMeasure) -> i64 {
        let tie = slot / 2;
        let mut all = part;
        if slot % 2 == 1 {
            all.count += self.parts[tie].count;
            all.gains += self.parts[tie].gains;
        }
        measure.worth(
            measure.mean_gain(all.gains, all.count, self.factor),
            self.starts[tie] + moved,
            all.count,
        )
    }

    /// Returns the worth of a range of ties after they moved down by `moved` ranks.
    #[inline]
    fn between(&mut self, moved: u32, first: usize, end: usize, measure: &NdcgMeasure) -> i64 {
        if first >= end {
            return 0;
        }
        if self.is_known.is_empty() {
            return (first..end).map(|tie| self.worth(tie, moved, measure)).sum();
        }
        let width = self.parts.len() + 1;
        let row = moved as usize * width;
        if !self.is_known[moved as usize] {
            self.is_known[moved as usize] = true;
            let mut sum = 0i64;
            for tie in 0..width - 1 {
                self.moved[row + tie] = sum;
                sum = sum.wrapping_add(self.worth(tie, moved, measure));
            }
            self.moved[row + width - 1] = sum;
        }
        self.moved[row + end] - self.moved[row + first]
    }

    #[inline]
    fn worth(&self, tie: usize, moved: u32, measure: &NdcgMeasure) -> i64 {
        measure.worth(self.mean_gains[tie], self.starts[tie] + moved, self.parts[tie].count)
    }
}
