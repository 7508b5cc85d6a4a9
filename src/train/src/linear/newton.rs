//! Minimises the loss of a linear model by Newton's method. The loss of all rows is
//!
//! ```text
//! sum over the rows of weight * loss(label, score) + lambda / 2 * sum over the features of weight²
//! ```
//!
//! where the loss is half the squared error, the log loss or half the squared hinge loss of a row, and the intercept is
//! not penalised. For the squared error, one step leads to the minimum: it solves the normal equations. A step for the log
//! loss is one of iteratively reweighted least squares.

use super::jobs::LinearSums;
use super::plan::{LinearPoint, StandardPlan};
use super::runner::LinearJobs;
use crate::config::LinearLoss;
use planetree_base::error::Result;
use planetree_base::symmetric::Symmetric;
use planetree_metric::{Mean, Metric};
use planetree_model::model::LinearFunction;

/// The reduction of the loss, relative to the loss, below which a point is the minimum.
const CONVERGED: f64 = 1e-18;

/// Maximum number of steps of a search. Usually there are about ten.
pub(super) const STEPS: u32 = 200;

/// The loss of a linear function, with its derivatives.
pub(super) struct Evaluation {
    /// The function.
    pub function: LinearFunction,
    /// The weights of the standardised features. They follow from the function, so that a resumed training run, which
    /// has only the function, continues with the same numbers.
    point: LinearPoint,
    /// The loss of all rows plus the penalty.
    objective: f64,
    /// The negative derivatives with respect to the intercept and the weights.
    gradient: Vec<f64>,
    /// The second derivatives.
    hessian: Symmetric,
    /// The metrics of the training rows.
    pub means: Vec<Mean>,
}

/// A direction that reduces the loss.
struct NewtonStep {
    direction: Vec<f64>,
    /// Twice the reduction of the loss that the step would achieve if the loss were quadratic.
    decrement: f64,
}

/// The loss to minimise.
pub(super) struct Problem<'a> {
    /// How features are standardised.
    pub plan: StandardPlan,
    /// The loss of a row.
    pub loss: &'a LinearLoss,
    /// The factor of half the squared weights.
    pub lambda: f64,
    /// The metrics to log.
    pub metrics: Vec<Metric>,
}

impl Problem<'_> {
    /// Returns the factor of a weight's square in the loss. The parameter applies to the weights of the normalised
    /// features.
    fn penalty(&self, feature: usize) -> f64 {
        let deviation = self.plan.features[feature].deviation;
        self.lambda / (deviation * deviation)
    }

    /// Returns whether the factors of all squares are finite, and the sum of a square and its factor is.
    pub(super) fn penalties_are_finite(&self) -> bool {
        (0..self.plan.features.len())
            .all(|feature| (self.penalty(feature) * self.plan.weight.max(1.0)).is_finite())
    }

    /// Computes the loss of a linear function and its derivatives.
    pub(super) fn evaluate(&self, jobs: &LinearJobs<'_>, function: LinearFunction) -> Result<Evaluation> {
        let point = self.plan.point(&function);
        let scales = self.plan.scales(self.loss, &point);
        let job = LinearSums { plan: self.plan.clone(), loss: self.loss.clone(), point };
        let totals = jobs.run(&job)?;
        let means = totals.means.total(&self.metrics)?;
        let (mut objective, mut gradient, hessian) = self.plan.values(&totals.sums, &scales);
        let mut hessian = Symmetric::new(gradient.len(), hessian);
        for (feature, weight) in job.point.weights.iter().enumerate() {
            let penalty = self.penalty(feature);
            objective += penalty * weight * weight / 2.0;
            gradient[feature + 1] -= penalty * weight;
            hessian.add_to_diagonal(feature + 1, penalty);
        }
        Ok(Evaluation { function, point: job.point, objective, gradient, hessian, means })
    }

    /// Returns the linear function with the least loss, with its loss. The search begins at `function`. It ends after
    /// [`STEPS`] steps, even if the loss is not the least.
    pub(super) fn minimise(&self, jobs: &LinearJobs<'_>, function: LinearFunction) -> Result<Evaluation> {
        let mut now = self.evaluate(jobs, function)?;
        for _ in 0..STEPS {
            match self.improve(jobs, &now)? {
                Some(next) => now = next,
                None => break,
            }
        }
        Ok(now)
    }

    /// Returns the linear function after a step, with its loss. Returns `None` if the current one has the least loss.
    pub(super) fn improve(&self, jobs: &LinearJobs<'_>, now: &Evaluation) -> Result<Option<Evaluation>> {
        /// The reduction of the loss, relative to the loss, below which rounding errors hide it. The loss is so close to
        /// a quadratic function there that the step is right anyway.
        const INVISIBLE: f64 = 1e-11;
        /// Maximum number of times that a step is halved.
        const HALVINGS: u32 = 40;
        let NewtonStep { direction, decrement } = now.step();
        let size = now.size();
        if decrement.is_nan() || decrement <= CONVERGED * size {
            return Ok(None);
        }
        let mut length = 1.0;
        for _ in 0..HALVINGS {
            let next = self.evaluate(jobs, self.plan.function(&now.point.moved(&direction, length)))?;
            // Comparisons with NaN are false. Armijo's rule: the loss decreases by a fraction of what its slope promises.
            let is_better = next.objective <= now.objective - 1e-4 * length * decrement;
            if is_better || (length == 1.0 && decrement <= INVISIBLE * size) {
                return Ok(Some(next));
            }
            length /= 2.0;
        }
        Ok(None)
    }
}

impl Evaluation {
    /// Returns whether the loss is finite.
    pub(super) fn is_finite(&self) -> bool {
        self.objective.is_finite() && self.gradient.iter().all(|gradient| gradient.is_finite())
    }

    /// Returns whether no step would lower the loss by more than a negligible part of it.
    pub(super) fn is_minimum(&self) -> bool {
        /// The reduction of the loss, relative to the loss, that does not change a ranking.
        const NEGLIGIBLE: f64 = 1e-9;
        self.possible_gain() <= NEGLIGIBLE
    }

    /// Returns by how much the next step would lower the loss, relative to the loss, if the loss were quadratic.
    pub(super) fn possible_gain(&self) -> f64 {
        self.step().decrement / 2.0 / self.size()
    }

    /// Returns the loss, or a tiny number if it is 0.
    fn size(&self) -> f64 {
        self.objective.abs().max(f64::MIN_POSITIVE)
    }

    fn step(&self) -> NewtonStep {
        let direction = self.hessian.clone().solve(&self.gradient);
        let decrement = direction.iter().zip(&self.gradient).map(|(one, other)| one * other).sum();
        NewtonStep { direction, decrement }
    }
}

impl LinearPoint {
    fn moved(&self, direction: &[f64], length: f64) -> Self {
        let weights = self.weights.iter().zip(&direction[1..]);
        LinearPoint {
            intercept: self.intercept + length * direction[0],
            weights: weights.map(|(weight, direction)| weight + length * direction).collect(),
        }
    }
}
