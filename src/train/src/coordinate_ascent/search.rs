//! A restart of Coordinate Ascent.

use super::jobs::{CoordinateScan, RankWeights, ScanTotals};
use crate::config::CoordinateAscentParameters;
use crate::linear::RankingProblem;
use planetree_base::error::Result;
use planetree_base::random::Stream;
use planetree_base::wire::malformed;
use planetree_metric::Mean;

/// Weights and their metric.
#[derive(Debug, Clone)]
pub(super) struct EvaluatedWeights {
    /// The weights of the features.
    pub weights: Vec<f64>,
    /// The mean of the metric over the queries that count.
    pub value: f64,
    /// Number of queries that count.
    pub counted: u64,
    /// The metrics of the training rows.
    pub means: Vec<Mean>,
}

/// Evaluates weights.
pub(super) fn evaluate(problem: &RankingProblem<'_>, weights: Vec<f64>) -> Result<EvaluatedWeights> {
    let job = RankWeights { target: problem.target.clone(), weights };
    let totals = problem.jobs.run(&job)?;
    let means = totals.means.total(&problem.metrics)?;
    let value = totals.sum.value(0, problem.target.scale()) / totals.counted as f64;
    Ok(EvaluatedWeights { weights: job.weights, value, counted: totals.counted, means })
}

/// Returns equal weights, with which every restart begins.
pub(super) fn equal_weights(features: usize) -> Vec<f64> {
    vec![1.0 / features as f64; features]
}

/// Runs a restart.
pub(super) fn restart(
    problem: &RankingProblem<'_>,
    parameters: &CoordinateAscentParameters,
    seed: u64,
    number: u32,
) -> Result<EvaluatedWeights> {
    let mut now = evaluate(problem, equal_weights(problem.features()))?;
    for sweep in 0u64.. {
        let mut weights = now.weights.clone();
        for feature in shuffled(problem.features(), &[seed, u64::from(number), sweep]) {
            search_line(problem, parameters.own.line_steps, feature, &mut weights)?;
        }
        // Dividing the weights can break ties in another way, so the gain is that of the weights as they are now.
        let next = evaluate(problem, weights)?;
        let gain = next.value - now.value;
        if gain > 0.0 {
            now = next;
        }
        if gain < parameters.tolerance || gain <= 0.0 {
            break;
        }
    }
    Ok(now)
}

/// Sets the weight of a feature to the best of all trials, if it is better than the current one.
fn search_line(
    problem: &RankingProblem<'_>,
    steps: u32,
    feature: usize,
    weights: &mut Vec<f64>,
) -> Result<()> {
    let weight = weights[feature];
    let has_others = weights.iter().enumerate().any(|(other, weight)| other != feature && *weight != 0.0);
    let trials = trials(weight, steps, has_others);
    let job = CoordinateScan {
        target: problem.target.clone(),
        weights: std::mem::take(weights),
        feature: feature as u32,
        trials,
    };
    let ScanTotals(sums) = problem.jobs.run(&job)?;
    let CoordinateScan { weights: taken, trials, .. } = job;
    *weights = taken;
    if sums.count() != trials.len() {
        return Err(malformed());
    }
    /// Part of the greatest possible sum below which a difference may be a rounding error.
    const ROUNDING: f64 = 1e-13;
    let (scale, rounding) = (problem.target.scale(), ROUNDING * problem.target.queries as f64);
    let mut best = 0;
    for trial in 1..trials.len() {
        if sums.value(trial, scale) > sums.value(best, scale) + rounding {
            best = trial;
        }
    }
    if best > 0 {
        weights[feature] = trials[best];
        let total: f64 = weights.iter().map(|weight| weight.abs()).sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
    }
    Ok(())
}

/// Returns the weights of a line search: the current one, steps of doubling length in both directions, and 0 if other
/// features have weights.
pub(super) fn trials(weight: f64, steps: u32, has_others: bool) -> Vec<f64> {
    /// Length of the first step.
    const FIRST: f64 = 0.001;
    /// Length of the first step relative to the weight, if that is longer.
    const RELATIVE: f64 = 0.05;
    let mut trials = vec![weight];
    for sign in [1.0, -1.0] {
        let (mut step, mut moved) = (f64::max(FIRST, RELATIVE * weight.abs()), 0.0);
        for _ in 0..steps {
            moved += step;
            step *= 2.0;
            trials.push(weight + sign * moved);
        }
    }
    if has_others && weight != 0.0 {
        trials.push(0.0);
    }
    trials
}

/// Returns the numbers below `count` in random order.
fn shuffled(count: usize, key: &[u64]) -> Vec<usize> {
    let mut stream = Stream::new(key);
    let mut numbers: Vec<usize> = (0..count).collect();
    for end in (1..count).rev() {
        numbers.swap(end, (stream.bits() % (end as u64 + 1)) as usize);
    }
    numbers
}
