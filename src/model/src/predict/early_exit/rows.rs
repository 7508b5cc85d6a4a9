//! Scores documents from exit to exit.

use super::blocks::{SlotMove, close_gaps, move_slots};
use super::rule::{EarlyExit, ExitLimit, ExitScope, key_of};
use super::scorer::{ExitScorer, KeptValues};
use crate::family::RowValues;
use crate::family::trees::BLOCK;
use crate::model::Combine;
use planetree_base::error::Result;
use planetree_base::storage::interrupt;
use rayon::prelude::*;

/// Documents while they are scored. Several groups of whole queries are compared if the exits are pooled.
pub struct ExitRows<'a> {
    scorer: &'a ExitScorer,
    groups: Vec<ExitGroup>,
    /// Number of segments that were evaluated.
    segments: usize,
    /// Keys of all documents, while documents exit.
    keys: Vec<u64>,
}

/// The documents of some queries.
pub(super) struct ExitGroup {
    /// Values of the documents that have not exited.
    kept: KeptValues,
    /// The document of each slot of the kept values, or [`VACANT`]. Documents are in no particular order after an exit.
    slots: Vec<u32>,
    /// Sums of the trees' values, by slot. Those of vacant slots have no meaning.
    sums: Vec<[f64; BLOCK]>,
    /// Keys of the scores while documents exit: by slot if exits are pooled, otherwise by row. Those of vacant slots have
    /// no meaning.
    keys: Vec<u64>,
    /// Documents that moved to another slot at the last exit.
    moves: Vec<SlotMove>,
    /// Number of trees that were evaluated for the documents in the slots.
    trees: u32,
    /// Rows at which queries begin, followed by the number of rows.
    bounds: Vec<usize>,
    /// Base scores of the documents, by row. Empty if they are part of the sums.
    bases: Vec<f64>,
    /// Whether each document has exited, with its score and the number of its trees.
    has_exited: Vec<bool>,
    exit_scores: Vec<f64>,
    exit_trees: Vec<u32>,
}

/// A slot without a document.
const VACANT: u32 = u32::MAX;

impl ExitGroup {
    /// Creates a group of queries, without the values of their documents.
    pub(super) fn new(scorer: &ExitScorer, bounds: Vec<usize>) -> Self {
        let rows = bounds.last().copied().unwrap_or(0);
        let slots = rows.next_multiple_of(BLOCK);
        ExitGroup {
            kept: scorer.empty(rows),
            slots: Vec::with_capacity(slots),
            sums: Vec::with_capacity(slots / BLOCK),
            keys: Vec::new(),
            moves: Vec::new(),
            trees: 0,
            bounds,
            bases: if scorer.combine == Combine::Sum { Vec::new() } else { vec![0.0; rows] },
            has_exited: vec![false; rows],
            exit_scores: vec![0.0; rows],
            exit_trees: vec![0; rows],
        }
    }

    /// Adds the values of `count` documents, the first of which is `first`.
    pub(super) fn append(&mut self, scorer: &ExitScorer, first: usize, count: usize, values: RowValues<'_>) {
        for start in (0..count).step_by(BLOCK) {
            let rows = BLOCK.min(count - start);
            let values = values.skip(start);
            scorer.append(&mut self.kept, values, rows);
            let row = first + start;
            self.slots.extend(row as u32..(row + rows) as u32);
            self.slots.resize(self.slots.len() + BLOCK - rows, VACANT);
            let mut bases = [scorer.base_score; BLOCK];
            if let Some((feature, fill)) = scorer.base_feature {
                for (row, base) in bases[..rows].iter_mut().enumerate() {
                    let value = values.value(row, feature);
                    *base += f64::from(if value.is_nan() { fill } else { value });
                }
            }
            if scorer.combine == Combine::Sum {
                self.sums.push(bases);
            } else {
                self.sums.push([0.0; BLOCK]);
                self.bases[row..row + rows].copy_from_slice(&bases[..rows]);
            }
        }
    }

    /// Evaluates the trees of a segment for all documents that have not exited.
    fn evaluate(&mut self, scorer: &ExitScorer, segment: usize) {
        scorer.add(segment, &self.kept, &mut self.sums);
        self.trees = scorer.ends[segment];
    }

    /// Returns the slots with their documents.
    fn occupied(&self) -> impl Iterator<Item = (usize, usize)> {
        let occupied = self.slots.iter().enumerate().filter(|(_, row)| **row != VACANT);
        occupied.map(|(slot, row)| (slot, *row as usize))
    }

    /// Returns the score of the document in a slot.
    fn score(&self, combine: Combine, (slot, row): (usize, usize)) -> f64 {
        let sum = self.sums.as_flattened()[slot];
        match combine {
            Combine::Sum => sum,
            Combine::Mean | Combine::Wins => self.bases[row] + sum / f64::from(self.trees.max(1)),
        }
    }

    /// Returns the scores of all documents, by row.
    fn scores(&self, combine: Combine) -> Vec<f64> {
        let mut scores = self.exit_scores.clone();
        self.occupied().for_each(|place| scores[place.1] = self.score(combine, place));
        scores
    }

    /// Lets the lowest documents of each query exit.
    fn exit_by_query(&mut self, combine: Combine, rule: &EarlyExit) {
        self.keys.resize(self.has_exited.len(), 0);
        let mut by_row = std::mem::take(&mut self.keys);
        self.occupied().for_each(|place| by_row[place.1] = key_of(self.score(combine, place)));
        let (mut documents, mut keys) = (Vec::new(), Vec::new());
        for query in 0..self.bounds.len().saturating_sub(1) {
            let rows = self.bounds[query]..self.bounds[query + 1];
            let all = rows.len();
            documents.clear();
            documents.extend(rows.filter(|row| !self.has_exited[*row]));
            keys.clear();
            keys.extend(documents.iter().map(|row| by_row[*row]));
            let exits = rule.count(documents.len(), all);
            let Some(limit) = ExitLimit::of(&mut keys, exits) else { continue };
            let mut ties = limit.ties;
            for row in documents.iter().rev() {
                let is_tie = by_row[*row] == limit.key && ties > 0;
                ties -= usize::from(is_tie);
                self.has_exited[*row] |= is_tie || by_row[*row] < limit.key;
            }
        }
        self.keys = by_row;
    }

    /// Computes the key of every slot.
    fn find_keys(&mut self, combine: Combine) {
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        keys.extend(self.slots.iter().enumerate().map(|(slot, row)| match *row {
            VACANT => u64::MAX,
            row => key_of(self.score(combine, (slot, row as usize))),
        }));
        self.keys = keys;
    }

    /// Lets the documents below a limit exit, given the key of every slot. Returns the documents at the limit, in
    /// ascending order.
    fn exit_below(&mut self, limit: ExitLimit) -> Vec<u32> {
        let mut ties = Vec::new();
        for (key, row) in self.keys.iter().zip(&self.slots).filter(|(_, row)| **row != VACANT) {
            self.has_exited[*row as usize] = *key < limit.key;
            if *key == limit.key {
                ties.push(*row);
            }
        }
        ties.sort_unstable();
        ties
    }

    /// Keeps the scores of documents that have exited, and forgets their values.
    fn compact(&mut self, combine: Combine) {
        for slot in 0..self.slots.len() {
            let row = self.slots[slot] as usize;
            if self.has_exited.get(row).is_some_and(|has_exited| *has_exited) {
                self.exit_scores[row] = self.score(combine, (slot, row));
                self.exit_trees[row] = self.trees;
            }
        }
        let (has_exited, moves) = (&self.has_exited, &mut self.moves);
        close_gaps(&mut self.slots, moves, |row| row == VACANT || has_exited[row as usize]);
        match &mut self.kept {
            KeptValues::Codes(codes) => codes.compact(moves, self.slots.len()),
            KeptValues::Values(values) => values.compact(moves, self.slots.len()),
        }
        move_slots(self.sums.as_flattened_mut(), moves);
        self.sums.truncate(self.slots.len().div_ceil(BLOCK));
    }
}

impl<'a> ExitRows<'a> {
    pub(super) fn new(scorer: &'a ExitScorer, groups: Vec<ExitGroup>) -> Self {
        ExitRows { scorer, groups, segments: 0, keys: Vec::new() }
    }

    /// Evaluates the trees up to the next exit. Returns `false` if there are none left.
    pub fn advance(&mut self) -> Result<bool> {
        interrupt::check()?;
        let (scorer, segment) = (self.scorer, self.segments);
        if segment == scorer.ends.len() {
            return Ok(false);
        }
        self.groups.par_iter_mut().for_each(|group| group.evaluate(scorer, segment));
        self.segments += 1;
        Ok(true)
    }

    /// Lets documents exit, unless all trees were evaluated.
    pub fn exit(&mut self) {
        let (rule, combine) = (self.scorer.rule, self.scorer.combine);
        if self.segments == self.scorer.ends.len() {
            return;
        }
        match rule.scope {
            ExitScope::Query => {
                self.groups.par_iter_mut().for_each(|group| group.exit_by_query(combine, &rule))
            }
            ExitScope::Pooled => self.exit_pooled(combine, &rule),
        }
        self.groups.par_iter_mut().for_each(|group| group.compact(combine));
    }

    /// Lets the lowest documents of all groups exit.
    fn exit_pooled(&mut self, combine: Combine, rule: &EarlyExit) {
        self.groups.par_iter_mut().for_each(|group| group.find_keys(combine));
        self.keys.clear();
        for group in &self.groups {
            self.keys.extend(group.occupied().map(|(slot, _)| group.keys[slot]));
        }
        let rows = self.groups.iter().map(|group| group.has_exited.len()).sum();
        let exits = rule.count(self.keys.len(), rows);
        let Some(limit) = ExitLimit::of(&mut self.keys, exits) else { return };
        let at_limit: Vec<Vec<u32>> =
            self.groups.par_iter_mut().map(|group| group.exit_below(limit)).collect();
        let mut ties = limit.ties;
        for (group, rows) in self.groups.iter_mut().zip(&at_limit).rev() {
            let exits = ties.min(rows.len());
            ties -= exits;
            rows[rows.len() - exits..].iter().for_each(|row| group.has_exited[*row as usize] = true);
        }
    }

    /// Evaluates all trees, with exits.
    pub fn finish(&mut self) -> Result<()> {
        while self.advance()? {
            self.exit();
        }
        Ok(())
    }

    /// Returns the number of trees so far.
    pub fn trees(&self) -> u32 {
        self.segments.checked_sub(1).map_or(0, |last| self.scorer.ends[last])
    }

    /// Returns the number of documents that have not exited.
    pub fn left(&self) -> usize {
        self.groups.iter().map(|group| group.occupied().count()).sum()
    }

    /// Returns the scores of the documents of each group.
    pub fn scores(&self) -> Vec<Vec<f64>> {
        self.groups.par_iter().map(|group| group.scores(self.scorer.combine)).collect()
    }

    /// Returns the number of trees that were evaluated for each document, group by group.
    pub fn evaluated(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().flat_map(|group| {
            let exits = group.has_exited.iter().zip(&group.exit_trees);
            exits.map(|(has_exited, trees)| if *has_exited { *trees } else { group.trees })
        })
    }
}
