//! The scores and active pairs of all queries at a point, and the sums that Newton's method needs there.

use super::active_pairs::{ActivePairs, PairBuffers};
use super::jobs::{FIRST_FEATURE, PairPlan};
use crate::linear::{FixedSums, LinearRows, QueryFeatures, QueryRows, SumScale, query_weight};
use fearless_simd::{Level, dispatch};
use planetree_model::family::linear::{FeatureNormaliser, Scaling};
use rayon::prelude::*;
use std::sync::Arc;

/// Minimum number of queries that a task adds up, so that there are few lists of sums.
const QUERIES_PER_TASK: usize = 16;

/// The scores and active pairs of all queries.
pub(super) struct PairPoint(Vec<QueryPoint>);

/// The scores and active pairs of a query.
struct QueryPoint {
    scores: Vec<f64>,
    pairs: ActivePairs,
}

/// The products of the features with a direction, by query.
struct SearchDirection(Vec<Vec<f64>>);

/// Buffers that are reused from query to query.
#[derive(Default)]
struct PointBuffers {
    scalings: Vec<Scaling>,
    pairs: PairBuffers,
    numbers: Vec<f64>,
    product: Vec<f64>,
}

/// The rows of a share with what jobs on pairs need.
pub(super) struct PairRows<'a> {
    rows: &'a LinearRows,
    plan: &'a PairPlan,
    normalisers: Vec<FeatureNormaliser>,
    queries: Vec<QueryRows<'a>>,
    level: Level,
}

impl<'a> PairRows<'a> {
    /// Prepares rows.
    pub(super) fn new(rows: &'a LinearRows, plan: &'a PairPlan) -> Self {
        let (normalisers, queries) = (plan.standard.normalisers(), rows.queries().collect());
        PairRows { rows, plan, normalisers, queries, level: Level::new() }
    }

    /// Returns the sums of [`PairSums`](super::PairSums), and the scores by partition.
    pub(super) fn sums(&self, weights: &[f64], scales: &[SumScale]) -> (FixedSums, Vec<Vec<f64>>) {
        // The point before is not needed any more.
        self.rows.at_point.clear();
        self.rows.along.clear();
        let start = || (FixedSums::zero(scales.len()), Vec::new(), PointBuffers::default());
        let add = |(mut sums, mut points, mut buffers): (FixedSums, Vec<QueryPoint>, PointBuffers),
                   query: &QueryRows<'_>| {
            points.push(dispatch!(self.level, _ => {
                self.add_point(query, weights, scales, &mut sums, &mut buffers)
            }));
            (sums, points, buffers)
        };
        let folded = self.queries.par_iter().with_min_len(QUERIES_PER_TASK).fold(start, add);
        // The points are collected in the order of the queries; the sums may be added in any order.
        let (sums, points) = folded.map(|(sums, points, _)| (sums, points)).reduce(
            || (FixedSums::zero(scales.len()), Vec::new()),
            |(mut sums, mut points), (others, more)| {
                sums.add_all(&others);
                points.extend(more);
                (sums, points)
            },
        );
        let mut scores: Vec<Vec<f64>> = vec![Vec::new(); self.rows.rows.len()];
        for ((partition, ..), point) in self.queries.iter().zip(&points) {
            scores[*partition].extend_from_slice(&point.scores);
        }
        self.rows.at_point.keep(weights, PairPoint(points));
        (sums, scores)
    }

    #[inline(always)]
    fn add_point(
        &self,
        query: &QueryRows<'_>,
        weights: &[f64],
        scales: &[SumScale],
        sums: &mut FixedSums,
        buffers: &mut PointBuffers,
    ) -> QueryPoint {
        let (_, rows, range) = query;
        let PointBuffers { scalings, pairs: pair_buffers, numbers: gradients, .. } = buffers;
        let features = self.features(query, scalings);
        let mut scores = self.start_scores(query);
        features.add_scores(weights, &mut scores);
        let mut pairs = ActivePairs::default();
        let loss = pairs.update(&rows.labels[range.clone()], &scores, gradients, pair_buffers);
        let (weight, count) = (query_weight(rows, range.clone()), pairs.count());
        if count > 0.0 && weight > 0.0 {
            sums.add(0, weight * loss, scales[0]);
            sums.add(1, weight * count, scales[1]);
            gradients.iter_mut().for_each(|gradient| *gradient *= weight);
            features.each_product(gradients, |feature, term| {
                sums.add(FIRST_FEATURE + feature, term, scales[FIRST_FEATURE + feature]);
            });
        }
        QueryPoint { scores, pairs }
    }

    /// Returns the sums of [`PairProduct`](super::PairProduct): the product of the hessian at a point with a direction.
    pub(super) fn product(&self, weights: &[f64], direction: &[f64], scales: &[SumScale]) -> FixedSums {
        let point = self.point(weights);
        self.summed(scales.len(), |sums, buffers: &mut PointBuffers, number, query| {
            let point = &point.0[number];
            dispatch!(self.level, _ => self.add_product(query, point, direction, scales, sums, buffers));
        })
    }

    #[inline(always)]
    fn add_product(
        &self,
        query: &QueryRows<'_>,
        point: &QueryPoint,
        direction: &[f64],
        scales: &[SumScale],
        sums: &mut FixedSums,
        buffers: &mut PointBuffers,
    ) {
        let (_, rows, range) = query;
        let weight = query_weight(rows, range.clone());
        if weight <= 0.0 || point.pairs.count() <= 0.0 {
            return;
        }
        let PointBuffers { scalings, pairs, numbers, product } = buffers;
        let features = self.features(query, scalings);
        numbers.clear();
        numbers.resize(range.len(), 0.0);
        features.add_scores(direction, numbers);
        centre(numbers);
        product.resize(range.len(), 0.0);
        point.pairs.multiply(numbers, product, pairs);
        product.iter_mut().for_each(|product| *product *= weight);
        features.each_product(product, |feature, term| sums.add(feature, term, scales[feature]));
    }

    /// Returns the sums of [`PairLine`](super::PairLine): the first and second derivative of the loss along a direction.
    pub(super) fn line(
        &self,
        weights: &[f64],
        (direction, length): (&[f64], f64),
        scales: &[SumScale],
    ) -> FixedSums {
        let point = self.point(weights);
        let along = self.rows.along.get_or(direction, || {
            let scores = |scalings: &mut Vec<Scaling>, query: &QueryRows<'_>| {
                let mut scores = vec![0.0; query.2.len()];
                dispatch!(self.level, _ => self.features(query, scalings).add_scores(direction, &mut scores));
                centre(&mut scores);
                scores
            };
            SearchDirection(self.queries.par_iter().map_init(Vec::new, scores).collect())
        });
        self.summed(scales.len(), |sums, buffers: &mut LineBuffers, number, query| {
            buffers.add(query, &point.0[number], (&along.0[number], length), scales, sums);
        })
    }

    /// Returns the point of some weights.
    fn point(&self, weights: &[f64]) -> Arc<PairPoint> {
        self.rows.at_point.get_or(weights, || {
            let of_query = |buffers: &mut PointBuffers, query: &QueryRows<'_>| {
                let mut scores = self.start_scores(query);
                dispatch!(self.level, _ => {
                    self.features(query, &mut buffers.scalings).add_scores(weights, &mut scores)
                });
                let (mut pairs, labels) = (ActivePairs::default(), &query.1.labels[query.2.clone()]);
                pairs.update(labels, &scores, &mut buffers.numbers, &mut buffers.pairs);
                QueryPoint { scores, pairs }
            };
            PairPoint(self.queries.par_iter().map_init(PointBuffers::default, of_query).collect())
        })
    }

    /// Returns the features of a query. `scalings` is a buffer.
    #[inline(always)]
    fn features<'b>(
        &'b self,
        (partition, _, range): &QueryRows<'_>,
        scalings: &'b mut Vec<Scaling>,
    ) -> QueryFeatures<'b> {
        let columns = &self.rows.values[*partition];
        QueryFeatures::new(&self.plan.standard, &self.normalisers, columns, range.clone(), scalings)
    }

    /// Returns the scores that training starts from.
    fn start_scores(&self, (partition, _, range): &QueryRows<'_>) -> Vec<f64> {
        let offsets = self.rows.offsets(*partition, range.clone());
        offsets.map_or_else(|| vec![0.0; range.len()], <[f64]>::to_vec)
    }

    /// Adds up sums of all queries, which `add` adds for the query with a number.
    fn summed<B: Default + Send>(
        &self,
        count: usize,
        add: impl Fn(&mut FixedSums, &mut B, usize, &QueryRows<'a>) + Send + Sync,
    ) -> FixedSums {
        let queries = self.queries.par_iter().enumerate().with_min_len(QUERIES_PER_TASK);
        let folded = queries.fold(
            || (FixedSums::zero(count), B::default()),
            |(mut sums, mut buffers), (number, query)| {
                add(&mut sums, &mut buffers, number, query);
                (sums, buffers)
            },
        );
        folded.map(|(sums, _)| sums).reduce(
            || FixedSums::zero(count),
            |mut sums, others| {
                sums.add_all(&others);
                sums
            },
        )
    }
}

/// Buffers of a line search, reused from query to query.
#[derive(Default)]
struct LineBuffers {
    active: ActivePairs,
    pairs: PairBuffers,
    scores: Vec<f64>,
    gradients: Vec<f64>,
    product: Vec<f64>,
}

impl LineBuffers {
    fn add(
        &mut self,
        (_, rows, range): &QueryRows<'_>,
        point: &QueryPoint,
        (along, length): (&[f64], f64),
        scales: &[SumScale],
        sums: &mut FixedSums,
    ) {
        let weight = query_weight(rows, range.clone());
        if weight <= 0.0 {
            return;
        }
        self.scores.clear();
        self.scores.extend(point.scores.iter().zip(along).map(|(score, along)| score + length * along));
        self.active.update(&rows.labels[range.clone()], &self.scores, &mut self.gradients, &mut self.pairs);
        if self.active.count() <= 0.0 {
            return;
        }
        self.product.resize(range.len(), 0.0);
        self.active.multiply(along, &mut self.product, &mut self.pairs);
        sums.add(0, -weight * dot(&self.gradients, along), scales[0]);
        sums.add(1, weight * dot(&self.product, along), scales[1]);
    }
}

/// Subtracts the mean. Only differences count, and small numbers lose fewer digits.
fn centre(numbers: &mut [f64]) {
    let mean = numbers.iter().sum::<f64>() / numbers.len().max(1) as f64;
    numbers.iter_mut().for_each(|number| *number -= mean);
}

/// Returns the scalar product of two vectors, added in order.
pub(super) fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
