//! Minimises the loss of pairs by truncated Newton steps. Vectors have an entry for each standardised feature.

use super::jobs::{FIRST_FEATURE, PairLine, PairPlan, PairProduct, PairSums};
use super::point::dot;
use crate::linear::LinearJobs;
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use planetree_metric::{Mean, Metric};

/// The loss to minimise.
pub(super) struct PairProblem<'a> {
    /// The features and the number of pairs.
    pub plan: PairPlan,
    /// Runs jobs on the rows.
    pub jobs: LinearJobs<'a>,
    /// The metrics to log.
    pub metrics: Vec<Metric>,
    /// The search ends when a step promises to lower the objective by at most this part of it.
    pub tolerance: f64,
    /// Maximum number of Newton steps.
    pub steps: u32,
}

/// The objective at a point.
pub(super) struct PairObjective {
    /// The weights of the standardised features.
    pub weights: Vec<f64>,
    /// The loss of all pairs plus the penalty.
    pub objective: f64,
    /// The negative derivatives.
    pub gradient: Vec<f64>,
    /// Twice the number of active pairs, by the weights of their queries.
    active: f64,
    /// The metrics of the training rows.
    pub means: Vec<Mean>,
}

/// The result of a search.
pub(super) struct PairMinimum {
    /// The objective.
    pub found: PairObjective,
    /// If the maximum number of steps ended the search: what the last step promised to lower the objective by, relative
    /// to it.
    pub unfinished: Option<f64>,
}

impl PairObjective {
    /// Returns whether the objective and its derivatives are finite.
    pub(super) fn is_finite(&self) -> bool {
        self.objective.is_finite() && self.gradient.iter().all(|gradient| gradient.is_finite())
    }
}

impl PairProblem<'_> {
    /// Returns the factors of half the squared weights of the standardised features. `lambda` is that of the normalised
    /// features.
    pub(super) fn penalties(&self, lambda: f64) -> Vec<f64> {
        let features = self.plan.standard.features.iter();
        features.map(|planned| lambda / (planned.deviation * planned.deviation)).collect()
    }

    /// Computes the objective and its gradient.
    pub(super) fn evaluate(&self, penalties: &[f64], weights: Vec<f64>) -> Result<PairObjective> {
        let job = PairSums { plan: self.plan.clone(), weights };
        let totals = self.jobs.run(&job)?;
        let scales = job.scales();
        if totals.sums.count() != scales.len() {
            return Err(malformed());
        }
        let value = |sum: usize| totals.sums.value(sum, scales[sum]);
        let (mut objective, mut gradient) = (value(0), Vec::with_capacity(job.weights.len()));
        for (feature, (weight, penalty)) in job.weights.iter().zip(penalties).enumerate() {
            objective += penalty * weight * weight / 2.0;
            gradient.push(value(FIRST_FEATURE + feature) - penalty * weight);
        }
        let means = totals.means.total(&self.metrics)?;
        Ok(PairObjective { weights: job.weights, objective, gradient, active: value(1), means })
    }

    /// Minimises the objective, beginning with `weights`.
    pub(super) fn minimise(&self, lambda: f64, weights: Vec<f64>) -> Result<PairMinimum> {
        let penalties = self.penalties(lambda);
        let mut now = self.evaluate(&penalties, weights)?;
        let mut promised = 0.0;
        for _ in 0..self.steps {
            let direction = self.direction(&penalties, &now)?;
            // Twice the reduction of the objective that the step would achieve if the objective were quadratic.
            let decrement = dot(&direction, &now.gradient);
            let size = now.objective.abs().max(f64::MIN_POSITIVE);
            promised = decrement / size;
            if decrement.is_nan() || decrement <= 0.0 {
                return Ok(PairMinimum { found: now, unfinished: None });
            }
            let length = self.length(&penalties, &now, &direction, decrement)?;
            let moved = now.weights.iter().zip(&direction).map(|(weight, step)| weight + length * step);
            let next = self.evaluate(&penalties, moved.collect())?;
            // The objective is convex, so only rounding errors can raise it.
            if next.objective.is_nan() || next.objective >= now.objective {
                return Ok(PairMinimum { found: now, unfinished: None });
            }
            now = next;
            if decrement <= self.tolerance * size {
                return Ok(PairMinimum { found: now, unfinished: None });
            }
        }
        Ok(PairMinimum { found: now, unfinished: Some(promised) })
    }

    /// Returns about the step that leads to the minimum if the objective is quadratic, by conjugate gradients.
    fn direction(&self, penalties: &[f64], now: &PairObjective) -> Result<Vec<f64>> {
        /// The residual, relative to the gradient, at which the search ends.
        const PRECISION: f64 = 1e-3;
        /// Maximum number of products with the hessian.
        const PRODUCTS: u32 = 20;
        // The search is fastest if the diagonal of the matrix is about 1. The variance of standardised features is 1, so
        // the diagonal of the hessian is about twice the number of active pairs.
        let diagonal: Vec<f64> = penalties.iter().map(|penalty| penalty + now.active).collect();
        let scaled = |residual: &[f64]| -> Vec<f64> {
            residual.iter().zip(&diagonal).map(|(number, diagonal)| number / diagonal).collect()
        };
        let mut step = vec![0.0; now.gradient.len()];
        let mut residual = now.gradient.clone();
        let mut direction = scaled(&residual);
        let mut size = dot(&residual, &direction);
        let enough = PRECISION * PRECISION * size;
        for _ in 0..PRODUCTS {
            if size.is_nan() || size <= enough {
                break;
            }
            let product = self.product(penalties, &now.weights, &direction)?;
            let curvature = dot(&direction, &product);
            if curvature.is_nan() || curvature <= 0.0 {
                break;
            }
            let length = size / curvature;
            for (feature, step) in step.iter_mut().enumerate() {
                *step += length * direction[feature];
                residual[feature] -= length * product[feature];
            }
            let next = scaled(&residual);
            let before = std::mem::replace(&mut size, dot(&residual, &next));
            let kept = size / before;
            direction.iter_mut().zip(next).for_each(|(number, next)| *number = next + kept * *number);
        }
        Ok(step)
    }

    /// Multiplies the second derivatives of the objective by a direction.
    pub(super) fn product(&self, penalties: &[f64], weights: &[f64], direction: &[f64]) -> Result<Vec<f64>> {
        let job =
            PairProduct { plan: self.plan.clone(), weights: weights.to_vec(), direction: direction.to_vec() };
        let (sums, scales) = (self.jobs.run(&job)?, job.scales());
        if sums.count() != scales.len() {
            return Err(malformed());
        }
        let penalised = penalties.iter().zip(direction).map(|(penalty, number)| penalty * number);
        Ok(penalised.enumerate().map(|(sum, term)| sums.value(sum, scales[sum]) + term).collect())
    }

    /// Returns the length at which the objective is least along a direction. The slope is piecewise linear, so Newton's
    /// method ends after a few steps; bisection guards it. `decrement` is the negative slope at length 0.
    fn length(
        &self,
        penalties: &[f64],
        now: &PairObjective,
        direction: &[f64],
        decrement: f64,
    ) -> Result<f64> {
        /// The slope, relative to that at length 0, that counts as 0.
        const FLAT: f64 = 1e-9;
        /// Maximum number of lengths that are tried.
        const TRIALS: u32 = 50;
        let of_penalty = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            let terms = penalties.iter().zip(&now.weights).zip(direction);
            terms.map(|((penalty, weight), step)| penalty * of(*weight, *step)).sum()
        };
        let (start, curve) = (of_penalty(&|weight, step| weight * step), of_penalty(&|_, step| step * step));
        let (mut low, mut high, mut length) = (0.0, f64::INFINITY, 1.0);
        for _ in 0..TRIALS {
            let job = PairLine {
                plan: self.plan.clone(),
                weights: now.weights.clone(),
                direction: direction.to_vec(),
                length,
            };
            let (sums, scales) = (self.jobs.run(&job)?, job.scales());
            if sums.count() != scales.len() {
                return Err(malformed());
            }
            let slope = sums.value(0, scales[0]) + start + length * curve;
            let curvature = sums.value(1, scales[1]) + curve;
            if slope.abs() <= FLAT * decrement {
                break;
            }
            match slope < 0.0 {
                true => low = length,
                false => high = length,
            }
            let newton = length - slope / curvature;
            let next = match newton > low && newton < high {
                true => newton,
                false if high.is_finite() => (low + high) / 2.0,
                false => 2.0 * length,
            };
            if next == length {
                break;
            }
            length = next;
        }
        Ok(length)
    }
}
