//! Out of bag: what the trees that did not see a row say of it. It is as good as a validation set, and takes no
//! rows away from the training.

use super::route::Router;
use super::sample;
use super::tree::GrownTree;
use super::view::{Lanes, View};
use crate::bins::{BinnedData, Rows};
use crate::config::Parameters;
use crate::error::Result;
use crate::metric::{Mean, Metric, evaluate};
use crate::train::{Metrics, Scores};
use rayon::prelude::*;
use std::sync::Arc;

/// The rows' scores by trees that did not see them.
pub struct Outside {
    partitions: Vec<Part>,
    metrics: Metrics,
}

/// Of one partition.
struct Part {
    sums: Vec<f64>,
    trees: Vec<u32>,
}

impl Outside {
    /// No tree yet.
    pub fn new(parameters: &Parameters, rows: &[Rows]) -> Result<Self> {
        let part = |rows: &Rows| Part { sums: vec![0.0; rows.len()], trees: vec![0; rows.len()] };
        Ok(Outside { partitions: rows.iter().map(part).collect(), metrics: Metrics::new(parameters, rows)? })
    }

    /// Asks a tree, by its number, about the rows it did not see.
    pub fn add(
        &mut self,
        tree: u64,
        grown: &GrownTree,
        parameters: &Parameters,
        data: &BinnedData,
        lanes: &Lanes,
    ) -> Result<()> {
        let drawn = sample::draw(parameters, &data.rows, tree);
        let router = Router::new(grown, &data.binning, lanes);
        self.partitions.par_iter_mut().enumerate().try_for_each(|(partition, part)| {
            let codes = data.all_codes(partition)?;
            let view = View::of(data, partition, &codes, lanes);
            let drawn = &drawn[view.part(&drawn)];
            let mut seen = drawn.iter().copied().peekable();
            let mut outside = Vec::new();
            for row in view.first..view.first + view.rows {
                match seen.peek() {
                    Some(other) if *other == row => while seen.next_if_eq(&row).is_some() {},
                    _ => outside.push(row),
                }
            }
            router.each_value(&view, &outside, |row, value| {
                let place = (row - view.first) as usize;
                part.sums[place] += value;
                part.trees[place] += 1;
            });
            Ok(())
        })
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
