//! Scores documents from exit to exit.

use super::blocks::close_gaps;
use super::rule::{EarlyExit, ExitScope, lowest};
use super::scorer::{ExitScorer, KeptValues};
use crate::family::RowValues;
use crate::family::trees::BLOCK;
use crate::model::Combine;
use planetree_base::error::Result;
use planetree_base::storage::interrupt;
use rayon::prelude::*;
use std::ops::Range;

/// Documents while they are scored. Several groups of whole queries are compared if the exits are pooled.
pub struct ExitRows<'a> {
    scorer: &'a ExitScorer,
    groups: Vec<ExitGroup>,
    /// Number of segments that were evaluated.
    segments: usize,
}

/// The documents of some queries.
pub(super) struct ExitGroup {
    /// Values of the documents that have not exited.
    kept: KeptValues,
    /// The document of each slot of the kept values, or [`VACANT`]. Documents are in no particular order after an exit.
    slots: Vec<u32>,
    /// Rows at which queries begin, followed by the number of rows.
    bounds: Vec<usize>,
    bases: Vec<f64>,
    /// Sums of the trees' values.
    sums: Vec<f64>,
    /// Number of trees that were evaluated for each document.
    trees: Vec<u32>,
    /// Whether each document has exited.
    has_exited: Vec<bool>,
}

/// A slot without a document.
const VACANT: u32 = u32::MAX;

impl ExitGroup {
    /// Creates a group of queries, without the values of their documents.
    pub(super) fn new(scorer: &ExitScorer, bounds: Vec<usize>) -> Self {
        let rows = bounds.last().copied().unwrap_or(0);
        ExitGroup {
            kept: scorer.empty(rows),
            slots: Vec::with_capacity(rows.next_multiple_of(BLOCK)),
            bounds,
            bases: vec![scorer.base_score; rows],
            sums: vec![0.0; rows],
            trees: vec![0; rows],
            has_exited: vec![false; rows],
        }
    }

    /// Adds the values of `count` documents, the first of which is `first`.
    pub(super) fn append(&mut self, scorer: &ExitScorer, first: usize, count: usize, values: RowValues<'_>) {
        for start in (0..count).step_by(BLOCK) {
            let rows = BLOCK.min(count - start);
            scorer.append(&mut self.kept, values.skip(start), rows);
            let row = first + start;
            self.slots.extend(row as u32..(row + rows) as u32);
            self.slots.resize(self.slots.len() + BLOCK - rows, VACANT);
        }
        if let Some((feature, fill)) = scorer.base_feature {
            for (row, base) in self.bases[first..first + count].iter_mut().enumerate() {
                let value = values.value(row, feature);
                *base += f64::from(if value.is_nan() { fill } else { value });
            }
        }
        if scorer.combine == Combine::Sum {
            self.sums[first..first + count].copy_from_slice(&self.bases[first..first + count]);
        }
    }

    /// Evaluates the trees of a segment for all documents that have not exited.
    fn evaluate(&mut self, scorer: &ExitScorer, segment: usize) {
        let mut sums = vec![[0.0; BLOCK]; self.slots.len().div_ceil(BLOCK)];
        for (sum, row) in sums.as_flattened_mut().iter_mut().zip(&self.slots) {
            *sum = self.sums.get(*row as usize).copied().unwrap_or(0.0); // nobody has no sum
        }
        scorer.add(segment, &self.kept, &mut sums);
        for (sum, row) in sums.as_flattened().iter().zip(&self.slots).filter(|(_, row)| **row != VACANT) {
            (self.sums[*row as usize], self.trees[*row as usize]) = (*sum, scorer.ends[segment]);
        }
    }

    fn score(&self, combine: Combine, row: usize) -> f64 {
        match combine {
            Combine::Sum => self.sums[row],
            Combine::Mean | Combine::Wins => {
                self.bases[row] + self.sums[row] / f64::from(self.trees[row].max(1))
            }
        }
    }

    /// Returns the documents among `rows` that have not exited, with their scores.
    fn active(&self, combine: Combine, rows: Range<usize>) -> impl Iterator<Item = (f64, u32)> {
        rows.filter(|row| !self.has_exited[*row]).map(move |row| (self.score(combine, row), row as u32))
    }

    /// Lets the lowest documents of each query exit.
    fn exit_by_query(&mut self, combine: Combine, rule: &EarlyExit) {
        let mut documents = Vec::new();
        for query in 0..self.bounds.len().saturating_sub(1) {
            let rows = self.bounds[query]..self.bounds[query + 1];
            let all = rows.len();
            documents.clear();
            documents.extend(self.active(combine, rows));
            let exits = rule.count(documents.len(), all);
            lowest(&mut documents, exits).iter().for_each(|(_, row)| self.has_exited[*row as usize] = true);
        }
    }

    /// Forgets the values of documents that have exited.
    fn compact(&mut self) {
        let has_exited = &self.has_exited;
        let moves = close_gaps(&mut self.slots, |row| row == VACANT || has_exited[row as usize]);
        match &mut self.kept {
            KeptValues::Codes(codes) => codes.compact(&moves, self.slots.len()),
            KeptValues::Values(values) => values.compact(&moves, self.slots.len()),
        }
    }
}

impl<'a> ExitRows<'a> {
    pub(super) fn new(scorer: &'a ExitScorer, groups: Vec<ExitGroup>) -> Self {
        ExitRows { scorer, groups, segments: 0 }
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
            ExitScope::Pooled => {
                let mut documents: Vec<(f64, (usize, u32))> = Vec::with_capacity(self.left());
                for (number, group) in self.groups.iter().enumerate() {
                    let rows = group.active(combine, 0..group.sums.len());
                    documents.extend(rows.map(|(score, row)| (score, (number, row))));
                }
                let all = self.groups.iter().map(|group| group.sums.len()).sum();
                let exits = rule.count(documents.len(), all);
                for (_, (number, row)) in lowest(&mut documents, exits) {
                    self.groups[*number].has_exited[*row as usize] = true;
                }
            }
        }
        self.groups.par_iter_mut().for_each(ExitGroup::compact);
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
        let of_group = |group: &ExitGroup| group.slots.iter().filter(|row| **row != VACANT).count();
        self.groups.iter().map(of_group).sum()
    }

    /// Returns the scores of the documents of each group.
    pub fn scores(&self) -> Vec<Vec<f64>> {
        let combine = self.scorer.combine;
        let of_group =
            |group: &ExitGroup| (0..group.sums.len()).map(|row| group.score(combine, row)).collect();
        self.groups.par_iter().map(of_group).collect()
    }

    /// Returns the number of trees that were evaluated for each document, group by group.
    pub fn evaluated(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().flat_map(|group| group.trees.iter().copied())
    }
}
