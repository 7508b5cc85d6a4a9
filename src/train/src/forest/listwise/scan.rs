//! What every cut of a node would do to the lists of one partition.
//!
//! As a cut moves through the values of a feature, a list changes for two reasons only: one of its own
//! documents crosses the cut, or the score of a side passes the score of one of its other ties.
//! Between such events its worth stays what it is, so a list writes a step where an event
//! is, and the sums of steps are the gains of all cuts. Steps are whole numbers: those of all lists and
//! partitions add up in any order.

use super::candidates::{CodeSums, Cuts};
use super::lists::{Document, Lists, Part};
use super::measure::Measure;
use super::rest::Rest;
use crate::bins::FeatureCodes;
use std::ops::Range;

/// What one partition says of a node. It is a cache: codes are looked up again if it is lost.
#[derive(Default)]
pub struct NodeScan {
    /// The codes of the node's documents, feature by feature.
    codes: Vec<u8>,
    documents: usize,
    rest: Rest,
    own: Vec<u64>,
}

impl NodeScan {
    /// Adds the node's documents to the sums of each feature, by their code.
    pub fn add_sums(
        &mut self,
        lists: &Lists<'_>,
        node: u32,
        columns: &[FeatureCodes<'_>],
        sums: &mut [CodeSums],
    ) {
        let documents = lists.documents(node);
        self.documents = documents.len();
        self.codes.resize(documents.len() * columns.len(), 0);
        if documents.is_empty() {
            return;
        }
        for ((column, sums), codes) in
            columns.iter().zip(sums).zip(self.codes.chunks_exact_mut(documents.len()))
        {
            match column.bytes() {
                Some(bytes) => look_up(documents, codes, |row| bytes[row as usize]),
                // Static bins have at most 256 codes.
                None => look_up(documents, codes, |row| column.code(row) as u8),
            }
            for (document, code) in documents.iter().zip(codes) {
                document.add_to(sums.at(*code));
            }
        }
    }

    /// Adds the steps of all lists at each cut: by how much their worth differs from that at the cut
    /// before, and at the first cut from their worth now.
    pub fn add_steps(
        &mut self,
        lists: &Lists<'_>,
        node: u32,
        cuts: &[Cuts],
        measure: &Measure,
        steps: &mut [Vec<i64>],
    ) {
        let documents = lists.documents(node);
        let mut first = 0;
        for of_list in documents.chunk_by(|one, other| one.list == other.list) {
            let range = first..first + of_list.len();
            first = range.end;
            let list = of_list[0].list;
            if lists.factor(list) == 0.0 {
                continue; // no order of its documents is worth anything
            }
            self.rest.take(lists.ties(list), node, lists.factor(list), measure);
            for (cuts, steps) in cuts.iter().zip(steps.iter_mut()) {
                if !cuts.is_empty() {
                    self.gather(of_list, range.clone(), cuts);
                    let mut walk =
                        Walk { rest: &mut self.rest, measure, cuts, steps, worth: lists.worth_of(list) };
                    walk.all(&self.own);
                }
            }
        }
    }

    /// The list's own documents by the cut from which on they are on the left, with their gains.
    fn gather(&mut self, of_list: &[Document], range: Range<usize>, cuts: &Cuts) {
        let codes = &self.codes[cuts.place * self.documents..][range];
        self.own.clear();
        self.own.extend(
            of_list
                .iter()
                .zip(codes)
                .map(|(document, code)| u64::from(cuts.first(*code)) << 32 | u64::from(document.gain as u32)),
        );
        if self.own.len() > 1 {
            self.own.sort_unstable();
        }
    }
}

#[inline]
fn look_up(documents: &[Document], codes: &mut [u8], code: impl Fn(u32) -> u8) {
    for (document, to) in documents.iter().zip(codes) {
        *to = code(document.row);
    }
}

/// One list along the cuts of one feature.
struct Walk<'a> {
    rest: &'a mut Rest,
    measure: &'a Measure,
    cuts: &'a Cuts,
    steps: &'a mut [i64],
    /// At the last event.
    worth: i64,
}

impl Walk<'_> {
    /// Writes the steps of the list.
    fn all(&mut self, own: &[u64]) {
        let cut_of = |own: u64| (own >> 32) as usize;
        let node = self.rest.node();
        let cuts = self.cuts;
        // Up to the first of its documents all are on the right, from the last on all are on the left.
        let (first, last) = (cut_of(own[0]), cut_of(own[own.len() - 1]));
        self.together(&cuts.right, 0..first);
        let mut left = Part::default();
        let mut place = 0;
        let mut cut = first;
        let mut slots = match cut < last {
            true => (self.rest.find(cuts.left[cut]), self.rest.find(cuts.right[cut])),
            false => (0, 0),
        };
        while cut < last {
            while cut_of(own[place]) <= cut {
                left.count += 1;
                left.gains += i64::from(own[place] as u32 as i32);
                place += 1;
            }
            let next = cut_of(own[place]);
            let right = Part { count: node.count - left.count, gains: node.gains - left.gains };
            slots = self.apart((left, right), slots, cut..next);
            cut = next;
        }
        self.together(&cuts.left, last..cuts.len());
    }

    #[inline]
    fn step(&mut self, cut: usize, worth: i64) {
        self.steps[cut] = self.steps[cut].wrapping_add(worth.wrapping_sub(self.worth));
        self.worth = worth;
    }

    /// All documents are on one side, whose score moves.
    fn together(&mut self, scores: &[f64], cuts: Range<usize>) {
        let Range { start: mut cut, end } = cuts;
        let Some(score) = scores[..end].get(cut) else { return };
        let mut slot = self.rest.find(*score);
        while cut < end {
            slot = self.rest.slot(scores[cut], slot);
            let worth = self.rest.together(slot, self.measure);
            self.step(cut, worth);
            cut += 1 + within(&scores[cut + 1..end], self.rest.bounds(slot));
        }
    }

    /// The same documents are on either side, both scores move.
    fn apart(
        &mut self,
        (left, right): (Part, Part),
        (mut left_slot, mut right_slot): (usize, usize),
        cuts: Range<usize>,
    ) -> (usize, usize) {
        let Range { start: mut cut, end } = cuts;
        while cut < end {
            let (left_score, right_score) = (self.cuts.left[cut], self.cuts.right[cut]);
            left_slot = self.rest.slot(left_score, left_slot);
            right_slot = self.rest.slot(right_score, right_slot);
            let left_is_high = left_score > right_score;
            let worth = if left_is_high {
                self.rest.apart((left, left_slot), (right, right_slot), self.measure)
            } else {
                self.rest.apart((right, right_slot), (left, left_slot), self.measure)
            };
            self.step(cut, worth);
            let (of_left, of_right) = (self.rest.bounds(left_slot), self.rest.bounds(right_slot));
            cut += 1;
            while cut < end {
                let (left, right) = (self.cuts.left[cut], self.cuts.right[cut]);
                let stays =
                    (of_left.0 <= left) & (left <= of_left.1) & (of_right.0 <= right) & (right <= of_right.1);
                if !stays | ((left > right) != left_is_high) {
                    break;
                }
                cut += 1;
            }
        }
        (left_slot, right_slot)
    }
}

/// How many scores from the first on stay within bounds.
#[inline]
fn within(scores: &[f64], (lowest, highest): (f64, f64)) -> usize {
    /// Scores that are looked at together, without a branch between them.
    const AT_ONCE: usize = 8;
    let stays = |score: &f64| (lowest <= *score) & (*score <= highest);
    let whole = scores
        .chunks_exact(AT_ONCE)
        .take_while(|scores| scores.iter().fold(true, |all, score| all & stays(score)))
        .count();
    let checked = whole * AT_ONCE;
    checked + scores[checked..].iter().take_while(|score| stays(score)).count()
}
