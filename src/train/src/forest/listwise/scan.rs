//! Computes how every cut (candidate split) of a node changes the worth of the lists in one partition. A list is a
//! query with its documents, and its worth is its expected NDCG in integer units.
//!
//! As a cut moves through the values of a feature, the worth of a list changes only at two kinds of events: a
//! document of the list crosses the cut, or the score of one side passes the score of another leaf's documents in the
//! list. Each event adds a step, which is the change of the worth, and the prefix sums of the steps are the gains of
//! all cuts. Steps are integers, which can be added over lists and partitions in any order.

use super::candidates::{CodeSums, Cuts};
use super::lists::{ListDocument, Lists, TiePart};
use super::measure::NdcgMeasure;
use super::rest::Rest;
use crate::bins::FeatureCodes;
use std::ops::Range;

/// Scans the documents of a node in one partition, and caches their codes.
#[derive(Default)]
pub struct NodeScan {
    /// Codes of the node's documents, feature by feature.
    codes: Vec<u8>,
    documents: usize,
    rest: Rest,
    own: Vec<u64>,
}

impl NodeScan {
    /// Adds the node's documents to the sums of each feature by code.
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

    /// Adds the steps of all lists at each cut. A step is the change of a list's worth from the previous cut. At the
    /// first cut, it is the change from the current worth.
    pub fn add_steps(
        &mut self,
        lists: &Lists<'_>,
        node: u32,
        cuts: &[Cuts],
        measure: &NdcgMeasure,
        steps: &mut [Vec<i64>],
    ) {
        let documents = lists.documents(node);
        let mut first = 0;
        for of_list in documents.chunk_by(|one, other| one.list == other.list) {
            let range = first..first + of_list.len();
            first = range.end;
            let list = of_list[0].list;
            if lists.factor(list) == 0.0 {
                continue; // without relevant documents, its worth is 0 in any order
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

    /// Sorts the documents of a list by the first cut that has the document on the left. An entry contains the index
    /// of this cut in its high bits and the document's gain in its low bits.
    fn gather(&mut self, of_list: &[ListDocument], range: Range<usize>, cuts: &Cuts) {
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
fn look_up(documents: &[ListDocument], codes: &mut [u8], code: impl Fn(u32) -> u8) {
    for (document, to) in documents.iter().zip(codes) {
        *to = code(document.row);
    }
}

/// Computes the steps of one list at all cuts of one feature, from left to right.
struct Walk<'a> {
    rest: &'a mut Rest,
    measure: &'a NdcgMeasure,
    cuts: &'a Cuts,
    steps: &'a mut [i64],
    /// Worth of the list at the last event.
    worth: i64,
}

impl Walk<'_> {
    /// Adds the steps of the list.
    fn all(&mut self, own: &[u64]) {
        let cut_of = |own: u64| (own >> 32) as usize;
        let node = self.rest.node();
        let cuts = self.cuts;
        // Before the first document's cut, all documents are on the right. From the last document's cut on, all are on
        // the left.
        let (first, last) = (cut_of(own[0]), cut_of(own[own.len() - 1]));
        self.whole_node(&cuts.right, 0..first);
        let mut left = TiePart::default();
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
            let right = TiePart { count: node.count - left.count, gains: node.gains - left.gains };
            slots = self.two_parts((left, right), slots, cut..next);
            cut = next;
        }
        self.whole_node(&cuts.left, last..cuts.len());
    }

    #[inline]
    fn step(&mut self, cut: usize, worth: i64) {
        self.steps[cut] = self.steps[cut].wrapping_add(worth.wrapping_sub(self.worth));
        self.worth = worth;
    }

    /// Adds the steps of cuts that have all documents on one side. Only the score of this side changes.
    fn whole_node(&mut self, scores: &[f64], cuts: Range<usize>) {
        let Range { start: mut cut, end } = cuts;
        let Some(score) = scores[..end].get(cut) else { return };
        let mut slot = self.rest.find(*score);
        while cut < end {
            slot = self.rest.slot(scores[cut], slot);
            let worth = self.rest.whole_node(slot, self.measure);
            self.step(cut, worth);
            cut += 1 + within(&scores[cut + 1..end], self.rest.bounds(slot));
        }
    }

    /// Adds the steps of cuts that have the same documents on each side. The scores of both sides change.
    fn two_parts(
        &mut self,
        (left, right): (TiePart, TiePart),
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
                self.rest.two_parts((left, left_slot), (right, right_slot), self.measure)
            } else {
                self.rest.two_parts((right, right_slot), (left, left_slot), self.measure)
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

/// Returns how many leading scores are within the bounds.
#[inline]
fn within(scores: &[f64], (lowest, highest): (f64, f64)) -> usize {
    /// Number of scores that are compared at a time without branches.
    const AT_ONCE: usize = 8;
    let stays = |score: &f64| (lowest <= *score) & (*score <= highest);
    let whole = scores
        .chunks_exact(AT_ONCE)
        .take_while(|scores| scores.iter().fold(true, |all, score| all & stays(score)))
        .count();
    let checked = whole * AT_ONCE;
    checked + scores[checked..].iter().take_while(|score| stays(score)).count()
}
