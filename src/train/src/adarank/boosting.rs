//! Selects a feature in every round.

use super::jobs::{AdaRankSums, AdaRankTotals, FIRST_FEATURE};
use crate::config::AdaRankParameters;
use crate::linear::RankingProblem;
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use planetree_metric::Mean;

/// An ensemble, with the sums that the next round needs.
#[derive(Debug, Clone)]
pub(super) struct Ensemble {
    /// The weights of the features.
    pub weights: Vec<f64>,
    /// The mean of the metric. `None` before the first round.
    pub value: Option<f64>,
    /// The metrics of the training rows.
    pub means: Vec<Mean>,
    /// The feature of the last round, and the number of rounds in a row that selected it.
    last: Option<(usize, u32)>,
    /// The sum of the weights of the queries.
    total: f64,
    /// The weighted sum of the metric of each feature.
    features: Vec<f64>,
    /// Number of queries that count.
    pub counted: u64,
}

/// A feature of the ensemble and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SelectedFeature {
    /// Number of the feature in the plan.
    pub feature: usize,
    /// The weight to add to that of the feature.
    pub weight: f64,
}

/// Returns the ensemble before the first round.
pub(super) fn start(problem: &RankingProblem<'_>) -> Result<Ensemble> {
    let weights = vec![0.0; problem.features()];
    let mut ensemble = evaluate(problem, weights, true)?;
    ensemble.value = None;
    Ok(ensemble)
}

/// Returns the ensemble after the next round, or `None` if the metric gets worse by the tolerance.
pub(super) fn round(
    problem: &RankingProblem<'_>,
    parameters: &AdaRankParameters,
    now: &Ensemble,
) -> Result<Option<Ensemble>> {
    let SelectedFeature { feature, weight } = now.select(parameters.own.max_repeats);
    let mut weights = now.weights.clone();
    weights[feature] += weight;
    let mut next = evaluate(problem, weights, false)?;
    let repeats = match now.last {
        Some((last, repeats)) if last == feature => repeats + 1,
        _ => 1,
    };
    next.last = Some((feature, repeats));
    let stops = now.value.zip(next.value).is_some_and(|(now, next)| next + parameters.tolerance <= now);
    Ok((!stops).then_some(next))
}

fn evaluate(problem: &RankingProblem<'_>, weights: Vec<f64>, is_first: bool) -> Result<Ensemble> {
    let job = AdaRankSums { target: problem.target.clone(), weights, is_first };
    let AdaRankTotals { sums, counted, means: by_share } = problem.jobs.run(&job)?;
    if sums.count() != FIRST_FEATURE + problem.features() {
        return Err(malformed());
    }
    let scale = problem.target.scale();
    Ok(Ensemble {
        weights: job.weights,
        value: Some(sums.value(0, scale) / counted as f64),
        means: by_share.total(&problem.metrics)?,
        last: None,
        total: sums.value(1, scale),
        features: (FIRST_FEATURE..sums.count()).map(|sum| sums.value(sum, scale)).collect(),
        counted,
    })
}

impl Ensemble {
    /// Selects the best feature, or the first of several. A feature that was selected `max_repeats` times in a row is
    /// left out, unless there is no other.
    pub(super) fn select(&self, max_repeats: u32) -> SelectedFeature {
        let is_left_out = |feature: usize| {
            self.features.len() > 1
                && self.last.is_some_and(|(last, repeats)| last == feature && repeats >= max_repeats)
        };
        let mut best: Option<usize> = None;
        for feature in (0..self.features.len()).filter(|feature| !is_left_out(*feature)) {
            if best.is_none_or(|best| self.features[feature] > self.features[best]) {
                best = Some(feature);
            }
        }
        let feature = best.unwrap_or(0);
        /// A feature that ranks all queries perfectly would have an infinite weight, so its share of errors counts as at
        /// least this.
        const LEAST_ERROR: f64 = 1e-9;
        let value = self.features[feature];
        let wrong = (self.total - value).max(LEAST_ERROR * self.total);
        SelectedFeature { feature, weight: 0.5 * libm::log((self.total + value) / wrong) }
    }
}
