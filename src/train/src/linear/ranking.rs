//! Ranks queries by linear functions, for learners that optimise a ranking metric.
//!
//! The scores of a row are a function of the weights alone: terms are added in the order of the features, as in
//! prediction. So they do not depend on the points that were evaluated before.

use super::plan::StandardPlan;
use super::rows::LinearRows;
use super::sums::SumScale;
use crate::driver::Scores;
use planetree_base::error::Result;
use planetree_metric::{Convention, Mean, Metric, Prepared, RankBuffers};
use planetree_model::family::linear::FeatureNormaliser;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The metric to optimise, and the features that have weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankingTarget {
    /// How features are normalised.
    pub plan: StandardPlan,
    /// Name of the metric, whose values are between 0 and 1.
    pub metric: String,
    /// The rules by which the metric is computed.
    pub convention: String,
    /// Number of queries of the training data.
    pub queries: u64,
}

impl RankingTarget {
    /// Returns the scale of sums over all queries of numbers between -1 and 1.
    pub fn scale(&self) -> SumScale {
        SumScale::of_bound(self.queries as f64)
    }
}

/// What some rows keep between jobs that rank them.
#[derive(Default)]
pub(super) struct RankingCache {
    /// The metric to optimise, by partition.
    metric: OnceLock<Vec<Prepared>>,
    /// The value of the metric for each query and each feature as the score. NaN if the query does not count.
    features: OnceLock<Vec<f64>>,
}

/// The documents of a query, ranked by a linear function.
pub(crate) struct RankedDocuments {
    /// The scores, in input order.
    pub scores: Vec<f64>,
    /// The documents in ranked order. Documents with equal scores are in input order.
    pub order: Vec<u32>,
}

/// A query among the rows of some partitions.
#[derive(Debug, Clone)]
pub(crate) struct QueryPlace {
    /// Number of the partition among those of the rows.
    pub partition: usize,
    /// Number of the query in its partition.
    pub number: usize,
    /// Rows of the query in its partition.
    pub rows: Range<usize>,
}

/// The rows of a share with everything that jobs of rankers need.
pub(crate) struct RankingRows<'a> {
    rows: &'a LinearRows,
    target: &'a RankingTarget,
    normalisers: Vec<FeatureNormaliser>,
    /// All queries, in order.
    pub queries: Vec<QueryPlace>,
    metric: &'a [Prepared],
}

impl<'a> RankingRows<'a> {
    /// Prepares rows for ranking.
    pub(crate) fn new(rows: &'a LinearRows, target: &'a RankingTarget) -> Result<Self> {
        let metric = match rows.ranking.metric.get() {
            Some(metric) => metric,
            None => {
                let (metric, convention): (Metric, Convention) =
                    (target.metric.parse()?, target.convention.parse()?);
                let convention = Arc::new(convention);
                let prepared = rows
                    .rows
                    .iter()
                    .map(|rows| metric.prepare_under(&convention, &rows.labels, &rows.query_bounds))
                    .collect::<Result<Vec<_>>>()?;
                rows.ranking.metric.get_or_init(|| prepared)
            }
        };
        let places = rows.rows.iter().enumerate().flat_map(|(partition, rows)| {
            rows.queries().enumerate().map(move |(number, rows)| QueryPlace { partition, number, rows })
        });
        Ok(RankingRows {
            rows,
            target,
            normalisers: target.plan.normalisers(),
            queries: places.collect(),
            metric,
        })
    }

    /// Returns the metric to optimise, as prepared for the partition of a query.
    pub(crate) fn metric(&self, query: &QueryPlace) -> &Prepared {
        &self.metric[query.partition]
    }

    /// Returns the labels of a query.
    pub(crate) fn labels(&self, query: &QueryPlace) -> &[f32] {
        &self.rows.rows[query.partition].labels[query.rows.clone()]
    }

    /// Writes the normalised values of a feature of the plan to `column`.
    pub(crate) fn column(&self, query: &QueryPlace, feature: usize, column: &mut Vec<f64>) {
        let place = self.target.plan.features[feature].feature as usize;
        let values = &self.rows.values[query.partition][place][query.rows.clone()];
        column.resize(values.len(), 0.0);
        self.normalisers[feature].normalise(values, column);
    }

    /// Returns the rankings of all queries by the function with these weights.
    pub(crate) fn ranked(&self, weights: &[f64]) -> Arc<Vec<RankedDocuments>> {
        self.rows.at_point.get_or(weights, || {
            let rank = |column: &mut Vec<f64>, query: &QueryPlace| self.rank(query, weights, column);
            self.queries.par_iter().map_init(Vec::new, rank).collect()
        })
    }

    fn rank(&self, query: &QueryPlace, weights: &[f64], column: &mut Vec<f64>) -> RankedDocuments {
        let mut scores = vec![0.0; query.rows.len()];
        for (feature, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            self.column(query, feature, column);
            scores.iter_mut().zip(&*column).for_each(|(score, value)| *score += weight * value);
        }
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        order.sort_by(|one, other| scores[*other as usize].total_cmp(&scores[*one as usize]));
        RankedDocuments { scores, order }
    }

    /// Returns the value of the metric for a ranked query. `None` if the query does not count.
    pub(crate) fn value(
        &self,
        query: &QueryPlace,
        ranked: &RankedDocuments,
        buffers: &mut RankBuffers,
    ) -> Option<f64> {
        self.metric(query).of_query(query.number, self.labels(query), &ranked.scores, buffers)
    }

    /// Returns the value of the metric for each query and each feature as the score, query by query. NaN if the query
    /// does not count.
    pub(crate) fn feature_values(&self) -> &'a [f64] {
        self.rows.ranking.features.get_or_init(|| {
            let features = self.target.plan.features.len();
            let of_query = |(column, buffers): &mut (Vec<f64>, RankBuffers), query: &QueryPlace| {
                let value = |feature: usize| {
                    self.column(query, feature, column);
                    let (metric, labels) = (self.metric(query), self.labels(query));
                    metric.of_query(query.number, labels, column, buffers).unwrap_or(f64::NAN)
                };
                (0..features).map(value).collect::<Vec<f64>>()
            };
            let values: Vec<Vec<f64>> =
                self.queries.par_iter().map_init(Default::default, of_query).collect();
            values.concat()
        })
    }

    /// Returns the metrics that are logged, for the function with these weights.
    pub(crate) fn means(&self, weights: &[f64]) -> Vec<Mean> {
        let mut partitions: Vec<Vec<f64>> = vec![Vec::new(); self.rows.rows.len()];
        for (query, ranked) in self.queries.iter().zip(&*self.ranked(weights)) {
            partitions[query.partition].extend_from_slice(&ranked.scores);
        }
        self.rows.metrics.evaluate(&self.rows.rows, &Scores::of_partitions(partitions))
    }
}
