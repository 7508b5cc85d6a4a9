//! Squared error with the mean error of every query taken out: only differences within a query count.

use super::{Objective, Pulls, Query, Room};

/// Query-level RMSE.
#[derive(Debug)]
pub struct QueryRmse;

impl Objective for QueryRmse {
    fn pull(&self, query: &Query<'_>, _room: &mut Room, pulls: Pulls<'_>) {
        let errors = || query.labels.iter().zip(query.scores).map(|(label, score)| f64::from(*label) - score);
        let mean = errors().sum::<f64>() / query.labels.len() as f64;
        for (gradient, error) in pulls.gradients.iter_mut().zip(errors()) {
            *gradient = (error - mean) as f32;
        }
        pulls.hessians.fill(1.0);
    }

    fn hessians_are_one(&self) -> bool {
        true
    }
}
