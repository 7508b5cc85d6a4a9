//! Defines the functions of hidden units. They use a Rust math library, so that results are the same on all machines.

use serde::{Deserialize, Serialize};

/// The function of hidden units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// max(0, x).
    Relu,
    /// 1 / (1 + e^-x).
    Logistic,
}

impl Activation {
    /// All functions.
    pub const ALL: [Activation; 3] = [Activation::Tanh, Activation::Relu, Activation::Logistic];

    /// Returns the name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Activation::Tanh => "tanh",
            Activation::Relu => "relu",
            Activation::Logistic => "logistic",
        }
    }

    /// Returns the value of the function.
    pub fn of(self, sum: f64) -> f64 {
        match self {
            Activation::Tanh => libm::tanh(sum),
            Activation::Relu => relu(sum),
            Activation::Logistic => 1.0 / (1.0 + libm::exp(-sum)),
        }
    }

    /// Replaces sums by the values of the function.
    #[inline(always)]
    pub fn apply(self, sums: &mut [f64]) {
        match self {
            Activation::Relu => sums.iter_mut().for_each(|sum| *sum = relu(*sum)),
            other => sums.iter_mut().for_each(|sum| *sum = other.of(*sum)),
        }
    }

    /// Returns the slope of the function where its value is `value`.
    #[inline(always)]
    pub fn slope(self, value: f64) -> f64 {
        match self {
            Activation::Tanh => 1.0 - value * value,
            Activation::Relu => f64::from(u8::from(value > 0.0)),
            Activation::Logistic => value * (1.0 - value),
        }
    }

    /// Returns the largest slope of the function.
    pub(super) fn most_slope(self) -> f64 {
        match self {
            Activation::Tanh | Activation::Relu => 1.0,
            Activation::Logistic => 0.25,
        }
    }
}

/// Returns max(0, x). NaN stays NaN, so that it is not hidden.
#[inline(always)]
fn relu(sum: f64) -> f64 {
    if sum <= 0.0 { 0.0 } else { sum }
}
