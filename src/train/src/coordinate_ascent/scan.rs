//! Evaluates many weights of one feature for one query.
//!
//! The scores are linear in the weight, so two documents change their order at most once while the weight grows. Beginning
//! with the order at the current weight, the order at every further weight is repaired by insertion, first upwards, then
//! downwards. If neither the order nor the ties changed, neither did the metric.

use crate::linear::{QueryPlace, RankedDocuments, RankingRows};
use planetree_metric::RankBuffers;

/// Buffers of a scan, reused from query to query.
#[derive(Default)]
pub(super) struct ScanBuffers {
    /// The normalised values of the feature.
    column: Vec<f64>,
    /// The scores without the feature.
    rest: Vec<f64>,
    scores: Vec<f64>,
    order: Vec<u32>,
    /// The end indices of the runs of equal scores in the order, and those at the weight before.
    ends: Vec<u32>,
    ends_before: Vec<u32>,
    labels: Vec<f32>,
    rank: RankBuffers,
}

/// A line search: the weights of a feature to evaluate.
pub(super) struct Line<'a> {
    /// Number of the feature in the plan.
    pub feature: usize,
    /// The current weight.
    pub weight: f64,
    /// The weights to evaluate.
    pub trials: &'a [f64],
    /// Numbers of the trials from the current weight upwards, then of those from it downwards.
    sides: [Vec<usize>; 2],
}

impl<'a> Line<'a> {
    /// Creates a line search.
    pub(super) fn new(feature: usize, weight: f64, trials: &'a [f64]) -> Self {
        let (mut up, mut down): (Vec<usize>, Vec<usize>) =
            (0..trials.len()).partition(|trial| trials[*trial] >= weight);
        up.sort_by(|one, other| trials[*one].total_cmp(&trials[*other]));
        down.sort_by(|one, other| trials[*other].total_cmp(&trials[*one]));
        Line { feature, weight, trials, sides: [up, down] }
    }
}

impl ScanBuffers {
    /// Passes the number of each trial and the value of the metric to `add`. Returns false if the query does not count.
    pub(super) fn scan(
        &mut self,
        rows: &RankingRows<'_>,
        query: &QueryPlace,
        ranked: &RankedDocuments,
        line: &Line<'_>,
        add: &mut dyn FnMut(usize, f64),
    ) -> bool {
        rows.column(query, line.feature, &mut self.column);
        let terms = ranked.scores.iter().zip(&self.column);
        self.rest.clear();
        self.rest.extend(terms.map(|(score, value)| score - line.weight * value));
        let is_constant = self.column.iter().all(|value| *value == self.column[0]);
        let by_order = rows.metric(query).is_of_order();
        for side in &line.sides {
            self.order.clone_from(&ranked.order);
            let mut last: Option<f64> = None;
            for &trial in side {
                self.set_scores(line.trials[trial]);
                let value = match last {
                    Some(value) if is_constant => value,
                    _ if !by_order => match self.value_of_scores(rows, query) {
                        Some(value) => value,
                        None => return false,
                    },
                    _ => match (self.repair(), last) {
                        (false, Some(value)) => value,
                        _ => match self.value_of_order(rows, query) {
                            Some(value) => value,
                            None => return false,
                        },
                    },
                };
                last = Some(value);
                add(trial, value);
            }
        }
        true
    }

    fn set_scores(&mut self, weight: f64) {
        let terms = self.rest.iter().zip(&self.column);
        self.scores.clear();
        self.scores.extend(terms.map(|(rest, value)| rest + weight * value));
    }

    /// Sorts the documents by score. Documents with equal scores are in input order. Returns whether any was moved, or is
    /// tied with others than before.
    fn repair(&mut self) -> bool {
        let mut has_moved = false;
        for end in 1..self.order.len() {
            let document = self.order[end];
            let score = self.scores[document as usize];
            let mut place = end;
            while place > 0 {
                let before = self.order[place - 1];
                let other = self.scores[before as usize];
                if other > score || (other == score && before < document) {
                    break;
                }
                self.order[place] = before;
                place -= 1;
            }
            self.order[place] = document;
            has_moved |= place != end;
        }
        std::mem::swap(&mut self.ends, &mut self.ends_before);
        let (order, scores) = (&self.order, &self.scores);
        let is_end = |end: &usize| {
            order.get(*end).is_none_or(|next| scores[*next as usize] != scores[order[*end - 1] as usize])
        };
        self.ends.clear();
        self.ends.extend((1..=order.len()).filter(is_end).map(|end| end as u32));
        has_moved || self.ends != self.ends_before
    }

    fn value_of_order(&mut self, rows: &RankingRows<'_>, query: &QueryPlace) -> Option<f64> {
        let labels = rows.labels(query);
        self.labels.clear();
        self.labels.extend(self.order.iter().map(|document| labels[*document as usize]));
        rows.metric(query).of_order(query.number, &self.labels, &self.ends)
    }

    fn value_of_scores(&mut self, rows: &RankingRows<'_>, query: &QueryPlace) -> Option<f64> {
        rows.metric(query).of_query(query.number, rows.labels(query), &self.scores, &mut self.rank)
    }
}
