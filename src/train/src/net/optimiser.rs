//! Turns gradients into steps.

use crate::config::{NetParameters, Optimiser};
use serde::{Deserialize, Serialize};

/// The state of an optimiser: what it remembers of earlier gradients.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum OptimiserState {
    /// Adam.
    Adam {
        /// Running means of the gradients and of their squares.
        moments: Vec<[f64; 2]>,
        /// The powers of the factors of the means, by which they are corrected for starting at 0.
        powers: [f64; 2],
    },
    /// The plain gradient.
    Sgd,
}

/// The factors of the running means of Adam (Kingma & Ba 2015, algorithm 1).
const BETAS: [f64; 2] = [0.9, 0.999];
/// Added to the divisor of Adam.
const EPSILON: f64 = 1e-8;

impl OptimiserState {
    /// Creates the state before the first step of a net with this many weights.
    pub(super) fn new(parameters: &NetParameters, weights: usize) -> Self {
        match parameters.optimiser {
            Optimiser::Adam => OptimiserState::Adam { moments: vec![[0.0; 2]; weights], powers: [1.0; 2] },
            Optimiser::Sgd => OptimiserState::Sgd,
        }
    }

    /// Returns whether this is the state of a net with this many weights.
    pub(super) fn fits(&self, weights: usize) -> bool {
        match self {
            OptimiserState::Adam { moments, .. } => moments.len() == weights,
            OptimiserState::Sgd => true,
        }
    }

    /// Replaces gradients by steps, which are added to the weights.
    pub(super) fn steps(&mut self, learning_rate: f64, gradients: &mut [f64]) {
        match self {
            OptimiserState::Sgd => gradients.iter_mut().for_each(|gradient| *gradient *= learning_rate),
            OptimiserState::Adam { moments, powers } => {
                powers.iter_mut().zip(BETAS).for_each(|(power, beta)| *power *= beta);
                for (gradient, [mean, square]) in gradients.iter_mut().zip(moments) {
                    *mean = BETAS[0] * *mean + (1.0 - BETAS[0]) * *gradient;
                    *square = BETAS[1] * *square + (1.0 - BETAS[1]) * (*gradient * *gradient);
                    let (mean, square) = (*mean / (1.0 - powers[0]), *square / (1.0 - powers[1]));
                    *gradient = learning_rate * mean / (square.sqrt() + EPSILON);
                }
            }
        }
    }
}
