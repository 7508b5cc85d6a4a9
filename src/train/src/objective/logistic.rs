//! Logistic regression on binary relevance.

use super::{Gradients, LabelProblem, Objective, Query, QueryBuffers};
use planetree_data::source::LabelledRows;

/// Log loss, in which a document with score s is relevant with probability 1/(1 + e^-s).
#[derive(Debug)]
pub(super) struct Logistic {
    relevant_from: f32,
}

impl Logistic {
    pub(super) fn new(relevant_from: f32) -> Self {
        Logistic { relevant_from }
    }
}

impl Objective for Logistic {
    fn check(&self, rows: &[LabelledRows]) -> Result<(), LabelProblem> {
        let mut relevant =
            rows.iter().flat_map(|rows| &rows.labels).map(|label| *label >= self.relevant_from);
        let first = relevant.next().unwrap_or_default();
        if relevant.any(|other| other != first) {
            return Ok(());
        }
        let count = if first { "every" } else { "no" };
        Err(LabelProblem::new(
            format_args!(
                "{count} label is at least relevant_from = {}: there is nothing to learn",
                self.relevant_from
            ),
            "set relevant_from to a label between the lowest and the highest",
        ))
    }

    fn gradients(&self, query: &Query<'_>, _buffers: &mut QueryBuffers, out: Gradients<'_>) {
        for (place, (label, score)) in query.labels.iter().zip(query.scores).enumerate() {
            let probability = 1.0 / (1.0 + libm::exp(-score));
            let wanted = if *label >= self.relevant_from { 1.0 } else { 0.0 };
            out.gradients[place] = (wanted - probability) as f32;
            out.hessians[place] = (probability * (1.0 - probability)) as f32;
        }
    }

    fn has_gradient(&self, _labels: &[f32]) -> bool {
        true
    }

    fn weights_rows(&self) -> bool {
        true
    }

    fn is_relevant(&self, label: f32) -> bool {
        label >= self.relevant_from
    }

    /// Returns the log odds of relevance.
    fn start(&self, positive: f64) -> f64 {
        let positive = positive.clamp(1e-12, 1.0 - 1e-12); // weights of 0 may leave one class empty
        libm::log(positive / (1.0 - positive))
    }
}
