//! Computes out-of-bag scores: predictions for each row by the trees that were not trained on it. They serve as a
//! validation set without holding out rows.

use super::route::ForestRouter;
use super::view::{CodeLanes, PartitionView};
use super::{sample, wins_of};
use crate::bins::BinnedData;
use crate::config::ForestSettings;
use crate::driver::ForestTree;
use crate::driver::{Metrics, Scores, ValidationSet};
use planetree_base::error::Result;
use planetree_data::source::LabelledRows;
use planetree_metric::{Mean, Metric, evaluate};
use rayon::prelude::*;
use std::sync::Arc;

/// Out-of-bag scores of all rows.
pub(super) struct OutOfBag {
    partitions: Vec<PartitionScores>,
    metrics: Metrics,
    /// The documents, which are scored instead of the training rows if trees are trained on pairs of documents;
    /// otherwise `None`.
    documents: Option<ValidationSet>,
}

/// Scores of the rows in one partition.
struct PartitionScores {
    sums: Vec<f64>,
    trees: Vec<u32>,
}

impl PartitionScores {
    fn add(&mut self, row: usize, value: f64) {
        self.sums[row] += value;
        self.trees[row] += 1;
    }
}

/// Returns the rows of a partition that were not sampled, as indices within the partition.
fn out_of_bag<'a>(drawn: &'a [u32], rows: &LabelledRows) -> impl Iterator<Item = usize> + use<'a> {
    let (first, count) = (rows.first as u32, rows.len() as u32);
    let mut seen = drawn[drawn.partition_point(|row| *row < first)..].iter().copied().peekable();
    (0..count)
        .filter(move |row| {
            let mut is_outside = true;
            while seen.next_if_eq(&(first + row)).is_some() {
                is_outside = false;
            }
            is_outside
        })
        .map(|row| row as usize)
}

impl OutOfBag {
    /// Creates empty scores. `documents` contains the documents to score if trees are trained on pairs of documents.
    pub(super) fn new(
        parameters: &ForestSettings,
        rows: &[LabelledRows],
        documents: Option<ValidationSet>,
    ) -> Result<Self> {
        let rows = documents.as_ref().map_or(rows, ValidationSet::rows);
        let part =
            |rows: &LabelledRows| PartitionScores { sums: vec![0.0; rows.len()], trees: vec![0; rows.len()] };
        let partitions = rows.iter().map(part).collect();
        Ok(OutOfBag { partitions, metrics: Metrics::new(parameters, rows)?, documents })
    }

    /// Adds the predictions of a tree for the rows that are not in its sample.
    pub(super) fn add(
        &mut self,
        tree: u64,
        grown: &ForestTree,
        parameters: &ForestSettings,
        data: &BinnedData,
    ) -> Result<()> {
        let rows = self.documents.as_ref().map_or(&data.rows[..], ValidationSet::rows);
        let drawn = sample::draw(parameters, rows, tree);
        if let Some(documents) = &self.documents {
            let values = wins_of(documents, &grown.to_model())?;
            for ((part, rows), partition) in self.partitions.iter_mut().zip(rows).zip(0..) {
                out_of_bag(&drawn, rows).for_each(|row| part.add(row, values.partition(partition)[row]));
            }
            return Ok(());
        }
        let lanes = CodeLanes::of(&data.binning.layout);
        let router = ForestRouter::new(grown, &data.binning, &lanes);
        self.partitions.par_iter_mut().enumerate().try_for_each(|(partition, part)| {
            let codes = data.all_codes(partition)?;
            let view = PartitionView::of(data, partition, &codes, &lanes);
            let rows = out_of_bag(&drawn, &data.rows[partition]).map(|row| view.first + row as u32);
            router.each_value(&view, &rows.collect::<Vec<_>>(), |row, value| {
                part.add((row - view.first) as usize, value);
            });
            Ok(())
        })
    }

    /// Returns the rows that are scored.
    pub(super) fn rows<'a>(&'a self, data: &'a BinnedData) -> &'a [LabelledRows] {
        self.documents.as_ref().map_or(&data.rows, ValidationSet::rows)
    }

    /// Returns the scores of all rows, in order; NaN for rows that every tree was trained on.
    pub(super) fn scores(&self) -> Vec<f64> {
        let score = |(sum, trees): (&f64, &u32)| if *trees > 0 { sum / f64::from(*trees) } else { f64::NAN };
        self.partitions.iter().flat_map(|part| part.sums.iter().zip(&part.trees).map(score)).collect()
    }

    /// Returns the metrics over the queries in which all rows have a score.
    pub(super) fn evaluate(&self, parameters: &ForestSettings, rows: &[LabelledRows]) -> Result<Vec<Mean>> {
        let scores = self.scores();
        if !scores.iter().any(|score| score.is_nan()) {
            return Ok(self.metrics.evaluate(rows, &Scores::given(rows, &scores)));
        }
        let convention = Arc::new(parameters.convention.clone());
        let mut means: Vec<Mean> = parameters.metrics.iter().map(|metric| Mean::new(*metric)).collect();
        let parts = rows.par_iter().map(|rows| {
            let scores = &scores[rows.first as usize..][..rows.len()];
            let (mut labels, mut known, mut bounds) = (Vec::new(), Vec::new(), vec![0u32]);
            for query in
                rows.queries().filter(|query| !scores[query.clone()].iter().any(|score| score.is_nan()))
            {
                labels.extend_from_slice(&rows.labels[query.clone()]);
                known.extend_from_slice(&scores[query]);
                bounds.push(labels.len() as u32);
            }
            let prepare = |metric: &Metric| metric.prepare_under(&convention, &labels, &bounds);
            let prepared = parameters.metrics.iter().map(prepare).collect::<Result<Vec<_>>>()?;
            Ok(evaluate(&prepared, &labels, &known, &bounds))
        });
        for part in parts.collect::<Result<Vec<_>>>()? {
            means.iter_mut().zip(&part).for_each(|(mean, part)| mean.merge(part));
        }
        Ok(means)
    }
}
