//! Summary statistics of the gradients of a round, merged over workers.

use crate::tree::Scale;
use serde::{Deserialize, Serialize};

/// Summary statistics of the gradients of all rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GradientSummary {
    /// The largest magnitude of a gradient.
    pub most: f64,
    /// The largest weight or hessian, or 0 if rows have neither.
    pub heaviest: f64,
    /// The weighted sum of squared errors, for the squared-error objective only.
    pub squares: f64,
    /// The sum of weights, for the squared-error objective only.
    pub weight: f64,
    /// The largest magnitude of a label or score, for the squared-error objective only.
    pub farthest: f64,
}

impl GradientSummary {
    /// Returns the quantisation scale at which the sums over this many rows cannot overflow.
    pub fn scale(&self, rows: u64) -> Scale {
        let bits = Scale::gradient_bits(rows);
        let units = Scale::units(self.most, bits);
        Scale {
            count_bits: Scale::count_bits(rows),
            gradient: match self.farthest > 0.0 && self.heaviest == 0.0 {
                true => units.min(Scale::most_units(self.farthest)),
                false => units,
            },
            weight: if self.heaviest > 0.0 { Scale::units(self.heaviest, bits) } else { 1.0 },
        }
    }

    /// Returns whether all gradients and hessians are finite.
    pub fn are_finite(&self) -> bool {
        self.most.is_finite() && self.heaviest.is_finite()
    }

    /// Returns the RMSE of the scores, for the squared-error objective only.
    pub fn rmse(&self) -> f64 {
        if self.weight > 0.0 { (self.squares / self.weight).sqrt() } else { 0.0 }
    }

    /// Merges summaries in the given order, which affects the rounding of the sums.
    pub fn of_parts(parts: &[GradientSummary]) -> Self {
        parts.iter().copied().fold(GradientSummary::default(), GradientSummary::and)
    }

    /// Merges two summaries.
    pub fn and(self, other: Self) -> Self {
        GradientSummary {
            most: self.most.max(other.most),
            heaviest: self.heaviest.max(other.heaviest),
            squares: self.squares + other.squares,
            weight: self.weight + other.weight,
            farthest: self.farthest.max(other.farthest),
        }
    }
}
