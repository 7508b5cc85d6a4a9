//! Keeps the current score of every document, for metrics that are evaluated list by list.

use super::list_measure::worth_of_scores;
use super::rest::Rest;
use planetree_metric::Judge;
use std::ops::Range;

/// The current scores of the documents of a partition.
pub(super) struct ListScores {
    /// Score of each row of the partition. Rows outside the lists have the score 0.
    scores: Vec<f64>,
    /// Rows of each list.
    lists: Vec<Range<usize>>,
    judge: Judge,
}

impl ListScores {
    /// Creates the scores of a partition without lists.
    pub(super) fn new(rows: usize, judge: Judge) -> Self {
        ListScores { scores: vec![0.0; rows], lists: Vec::new(), judge }
    }

    /// Returns the evaluator of single lists.
    pub(super) fn judge(&mut self) -> &mut Judge {
        &mut self.judge
    }

    /// Adds a list, given its rows.
    pub(super) fn add_list(&mut self, rows: Range<usize>) {
        self.lists.push(rows);
    }

    /// Returns the rows of a list.
    pub(super) fn rows(&self, list: u32) -> Range<usize> {
        self.lists[list as usize].clone()
    }

    /// Returns the current scores of a list.
    pub(super) fn of_list(&self, list: u32) -> &[f64] {
        &self.scores[self.rows(list)]
    }

    /// Sets the score of a row.
    pub(super) fn set(&mut self, row: u32, score: f64) {
        self.scores[row as usize] = score;
    }

    /// Returns the worth of a list. `labels` has those of all rows of the partition.
    pub(super) fn worth(&mut self, list: u32, labels: &[f32], factor: f64) -> i64 {
        let rows = self.rows(list);
        worth_of_scores(&mut self.judge, &labels[rows.clone()], &self.scores[rows], factor)
    }
}

/// One list while the documents of a node are placed at other scores.
pub(super) struct PlacedList<'a> {
    /// The ties of the other documents, which bound the scores that leave the ranking as it is.
    pub rest: &'a mut Rest,
    /// Evaluator of single lists.
    pub judge: &'a mut Judge,
    /// Labels of the list.
    pub labels: &'a [f32],
    /// Scores of the list, which are overwritten for the documents of the node.
    pub scores: &'a mut [f64],
    /// The documents of the node in the order in which cuts move them to the left. The low bits hold their indices in
    /// the list.
    pub own: &'a [u64],
    /// Factor that converts the metric to worth.
    pub factor: f64,
}

impl PlacedList<'_> {
    /// Returns the worth of the list if the first `left` documents of the node have one score and the others another.
    pub(super) fn worth(&mut self, left: u32, left_score: f64, right_score: f64) -> i64 {
        for (place, own) in (0..).zip(self.own) {
            let score = if place < left { left_score } else { right_score };
            self.scores[*own as u32 as usize] = score;
        }
        worth_of_scores(self.judge, self.labels, self.scores, self.factor)
    }
}
