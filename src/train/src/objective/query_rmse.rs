//! The objective QueryRMSE: squared error after subtracting the mean error of each query, so that only differences
//! within a query count.

use super::{Gradients, Objective, Query, QueryBuffers};

/// The query-level RMSE objective.
#[derive(Debug)]
pub(super) struct QueryRmse;

impl Objective for QueryRmse {
    fn gradients(&self, query: &Query<'_>, _buffers: &mut QueryBuffers, out: Gradients<'_>) {
        let errors = || query.labels.iter().zip(query.scores).map(|(label, score)| f64::from(*label) - score);
        let mean = errors().sum::<f64>() / query.labels.len() as f64;
        for (gradient, error) in out.gradients.iter_mut().zip(errors()) {
            *gradient = (error - mean) as f32;
        }
        out.hessians.fill(1.0);
    }

    fn hessians_are_one(&self) -> bool {
        true
    }
}
