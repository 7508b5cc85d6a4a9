//! Out of bag: what the trees that did not see a row say of it. It is as good as a validation set, and takes no
//! rows away from the training.

use super::route::Router;
use super::view::{Lanes, View};
use super::{sample, wins_of};
use crate::bins::BinnedData;
use crate::config::Parameters;
use crate::driver::ForestTree;
use crate::driver::{Metrics, Scores, ValidationSet};
use planetree_base::error::Result;
use planetree_data::source::Rows;
use planetree_metric::{Mean, Metric, evaluate};
use rayon::prelude::*;
use std::sync::Arc;

/// The rows' scores by trees that did not see them.
pub struct Outside {
    partitions: Vec<Part>,
    metrics: Metrics,
    /// The single documents, when trees learn from pairs.
    documents: Option<ValidationSet>,
}

/// Of one partition.
struct Part {
    sums: Vec<f64>,
    trees: Vec<u32>,
}

impl Part {
    fn add(&mut self, row: usize, value: f64) {
        self.sums[row] += value;
        self.trees[row] += 1;
    }
}

/// The places of a partition's rows that were not drawn.
fn outside<'a>(drawn: &'a [u32], rows: &Rows) -> impl Iterator<Item = usize> + use<'a> {
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

impl Outside {
    /// No tree yet. `documents` are the single ones when trees learn from pairs.
    pub fn new(parameters: &Parameters, rows: &[Rows], documents: Option<ValidationSet>) -> Result<Self> {
        let rows = documents.as_ref().map_or(rows, ValidationSet::rows);
        let part = |rows: &Rows| Part { sums: vec![0.0; rows.len()], trees: vec![0; rows.len()] };
        let partitions = rows.iter().map(part).collect();
        Ok(Outside { partitions, metrics: Metrics::new(parameters, rows)?, documents })
    }

    /// Asks a tree, by its number, about the rows it did not see.
    pub fn add(
        &mut self,
        tree: u64,
        grown: &ForestTree,
        parameters: &Parameters,
        data: &BinnedData,
    ) -> Result<()> {
        let rows = self.documents.as_ref().map_or(&data.rows[..], ValidationSet::rows);
        let drawn = sample::draw(parameters, rows, tree);
        if let Some(documents) = &self.documents {
            let values = wins_of(documents, &grown.to_model());
            for ((part, rows), partition) in self.partitions.iter_mut().zip(rows).zip(0..) {
                outside(&drawn, rows).for_each(|row| part.add(row, values.partition(partition)[row]));
            }
            return Ok(());
        }
        let lanes = Lanes::of(&data.binning.layout);
        let router = Router::new(grown, &data.binning, &lanes);
        self.partitions.par_iter_mut().enumerate().try_for_each(|(partition, part)| {
            let codes = data.all_codes(partition)?;
            let view = View::of(data, partition, &codes, &lanes);
            let rows = outside(&drawn, &data.rows[partition]).map(|row| view.first + row as u32);
            router.each_value(&view, &rows.collect::<Vec<_>>(), |row, value| {
                part.add((row - view.first) as usize, value);
            });
            Ok(())
        })
    }

    /// The rows that are scored.
    pub fn rows<'a>(&'a self, data: &'a BinnedData) -> &'a [Rows] {
        self.documents.as_ref().map_or(&data.rows, ValidationSet::rows)
    }

    /// The scores of all rows in their order; NaN where all trees saw the row.
    pub fn scores(&self) -> Vec<f64> {
        let score = |(sum, trees): (&f64, &u32)| if *trees > 0 { sum / f64::from(*trees) } else { f64::NAN };
        self.partitions.iter().flat_map(|part| part.sums.iter().zip(&part.trees).map(score)).collect()
    }

    /// The metrics of queries whose rows all have a score.
    pub fn evaluate(&self, parameters: &Parameters, rows: &[Rows]) -> Result<Vec<Mean>> {
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
