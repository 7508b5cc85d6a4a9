//! The losses of linear models that learn from single rows: functions of the score and the label of a row.

use crate::config::LinearLoss;

/// The loss of a row and its derivatives with respect to the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowLoss {
    /// The loss.
    pub loss: f64,
    /// The negative first derivative.
    pub gradient: f64,
    /// The second derivative.
    pub hessian: f64,
}

impl LinearLoss {
    /// Computes the loss of a row.
    pub fn of_row(&self, label: f32, score: f64) -> RowLoss {
        match self {
            LinearLoss::Squared => {
                let residual = f64::from(label) - score;
                RowLoss { loss: residual * residual / 2.0, gradient: residual, hessian: 1.0 }
            }
            LinearLoss::Logistic { relevant_from } => {
                let wanted = if label >= *relevant_from { 1.0 } else { 0.0 };
                // The exponent is never positive, so nothing overflows.
                let small = libm::exp(-score.abs());
                let probability = if score >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) };
                let against = if wanted > 0.5 { -score } else { score };
                RowLoss {
                    loss: against.max(0.0) + libm::log1p(small),
                    gradient: wanted - probability,
                    hessian: small / ((1.0 + small) * (1.0 + small)),
                }
            }
            LinearLoss::Hinge { relevant_from, .. } => {
                let side = if label >= *relevant_from { 1.0 } else { -1.0 };
                let short = (1.0 - side * score).max(0.0);
                let hessian = if short > 0.0 { 1.0 } else { 0.0 };
                RowLoss { loss: short * short / 2.0, gradient: side * short, hessian }
            }
        }
    }

    /// Returns bounds on the absolute values of the loss, the gradient and the hessian of a row, if scores and
    /// labels are at most `score` and `label`.
    pub fn bounds(&self, label: f64, score: f64) -> [f64; 3] {
        let square = |number: f64| number * number / 2.0;
        match self {
            LinearLoss::Squared => [square(label + score), label + score, 1.0],
            LinearLoss::Logistic { .. } => [score + 1.0, 1.0, 1.0],
            LinearLoss::Hinge { .. } => [square(1.0 + score), 1.0 + score, 1.0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_those_of_finite_differences() {
        const STEP: f64 = 1e-5;
        for loss in [
            LinearLoss::Squared,
            LinearLoss::Logistic { relevant_from: 1.0 },
            LinearLoss::Hinge { relevant_from: 1.0, undersample: None },
        ] {
            for (label, score) in [(0.0, -3.0), (1.0, -0.5), (2.0, 0.0), (0.0, 0.7), (1.0, 4.0), (0.0, 9.0)] {
                let at = |moved: f64| loss.of_row(label, score + moved);
                let first = (at(STEP).loss - at(-STEP).loss) / (2.0 * STEP);
                let second = (at(STEP).gradient - at(-STEP).gradient) / (2.0 * STEP);
                assert!((at(0.0).gradient + first).abs() < 1e-8, "{loss:?} {label} {score}");
                assert!((at(0.0).hessian + second).abs() < 1e-8, "{loss:?} {label} {score}");
                let [most_loss, most_gradient, _] = loss.bounds(2.0, 9.0);
                assert!(at(0.0).loss <= most_loss && at(0.0).gradient.abs() <= most_gradient);
            }
        }
        let far = LinearLoss::Logistic { relevant_from: 1.0 }.of_row(0.0, 1e4);
        assert_eq!((far.loss, far.gradient, far.hessian), (1e4, -1.0, 0.0));
    }
}
