//! The rows of some partitions with the values of their features, and the sums over them that training needs. All sums
//! are fixed-point numbers or extremes, so that they do not depend on the order of the rows.

use super::kept::KeptResult;
use super::loss::RowLoss;
use super::plan::{LinearPoint, PlannedFeature, StandardPlan};
use super::prepare::BYTES_PER_ROW;
use super::ranking::RankingCache;
use super::row_objective::RowObjective;
use super::sums::{FixedSums, SumScale};
use super::weights::RowWeights;
use crate::bins::rows_of;
use crate::config::{LinearLoss, Parameters, Target};
use crate::driver::{FeatureValues, Metrics, Scores};
use crate::objective::Objective;
use fearless_simd::{Level, dispatch};
use planetree_base::error::Result;
use planetree_data::LabelMap;
use planetree_data::source::{LabelledData, LabelledRows};
use planetree_metric::Mean;
use planetree_model::family::linear::FeatureNormaliser;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Columns are padded to a multiple of this many documents, which are multiplied at a time.
pub(crate) const LANES: usize = 4;
/// Number of features that a task decodes together.
const DECODED_AT_A_TIME: usize = 16;
/// Minimum number of queries that a task adds up, so that there are few lists of sums.
const QUERIES_PER_TASK: usize = 16;

/// The rows of some partitions, with the values of all features.
pub struct LinearRows {
    pub(crate) rows: Vec<LabelledRows>,
    /// The values, which the parts of a model share.
    pub(crate) values: Arc<FeatureValues>,
    /// The metrics that are logged.
    pub(crate) metrics: Metrics,
    /// What jobs that rank the rows keep.
    pub(super) ranking: RankingCache,
    /// What jobs that compute gradients keep.
    objective: OnceLock<RowObjective>,
    /// What jobs keep for the last weights.
    pub(crate) at_point: KeptResult,
    /// What jobs keep for the last direction in which weights were moved.
    pub(crate) along: KeptResult,
    /// The scores that training started from, by partition.
    offsets: Option<Vec<Vec<f64>>>,
    /// Memory per row besides the values of the features, in bytes.
    pub(super) row_bytes: u64,
}

/// The sums at a point, and the metrics of its scores.
pub struct PointSums {
    /// The sums, in the order of [`StandardPlan::scales`].
    pub sums: FixedSums,
    /// The metrics of the scores.
    pub means: Vec<Mean>,
}

/// A query: its partition and its rows.
pub(crate) type QueryRows<'a> = (usize, &'a LabelledRows, Range<usize>);

impl LinearRows {
    /// Reads partitions. `label_map` replaces the labels of a source that does not map them itself.
    pub fn read<L: Sync>(
        source: &LabelledData,
        partitions: &[usize],
        parameters: &Parameters<L>,
        label_map: Option<&LabelMap>,
    ) -> Result<Self> {
        let read = partitions.par_iter().map(|partition| {
            let group = source.open_partition(*partition)?;
            let mut rows = rows_of(source, &[*partition], std::slice::from_ref(&group))?;
            if let Some(map) = label_map {
                rows.iter_mut().try_for_each(|rows| rows.map_labels(map, &source.place()))?;
            }
            // Decoding all features of a wide dataset at once would take several times the memory of the values.
            let starts: Vec<usize> = (0..source.features()).step_by(DECODED_AT_A_TIME).collect();
            let values = starts.into_par_iter().map(|start| {
                source.values_of(&group, start..(start + DECODED_AT_A_TIME).min(source.features()))
            });
            let values = values.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
            Ok((rows, values))
        });
        let (rows, values): (Vec<Vec<LabelledRows>>, _) =
            read.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let rows: Vec<LabelledRows> = rows.into_iter().flatten().collect();
        Self::new(rows, Arc::new(values), None, parameters)
    }

    /// Combines rows with the values of their features and the scores that training starts from.
    pub fn new<L: Sync>(
        rows: Vec<LabelledRows>,
        values: Arc<FeatureValues>,
        offsets: Option<Vec<Vec<f64>>>,
        parameters: &Parameters<L>,
    ) -> Result<Self> {
        Ok(LinearRows {
            metrics: Metrics::new(parameters, &rows)?,
            rows,
            values,
            ranking: RankingCache::default(),
            at_point: KeptResult::default(),
            along: KeptResult::default(),
            objective: OnceLock::new(),
            offsets,
            row_bytes: BYTES_PER_ROW,
        })
    }

    /// Returns the values of all features.
    pub fn values(&self) -> &Arc<FeatureValues> {
        &self.values
    }

    /// Replaces the labels by those of a target, sets the weights of rows, and adds the scores that training starts from.
    pub(super) fn learning<L: Sync>(
        mut self,
        (target, weights): (&Target, &RowWeights),
        offsets: Option<Vec<Vec<f64>>>,
        parameters: &Parameters<L>,
    ) -> Result<Self> {
        self.offsets = offsets;
        self.rows.iter_mut().for_each(|rows| weights.apply(rows));
        if *target != Target::Labels {
            let labels = self.rows.iter_mut().flat_map(|rows| &mut rows.labels);
            labels.for_each(|label| *label = target.label(*label));
            self.metrics = Metrics::new(parameters, &self.rows)?;
        }
        Ok(self)
    }

    /// Returns the scores that the documents of a query start from.
    pub(crate) fn offsets(&self, partition: usize, query: Range<usize>) -> Option<&[f64]> {
        self.offsets.as_ref().map(|offsets| &offsets[partition][query])
    }

    /// Returns the metrics of scores, which are listed in the order of the rows.
    pub(crate) fn evaluate(&self, scores: &[f64]) -> Vec<Mean> {
        let mut rest = scores;
        let partitions = self.rows.iter().map(|rows| {
            let (own, after) = rest.split_at(rows.len());
            rest = after;
            own.to_vec()
        });
        let scores = Scores::of_partitions(partitions.collect());
        self.metrics.evaluate(&self.rows, &scores)
    }

    /// Returns the objective with what it keeps of the rows. The first call creates it.
    pub(crate) fn objective(
        &self,
        make: impl FnOnce() -> Result<Option<Box<dyn Objective>>>,
    ) -> Result<&RowObjective> {
        if let Some(known) = self.objective.get() {
            return Ok(known);
        }
        let made = RowObjective::new(make()?, &self.rows);
        Ok(self.objective.get_or_init(|| made))
    }

    /// Returns the largest absolute score that training starts from.
    pub fn largest_offset(&self) -> f64 {
        let offsets = self.offsets.iter().flatten().flatten();
        offsets.fold(0.0, |most, offset| most.max(offset.abs()))
    }

    /// Returns the approximate memory in bytes, with what jobs will keep.
    pub fn bytes(&self) -> u64 {
        let values = self.values.iter().flatten().map(|column| 4 * column.len() as u64);
        let rows: u64 = self.rows.iter().map(|rows| rows.len() as u64).sum();
        values.sum::<u64>() + self.row_bytes * rows
    }

    /// Returns the smallest and the largest value of each feature after missing values were replaced, and whether any
    /// value is still missing.
    pub fn ranges(&self, features: &[PlannedFeature]) -> Vec<FeatureRange> {
        let range = |planned: &PlannedFeature| {
            let columns = self.values.iter().map(|columns| &columns[planned.feature as usize]);
            columns.flatten().fold(FeatureRange::default(), |range, value| range.with(*value, planned.fill))
        };
        features.par_iter().map(range).collect()
    }

    /// Returns, for each feature, the total weight of the rows with a value, and the sums of the values and of their
    /// squares. If features are normalised by query, the values are the normalised ones. Otherwise, they are scaled
    /// so that the range of the feature becomes 0 to 1.
    pub fn moments(&self, plan: &StandardPlan) -> FixedSums {
        let scale = SumScale::of_bound(plan.weight);
        let of_feature = |planned: &PlannedFeature| {
            let normaliser = planned.moment_normaliser(plan.normalisation);
            let (mut sums, mut normalised) = (FixedSums::zero(3), Vec::new());
            for (partition, rows, query) in self.queries() {
                let values = &self.values[partition][planned.feature as usize][query.clone()];
                normalised.resize(values.len(), 0.0);
                normaliser.normalise(values, &mut normalised);
                let mut of_query = [0.0; 3];
                for ((row, value), normalised) in query.zip(values).zip(&normalised) {
                    let weight = weight_of(rows, row);
                    let counts = plan.by_query() || planned.fill.is_some() || value.is_finite();
                    of_query[0] += if counts { weight } else { 0.0 };
                    of_query[1] += weight * normalised;
                    of_query[2] += weight * normalised * normalised;
                }
                of_query.iter().enumerate().for_each(|(sum, term)| sums.add(sum, *term, scale));
            }
            sums
        };
        FixedSums::concatenated(plan.features.par_iter().map(of_feature).collect())
    }

    /// Returns the largest difference between two documents of a query in a normalised feature.
    pub fn largest_difference(&self, plan: &StandardPlan) -> f64 {
        let of_feature = |(planned, normaliser): (&PlannedFeature, FeatureNormaliser)| {
            let mut normalised = Vec::new();
            let of_query = |(partition, _, query): QueryRows<'_>| {
                let values = &self.values[partition][planned.feature as usize][query];
                normalised.resize(values.len(), 0.0);
                normaliser.normalise(values, &mut normalised);
                let least = normalised.iter().copied().fold(f64::INFINITY, f64::min);
                normalised.iter().fold(0.0, |most: f64, value| most.max(value - least))
            };
            self.queries().map(of_query).fold(0.0, f64::max)
        };
        plan.features.par_iter().zip(plan.normalisers()).map(of_feature).reduce(|| 0.0, f64::max)
    }

    /// Computes the sums of losses, gradients and hessians at a point.
    pub fn sums(&self, plan: &StandardPlan, loss: &LinearLoss, point: &LinearPoint) -> PointSums {
        let scales = plan.scales(loss, point);
        let normalisers = plan.normalisers();
        let level = Level::new();
        let queries: Vec<QueryRows<'_>> = self.queries().collect();
        let context = QueryContext { plan, loss, point, scales: &scales, normalisers: &normalisers };
        let start = || (FixedSums::zero(scales.len()), QueryMatrix::default());
        // The scores are collected in the order of the queries; the sums may be added in any order.
        let folded = queries.par_iter().with_min_len(QUERIES_PER_TASK).fold(
            || (start(), Vec::new()),
            |((mut sums, mut matrix), mut scores), query| {
                dispatch!(level, _ => matrix.add_query(&context, self, query, &mut sums));
                scores.extend_from_slice(&matrix.scores);
                ((sums, matrix), scores)
            },
        );
        let (sums, scores) = folded.map(|((sums, _), scores)| (sums, scores)).reduce(
            || (FixedSums::zero(scales.len()), Vec::new()),
            |(mut sums, mut scores), (other, others)| {
                sums.add_all(&other);
                scores.extend(others);
                (sums, scores)
            },
        );
        PointSums { sums, means: self.evaluate(&scores) }
    }

    /// Returns the labels and queries of all rows, by partition.
    pub(crate) fn partitions(&self) -> &[LabelledRows] {
        &self.rows
    }

    /// Returns all queries, in order.
    pub(crate) fn queries(&self) -> impl Iterator<Item = QueryRows<'_>> {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(partition, rows)| rows.queries().map(move |query| (partition, rows, query)))
    }
}

fn weight_of(rows: &LabelledRows, row: usize) -> f64 {
    rows.weights.as_ref().map_or(1.0, |weights| f64::from(weights[row]))
}

/// Returns the weight of a query, which is the mean of those of its rows.
pub(crate) fn query_weight(rows: &LabelledRows, query: Range<usize>) -> f64 {
    let count = query.len().max(1) as f64;
    query.map(|row| weight_of(rows, row)).sum::<f64>() / count
}

/// The range of a feature.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FeatureRange {
    /// The smallest value, or infinity if there is no value.
    pub least: f32,
    /// The largest value, or negative infinity if there is no value.
    pub most: f32,
    /// Whether a value is missing and not replaced.
    pub has_missing: bool,
}

impl Default for FeatureRange {
    fn default() -> Self {
        FeatureRange { least: f32::INFINITY, most: f32::NEG_INFINITY, has_missing: false }
    }
}

impl FeatureRange {
    fn with(self, value: f32, fill: Option<f32>) -> Self {
        match Some(value).filter(|value| value.is_finite()).or(fill) {
            Some(value) => FeatureRange { least: self.least.min(value), most: self.most.max(value), ..self },
            None => FeatureRange { has_missing: true, ..self },
        }
    }

    /// Returns the range of the values of two ranges.
    pub fn merged(self, other: Self) -> Self {
        FeatureRange {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            has_missing: self.has_missing || other.has_missing,
        }
    }
}

/// What is the same for all queries.
struct QueryContext<'a> {
    plan: &'a StandardPlan,
    loss: &'a LinearLoss,
    point: &'a LinearPoint,
    scales: &'a [SumScale],
    normalisers: &'a [FeatureNormaliser],
}

/// The standardised features of a query's documents: a column of ones for the intercept, then one column per feature.
/// The buffers are reused from query to query.
#[derive(Default)]
struct QueryMatrix {
    columns: Vec<f64>,
    /// A column multiplied by the hessians.
    weighted: Vec<f64>,
    scores: Vec<f64>,
    gradients: Vec<f64>,
    hessians: Vec<f64>,
}

impl QueryMatrix {
    /// Adds the loss, the gradient and the lower triangle of the hessian of a query to the sums.
    #[inline(always)]
    fn add_query(
        &mut self,
        context: &QueryContext<'_>,
        all: &LinearRows,
        place: &QueryRows<'_>,
        sums: &mut FixedSums,
    ) {
        let (partition, rows, query) = place;
        let padded = query.len().next_multiple_of(LANES).max(LANES);
        let size = context.plan.features.len() + 1;
        self.start_scores(context, all.offsets(*partition, query.clone()), query.len());
        self.fill(context, &all.values[*partition], query.clone(), padded);
        let total = self.row_losses(context.loss, rows, query.clone());
        self.gradients.resize(padded, 0.0);
        self.hessians.resize(padded, 0.0);
        let (columns, mut place) = (&self.columns, 0);
        let mut add = |term: f64| {
            sums.add(place, term, context.scales[place]);
            place += 1;
        };
        add(total);
        for column in columns.chunks_exact(padded) {
            add(dot(column, &self.gradients));
        }
        self.weighted.clear();
        self.weighted.resize(padded, 0.0);
        for row in 0..size {
            let column = &columns[row * padded..][..padded];
            for ((weighted, value), hessian) in self.weighted.iter_mut().zip(column).zip(&self.hessians) {
                *weighted = value * hessian;
            }
            for other in columns.chunks_exact(padded).take(row + 1) {
                add(dot(other, &self.weighted));
            }
        }
    }

    /// Computes the gradients and hessians of a query's rows. Returns their loss.
    #[inline(always)]
    fn row_losses(&mut self, loss: &LinearLoss, rows: &LabelledRows, query: Range<usize>) -> f64 {
        let mut total = 0.0;
        self.gradients.clear();
        self.hessians.clear();
        for (row, score) in query.zip(&self.scores) {
            let weight = weight_of(rows, row);
            let RowLoss { loss, gradient, hessian } = loss.of_row(rows.labels[row], *score);
            total += weight * loss;
            self.gradients.push(weight * gradient);
            self.hessians.push(weight * hessian);
        }
        total
    }

    /// Sets the scores to the intercept and the scores that training started from.
    fn start_scores(&mut self, context: &QueryContext<'_>, offsets: Option<&[f64]>, documents: usize) {
        self.scores.clear();
        match offsets {
            None => self.scores.resize(documents, context.point.intercept),
            Some(offsets) => {
                self.scores.extend(offsets.iter().map(|offset| offset + context.point.intercept))
            }
        }
    }

    /// Computes the standardised features of a query's documents, and adds their terms to the scores.
    #[inline(always)]
    fn fill(&mut self, context: &QueryContext<'_>, values: &[Vec<f32>], query: Range<usize>, padded: usize) {
        let QueryContext { plan, point, normalisers, .. } = context;
        let documents = query.len();
        self.columns.clear();
        self.columns.resize(padded * (plan.features.len() + 1), 0.0);
        self.columns[..documents].fill(1.0);
        let columns = self.columns[padded..].chunks_exact_mut(padded);
        for (((planned, normaliser), weight), column) in
            plan.features.iter().zip(*normalisers).zip(&point.weights).zip(columns)
        {
            let column = &mut column[..documents];
            normaliser.normalise(&values[planned.feature as usize][query.clone()], column);
            let factor = 1.0 / planned.deviation;
            for (value, score) in column.iter_mut().zip(&mut self.scores) {
                *value = (*value - planned.mean) * factor;
                *score += weight * *value;
            }
        }
    }
}

/// Returns the scalar product of two columns, whose length is a multiple of [`LANES`]. The order of additions is fixed,
/// so the result does not depend on the vector instructions.
#[inline(always)]
pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for (one, other) in one.chunks_exact(LANES).zip(other.chunks_exact(LANES)) {
        let products = one.iter().zip(other).map(|(one, other)| one * other);
        lanes.iter_mut().zip(products).for_each(|(lane, product)| *lane += product);
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}
