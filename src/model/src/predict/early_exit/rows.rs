//! Scores documents from exit to exit.

use super::rule::{EarlyExit, ExitScope, lowest};
use crate::cost::TreeCosts;
use crate::family::trees::TreeScorer;
use crate::family::{Family, ModelFeature};
use crate::model::{Combine, Model, TreeEnsemble};
use arrow::array::{Array, Float32Array, UInt32Array};
use arrow::compute::take;
use fearless_simd::Level;
use planetree_base::error::{Error, Result};
use rayon::prelude::*;

/// A model prepared for scoring with early exits: its trees, divided into segments that end with an exit.
#[derive(Debug)]
pub struct ExitScorer {
    rule: EarlyExit,
    combine: Combine,
    base_score: f64,
    base_feature: Option<(usize, f32)>,
    segments: Vec<Segment>,
}

/// Trees between two exits.
#[derive(Debug)]
struct Segment {
    scorer: TreeScorer,
    /// Features that the trees use.
    features: Vec<usize>,
    /// Number of trees of this and all earlier segments.
    end: u32,
}

impl ExitScorer {
    /// Prepares a model, which must be a single ensemble of trees that score documents one by one.
    pub fn new(model: &Model, rule: EarlyExit) -> Result<Self> {
        rule.check()?;
        let ensemble = TreeCosts::ensemble(model)?;
        let chunks = ensemble.trees.chunks(rule.every as usize).scan(0, |end, trees| {
            *end += trees.len() as u32;
            let part =
                TreeEnsemble { trees: trees.to_vec(), base_score: 0.0, base_feature: None, ..*ensemble };
            Some((part, *end))
        });
        let segments = chunks.map(|(part, end)| Segment {
            scorer: TreeScorer::new(&part, &model.features, Level::new()),
            features: part.used_features().into_iter().map(|feature| feature as usize).collect(),
            end,
        });
        let fill = |feature: &ModelFeature| feature.fill.unwrap_or(0.0);
        Ok(ExitScorer {
            rule,
            combine: ensemble.combine,
            base_score: ensemble.base_score,
            base_feature: ensemble
                .base_feature
                .map(|feature| (feature as usize, model.features.get(feature as usize).map_or(0.0, fill))),
            segments: segments.collect(),
        })
    }

    /// Returns when documents exit.
    pub fn rule(&self) -> EarlyExit {
        self.rule
    }
}

/// Documents while they are scored. Several groups of whole queries are compared if the exits are pooled.
pub struct ExitRows<'a> {
    scorer: &'a ExitScorer,
    groups: Vec<ExitGroup>,
    /// Number of segments that were evaluated.
    segments: usize,
}

/// The documents of some queries.
pub(super) struct ExitGroup {
    columns: Vec<Option<Float32Array>>,
    /// Rows at which queries begin, followed by the number of rows.
    bounds: Vec<usize>,
    bases: Vec<f64>,
    /// Sums of the trees' values.
    sums: Vec<f64>,
    /// Number of trees that were evaluated for each document.
    trees: Vec<u32>,
    /// Documents that have not exited, in ascending order.
    active: Vec<u32>,
}

impl ExitGroup {
    /// Prepares documents. `columns` has one entry per feature of the model.
    pub(super) fn new(scorer: &ExitScorer, columns: Vec<Option<Float32Array>>, bounds: Vec<usize>) -> Self {
        let rows = bounds.last().copied().unwrap_or(0);
        let mut bases = vec![scorer.base_score; rows];
        if let Some((feature, fill)) = scorer.base_feature {
            let column = columns.get(feature).and_then(Option::as_ref);
            for (row, base) in bases.iter_mut().enumerate() {
                let value = column.filter(|column| column.is_valid(row)).map(|column| column.value(row));
                *base += f64::from(value.filter(|value| !value.is_nan()).unwrap_or(fill));
            }
        }
        ExitGroup {
            sums: if scorer.combine == Combine::Sum { bases.clone() } else { vec![0.0; rows] },
            bases,
            columns,
            bounds,
            trees: vec![0; rows],
            active: (0..rows as u32).collect(),
        }
    }

    /// Evaluates the trees of a segment for all documents that have not exited.
    fn evaluate(&mut self, segment: &Segment) -> Result<()> {
        let rows = UInt32Array::from(self.active.clone());
        let is_whole = self.active.len() == self.sums.len();
        let mut columns: Vec<Option<Float32Array>> = vec![None; self.columns.len()];
        for feature in &segment.features {
            columns[*feature] = match self.columns.get(*feature).and_then(Option::as_ref) {
                Some(column) if is_whole => Some(column.clone()),
                Some(column) => {
                    let taken = take(column, &rows, None)
                        .map_err(|error| Error::bug("early exit", &error).caused_by(error))?;
                    Some(Float32Array::from(taken.to_data()))
                }
                None => None,
            };
        }
        let columns: Vec<Option<&Float32Array>> = columns.iter().map(Option::as_ref).collect();
        let mut sums: Vec<f64> = self.active.iter().map(|row| self.sums[*row as usize]).collect();
        segment.scorer.add_to(&columns, &mut sums);
        for (row, sum) in self.active.iter().zip(sums) {
            (self.sums[*row as usize], self.trees[*row as usize]) = (sum, segment.end);
        }
        Ok(())
    }

    fn score(&self, combine: Combine, row: usize) -> f64 {
        match combine {
            Combine::Sum => self.sums[row],
            Combine::Mean | Combine::Wins => {
                self.bases[row] + self.sums[row] / f64::from(self.trees[row].max(1))
            }
        }
    }

    /// Lets the lowest documents of each query exit.
    fn exit_by_query(&mut self, combine: Combine, rule: &EarlyExit) {
        let mut active = std::mem::take(&mut self.active).into_iter().peekable();
        let mut left = Vec::new();
        for query in self.bounds.windows(2) {
            let mut documents = Vec::new();
            while let Some(row) = active.next_if(|row| (*row as usize) < query[1]) {
                documents.push((self.score(combine, row as usize), row));
            }
            let exits = rule.count(documents.len(), query[1] - query[0]);
            lowest(&mut documents, exits);
            let mut rows: Vec<u32> = documents[exits..].iter().map(|(_, row)| *row).collect();
            rows.sort_unstable();
            left.extend(rows);
        }
        self.active = left;
    }
}

impl<'a> ExitRows<'a> {
    pub(super) fn new(scorer: &'a ExitScorer, groups: Vec<ExitGroup>) -> Self {
        ExitRows { scorer, groups, segments: 0 }
    }

    /// Evaluates the trees up to the next exit. Returns `false` if there are none left.
    pub fn advance(&mut self) -> Result<bool> {
        let Some(segment) = self.scorer.segments.get(self.segments) else { return Ok(false) };
        self.groups.par_iter_mut().try_for_each(|group| group.evaluate(segment))?;
        self.segments += 1;
        Ok(true)
    }

    /// Lets documents exit, unless all trees were evaluated.
    pub fn exit(&mut self) {
        let (rule, combine) = (self.scorer.rule, self.scorer.combine);
        if self.segments == self.scorer.segments.len() {
            return;
        }
        if rule.scope == ExitScope::Query {
            self.groups.par_iter_mut().for_each(|group| group.exit_by_query(combine, &rule));
            return;
        }
        let mut documents: Vec<(f64, (usize, u32))> = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let rows = group.active.iter().map(|row| (group.score(combine, *row as usize), (number, *row)));
            documents.extend(rows);
        }
        let all = self.groups.iter().map(|group| group.sums.len()).sum();
        let exits = rule.count(documents.len(), all);
        lowest(&mut documents, exits);
        let mut left: Vec<(usize, u32)> = documents[exits..].iter().map(|(_, place)| *place).collect();
        left.sort_unstable();
        self.groups.iter_mut().for_each(|group| group.active.clear());
        left.into_iter().for_each(|(number, row)| self.groups[number].active.push(row));
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
        self.segments.checked_sub(1).map_or(0, |last| self.scorer.segments[last].end)
    }

    /// Returns the number of documents that have not exited.
    pub fn left(&self) -> usize {
        self.groups.iter().map(|group| group.active.len()).sum()
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
