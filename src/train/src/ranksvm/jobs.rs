//! The jobs of RankSVM: sums over all pairs.

use super::point::PairRows;
use crate::driver::Scores;
use crate::jobs::SharedMeans;
use crate::linear::{FixedSums, LinearRows, StandardPlan, SumScale, linear_job};
use planetree_base::error::Result;
use planetree_base::job::Partial;
use serde::{Deserialize, Serialize};

/// The features, and the pairs of the training data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairPlan {
    /// How features are standardised.
    pub standard: StandardPlan,
    /// Total weight of the pairs of documents with different labels.
    pub pairs: f64,
}

/// Sums the loss of all pairs at a point, and its gradient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairSums {
    /// The features.
    pub plan: PairPlan,
    /// The weights of the standardised features.
    pub weights: Vec<f64>,
}

/// The result of [`PairSums`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairTotals {
    /// The loss, twice the number of active pairs, and the negative derivative for each feature.
    pub sums: FixedSums,
    /// The metrics to log.
    pub means: SharedMeans,
}

/// Multiplies the second derivatives of the loss at a point by a direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairProduct {
    /// The features.
    pub plan: PairPlan,
    /// The weights of the standardised features.
    pub weights: Vec<f64>,
    /// The direction.
    pub direction: Vec<f64>,
}

/// Sums the first and second derivative of the loss along a direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairLine {
    /// The features.
    pub plan: PairPlan,
    /// The weights of the standardised features.
    pub weights: Vec<f64>,
    /// The direction.
    pub direction: Vec<f64>,
    /// The length of the step in this direction after which the derivatives are computed.
    pub length: f64,
}

/// Number of sums of [`PairSums`] before those of the features.
pub(super) const FIRST_FEATURE: usize = 2;

linear_job!(PairSums, "pair_sums", PairTotals, |job, rows| job.totals(rows));
linear_job!(PairProduct, "pair_product", FixedSums, |job, rows| {
    PairRows::new(rows, &job.plan).product(&job.weights, &job.direction, &job.scales())
});
linear_job!(PairLine, "pair_line", FixedSums, |job, rows| {
    PairRows::new(rows, &job.plan).line(&job.weights, (&job.direction, job.length), &job.scales())
});

impl PairPlan {
    /// Returns a bound on the difference of two scores of a query by a linear function.
    fn widest(&self, weights: &[f64]) -> f64 {
        let terms = self.differences().zip(weights).map(|(difference, weight)| difference * weight.abs());
        terms.sum()
    }

    /// Returns a bound on the difference of two values of each standardised feature.
    fn differences(&self) -> impl Iterator<Item = f64> {
        self.standard.most_standardised().map(|most| 2.0 * most)
    }

    /// Returns the scale of a sum over all pairs, given a bound on its terms.
    fn scale(&self, bound: f64) -> SumScale {
        SumScale::of_bound(self.pairs * bound)
    }

    /// Returns a bound on the margin that a pair falls short of.
    fn shortest(&self, weights: &[f64]) -> f64 {
        1.0 + 2.0 * self.standard.offset + self.widest(weights)
    }
}

impl PairSums {
    /// Returns the scales of the sums.
    pub(super) fn scales(&self) -> Vec<SumScale> {
        let short = self.plan.shortest(&self.weights);
        let of_features = self.plan.differences().map(|difference| self.plan.scale(short * difference));
        [self.plan.scale(short * short), self.plan.scale(2.0)].into_iter().chain(of_features).collect()
    }

    fn totals(&self, rows: &LinearRows) -> PairTotals {
        let (sums, scores) = PairRows::new(rows, &self.plan).sums(&self.weights, &self.scales());
        let means = rows.metrics.evaluate(&rows.rows, &Scores::of_partitions(scores));
        PairTotals { sums, means: SharedMeans::of(&means) }
    }
}

impl PairProduct {
    /// Returns the scales of the sums.
    pub(super) fn scales(&self) -> Vec<SumScale> {
        let widest = self.plan.widest(&self.direction);
        self.plan.differences().map(|difference| self.plan.scale(widest * difference)).collect()
    }
}

impl PairLine {
    /// Returns the scales of the sums.
    pub(super) fn scales(&self) -> Vec<SumScale> {
        let widest = self.plan.widest(&self.direction);
        let short = self.plan.shortest(&self.weights) + self.length.abs() * widest;
        vec![self.plan.scale(short * widest), self.plan.scale(widest * widest)]
    }
}

impl Partial for PairTotals {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.means.merge(other.means)?;
        Partial::merge(&mut self.sums, other.sums)
    }

    fn is_valid(&self) -> bool {
        FixedSums::is_valid(&self.sums)
    }
}
