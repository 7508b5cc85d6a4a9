//! Computes how every cut (candidate split) of a node changes the worth of the lists in one partition. A list is a
//! query with its documents, and its worth is its expected NDCG in integer units.
//!
//! As a cut moves through the values of a feature, the worth of a list changes only at two kinds of events: a
//! document of the list crosses the cut, or the score of one side passes the score of another leaf's documents in the
//! list. Each event adds a step, which is the change of the worth, and the prefix sums of the steps are the gains of
//! all cuts. Steps are integers, which can be added over lists and partitions in any order.

use super::candidates::{CandidateSums, Cuts};
use super::list_measure::ListMeasure;
use super::list_scores::PlacedList;
use super::lists::{ListDocument, Lists, TiePart};
use super::measure::NdcgMeasure;
use super::node_queries::NodeQueries;
use super::rest::Rest;
use crate::bins::FeatureCodes;
use planetree_metric::Judge;
use std::ops::Range;

/// Scans the documents of a node in one partition, and caches their codes.
#[derive(Default)]
pub(super) struct NodeScan {
    /// Codes of the node's documents, feature by feature.
    codes: Vec<u32>,
    documents: usize,
    rest: Rest,
    own: Vec<u64>,
    /// Scores of a list that is evaluated as a whole.
    scores: Vec<f64>,
    /// Evaluator of whole lists; `None` until it is needed.
    judge: Option<Judge>,
}

impl NodeScan {
    /// Adds the node's documents to the sums of each feature by code.
    pub(super) fn add_sums(
        &mut self,
        lists: &Lists<'_>,
        node: u32,
        columns: &[FeatureCodes<'_>],
        sums: &mut [CandidateSums],
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
                Some(bytes) => look_up(documents, codes, |row| u32::from(bytes[row as usize])),
                None => look_up(documents, codes, |row| column.code(row)),
            }
            for (document, code) in documents.iter().zip(codes) {
                document.add_to(sums.at(*code));
            }
        }
    }

    /// Adds the steps of the sampled lists at each cut. A step is the change of a list's worth from the previous cut. At
    /// the first cut, it is the change from the current worth.
    pub(super) fn add_steps(
        &mut self,
        (lists, node): (&Lists<'_>, u32),
        queries: &NodeQueries,
        cuts: &[Cuts],
        measure: &ListMeasure,
        steps: &mut [Vec<i64>],
    ) {
        let documents = lists.documents(node);
        let mut first = 0;
        for of_list in documents.chunk_by(|one, other| one.list == other.list) {
            let range = first..first + of_list.len();
            first = range.end;
            let list = of_list[0].list;
            // Without relevant documents, the worth of a list is 0 in any order.
            if lists.factor(list) == 0.0 || !queries.contains(lists.query(list)) {
                continue;
            }
            let worth = lists.worth_of(list);
            let cuts = cuts.iter().zip(steps.iter_mut()).filter(|(cuts, _)| !cuts.is_empty());
            match measure {
                ListMeasure::Ndcg(measure) => {
                    self.rest.take(lists.ties(list), node, lists.factor(list), measure);
                    for (cuts, steps) in cuts {
                        self.gather(of_list, range.clone(), cuts, |document| document.gain as u32);
                        let list = RankedTies { rest: &mut self.rest, measure };
                        Walk { list, cuts, steps, worth }.all(&self.own);
                    }
                }
                ListMeasure::Metric(metric) => {
                    let Some((labels, scores, first_row)) = lists.scored(list) else { continue };
                    self.rest.take_ties(lists.ties(list), node);
                    self.scores.clear();
                    self.scores.extend(scores);
                    for (cuts, steps) in cuts {
                        self.gather(of_list, range.clone(), cuts, |document| document.row - first_row);
                        let list = PlacedList {
                            rest: &mut self.rest,
                            judge: self.judge.get_or_insert_with(|| metric.judge()),
                            labels,
                            scores: &mut self.scores,
                            own: &self.own,
                            factor: lists.factor(list),
                        };
                        Walk { list, cuts, steps, worth }.all(&self.own);
                    }
                }
            }
        }
    }

    /// Sorts the documents of a list by the first cut that has the document on the left. An entry contains the index
    /// of this cut in its high bits and `low`, such as the document's gain, in its low bits.
    #[inline(always)]
    fn gather(
        &mut self,
        of_list: &[ListDocument],
        range: Range<usize>,
        cuts: &Cuts,
        low: impl Fn(&ListDocument) -> u32,
    ) {
        let codes = &self.codes[cuts.place * self.documents..][range];
        self.own.clear();
        self.own.extend(
            of_list
                .iter()
                .zip(codes)
                .map(|(document, code)| u64::from(cuts.first(*code)) << 32 | u64::from(low(document))),
        );
        if self.own.len() > 1 {
            self.own.sort_unstable();
        }
    }
}

#[inline]
fn look_up(documents: &[ListDocument], codes: &mut [u32], code: impl Fn(u32) -> u32) {
    for (document, to) in documents.iter().zip(codes) {
        *to = code(document.row);
    }
}

/// Some documents of a node that get the same score.
#[derive(Clone, Copy)]
struct Placed {
    part: TiePart,
    /// Slot of the score among the ties of the other documents.
    slot: usize,
    score: f64,
}

/// One list, of which the documents of a node can be placed at any score.
trait PlacedRanking {
    /// Returns the ties of the other documents.
    fn rest(&self) -> &Rest;

    /// Returns the worth of the list with all documents of the node at one score.
    fn whole_node(&mut self, slot: usize, score: f64) -> i64;

    /// Returns the worth of the list with the left and the right documents at different scores.
    fn two_parts(&mut self, left: Placed, right: Placed) -> i64;
}

/// A list whose worth is a sum over ties.
struct RankedTies<'a> {
    rest: &'a mut Rest,
    measure: &'a NdcgMeasure,
}

impl PlacedRanking for RankedTies<'_> {
    #[inline(always)]
    fn rest(&self) -> &Rest {
        self.rest
    }

    #[inline(always)]
    fn whole_node(&mut self, slot: usize, _score: f64) -> i64 {
        self.rest.whole_node(slot, self.measure)
    }

    #[inline(always)]
    fn two_parts(&mut self, left: Placed, right: Placed) -> i64 {
        let (high, low) = if left.score > right.score { (left, right) } else { (right, left) };
        self.rest.two_parts((high.part, high.slot), (low.part, low.slot), self.measure)
    }
}

impl PlacedRanking for PlacedList<'_> {
    fn rest(&self) -> &Rest {
        self.rest
    }

    fn whole_node(&mut self, _slot: usize, score: f64) -> i64 {
        self.worth(0, score, score)
    }

    fn two_parts(&mut self, left: Placed, right: Placed) -> i64 {
        self.worth(left.part.count, left.score, right.score)
    }
}

/// Computes the steps of one list at all cuts of one feature, from left to right.
struct Walk<'a, L> {
    list: L,
    cuts: &'a Cuts,
    steps: &'a mut [i64],
    /// Worth of the list at the last event.
    worth: i64,
}

impl<L: PlacedRanking> Walk<'_, L> {
    /// Adds the steps of the list.
    fn all(&mut self, own: &[u64]) {
        let cut_of = |own: u64| (own >> 32) as usize;
        let node = self.list.rest().node();
        let cuts = self.cuts;
        // Before the first document's cut, all documents are on the right. From the last document's cut on, all are on
        // the left.
        let (first, last) = (cut_of(own[0]), cut_of(own[own.len() - 1]));
        self.whole_node(&cuts.right, 0..first);
        let mut left = TiePart::default();
        let mut place = 0;
        let mut cut = first;
        let mut slots = match cut < last {
            true => (self.list.rest().find(cuts.left[cut]), self.list.rest().find(cuts.right[cut])),
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
        let mut slot = self.list.rest().find(*score);
        while cut < end {
            slot = self.list.rest().slot(scores[cut], slot);
            let worth = self.list.whole_node(slot, scores[cut]);
            self.step(cut, worth);
            cut += 1 + within(&scores[cut + 1..end], self.list.rest().bounds(slot));
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
            left_slot = self.list.rest().slot(left_score, left_slot);
            right_slot = self.list.rest().slot(right_score, right_slot);
            let left_is_high = left_score > right_score;
            let worth = self.list.two_parts(
                Placed { part: left, slot: left_slot, score: left_score },
                Placed { part: right, slot: right_slot, score: right_score },
            );
            self.step(cut, worth);
            let rest = self.list.rest();
            let (of_left, of_right) = (rest.bounds(left_slot), rest.bounds(right_slot));
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
