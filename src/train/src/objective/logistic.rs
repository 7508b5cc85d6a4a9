//! Logistic regression: is a document relevant or not?

use super::{Objective, Pulls, Query, Room};
use crate::config::Parameters;

/// Log loss; a score of s says that a document is relevant with the probability 1/(1 + e^-s).
#[derive(Debug)]
pub struct Logistic {
    relevant_from: f32,
}

impl Logistic {
    pub fn new(parameters: &Parameters) -> Self {
        Logistic { relevant_from: parameters.relevant_from }
    }
}

impl Objective for Logistic {
    fn pull(&self, query: &Query<'_>, _room: &mut Room, pulls: Pulls<'_>) {
        for (place, (label, score)) in query.labels.iter().zip(query.scores).enumerate() {
            let probability = 1.0 / (1.0 + libm::exp(-score));
            let wanted = if *label >= self.relevant_from { 1.0 } else { 0.0 };
            pulls.gradients[place] = (wanted - probability) as f32;
            pulls.hessians[place] = (probability * (1.0 - probability)) as f32;
        }
    }

    fn has_pull(&self, _labels: &[f32]) -> bool {
        true
    }

    fn weighs_rows(&self) -> bool {
        true
    }

    /// The log odds of what is relevant.
    fn start(&self, positive: f64) -> f64 {
        let positive = positive.clamp(1e-12, 1.0 - 1e-12); // weights may leave nothing on one side
        libm::log(positive / (1.0 - positive))
    }
}
