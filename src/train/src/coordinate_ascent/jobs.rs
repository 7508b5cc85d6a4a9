//! The jobs of Coordinate Ascent: the metric for some weights, and for many weights of one feature.

use super::scan::{Line, ScanBuffers};
use crate::jobs::SharedMeans;
use crate::linear::{FixedSums, LinearRows, RankingRows, RankingTarget, linear_job};
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use planetree_metric::RankBuffers;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Adds up the metric of all queries, ranked by a linear function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankWeights {
    /// The metric and the features.
    pub target: RankingTarget,
    /// The weights of the features.
    pub weights: Vec<f64>,
}

/// The result of [`RankWeights`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedTotals {
    /// The sum of the metric.
    pub sum: FixedSums,
    /// Number of queries that count.
    pub counted: u64,
    /// The metrics to log.
    pub means: SharedMeans,
}

/// Adds up the metric of all queries for many weights of one feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoordinateScan {
    /// The metric and the features.
    pub target: RankingTarget,
    /// The weights of the features.
    pub weights: Vec<f64>,
    /// Number of the feature in the plan.
    pub feature: u32,
    /// The weights of the feature to evaluate.
    pub trials: Vec<f64>,
}

/// The result of [`CoordinateScan`]: the sum of the metric for each trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScanTotals(pub FixedSums);

linear_job!(RankWeights, "rank_weights", RankedTotals, |job, rows| job.totals(rows)?);
linear_job!(CoordinateScan, "coordinate_scan", ScanTotals, |job, rows| ScanTotals(job.sums(rows)?));

impl RankWeights {
    fn totals(&self, rows: &LinearRows) -> Result<RankedTotals> {
        let ranking = RankingRows::new(rows, &self.target)?;
        let (scale, mut buffers) = (self.target.scale(), RankBuffers::default());
        let (mut sum, mut counted) = (FixedSums::zero(1), 0);
        for (query, ranked) in ranking.queries.iter().zip(&*ranking.ranked(&self.weights)) {
            if let Some(value) = ranking.value(query, ranked, &mut buffers) {
                sum.add(0, value, scale);
                counted += 1;
            }
        }
        Ok(RankedTotals { sum, counted, means: SharedMeans::of(&ranking.means(&self.weights)) })
    }
}

impl CoordinateScan {
    fn sums(&self, rows: &LinearRows) -> Result<FixedSums> {
        let feature = self.feature as usize;
        let (Some(weight), scale) = (self.weights.get(feature), self.target.scale()) else {
            return Err(malformed());
        };
        let ranking = RankingRows::new(rows, &self.target)?;
        let line = Line::new(feature, *weight, &self.trials);
        let ranked = ranking.ranked(&self.weights);
        let zero = || (FixedSums::zero(self.trials.len()), ScanBuffers::default());
        let queries: Vec<_> = ranking.queries.iter().zip(&*ranked).collect();
        let folded = queries.par_iter().fold(zero, |(mut sums, mut buffers), (query, ranked)| {
            buffers.scan(&ranking, query, ranked, &line, &mut |trial, value| sums.add(trial, value, scale));
            (sums, buffers)
        });
        let merged = folded.map(|(sums, _)| sums).reduce(
            || FixedSums::zero(self.trials.len()),
            |mut sums, others| {
                sums.add_all(&others);
                sums
            },
        );
        Ok(merged)
    }
}

impl Partial for RankedTotals {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.means.merge(other.means)?;
        self.counted += other.counted;
        if self.sum.add_all(&other.sum) { Ok(()) } else { Err(malformed()) }
    }

    fn is_valid(&self) -> bool {
        self.sum.is_valid() && self.sum.count() == 1
    }
}

impl Partial for ScanTotals {
    fn merge(&mut self, other: Self) -> Result<()> {
        if self.0.add_all(&other.0) { Ok(()) } else { Err(malformed()) }
    }

    fn is_valid(&self) -> bool {
        self.0.is_valid()
    }
}
