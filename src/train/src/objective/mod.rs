//! Training objectives: gradients and hessians of every row, given the rows of its query.
//!
//! - a row's *gradient* is the negative first derivative of the loss with respect to its score, its *hessian* the
//!   second derivative;
//! - a *pair* is two documents of a query with different labels; its *pair loss* is a function of their score
//!   difference, weighted by the *delta*, the change of a metric when the two are swapped.
//!
//! Gradients are single-precision numbers that do not depend on threads, partitions or the vector instructions of
//! the machine: every query is processed independently, always in the same order.

mod delta;
mod listnet;
mod logistic;
mod pair_by_pair;
mod pair_loss;
mod pair_weights;
mod pairwise;
mod query_rmse;
mod ranked;
mod softmax;
mod unbiased;
mod xendcg;

#[cfg(test)]
mod tests;

pub use ranked::QueryBuffers;
pub use unbiased::PositionLosses;

use crate::config::{ObjectiveName, Parameters};
use std::fmt::Debug;

/// The input of an objective: one query.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Its number in the dataset, which keys random numbers.
    pub number: u64,
    /// The round, from 1, which keys random numbers.
    pub round: u32,
    /// The label of each document.
    pub labels: &'a [f32],
    /// The current score of each document.
    pub scores: &'a [f64],
    /// Position at which each document was shown, from 0, if known.
    pub positions: Option<&'a [u32]>,
    /// The result of [`Objective::label_constant`] for this query.
    pub label_constant: f32,
}

/// The output of an objective: gradients and hessians of a query, one number per document.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Negative first derivatives of the loss.
    pub gradients: &'a mut [f32],
    /// Second derivatives of the loss; not negative.
    pub hessians: &'a mut [f32],
}

/// A training objective.
pub trait Objective: Debug + Send + Sync {
    /// A number that depends on the labels of a query only. It is computed once and passed back in every round.
    fn label_constant(&self, _labels: &[f32]) -> f32 {
        0.0
    }

    /// Computes the gradients and hessians of a query, which has at least one document.
    fn gradients(&self, query: &Query<'_>, buffers: &mut QueryBuffers, out: Gradients<'_>);

    /// Whether a query with these labels can have nonzero gradients.
    fn has_gradient(&self, labels: &[f32]) -> bool {
        labels.iter().any(|label| *label != labels[0])
    }

    /// Whether every hessian is 1, so that counts replace their sums.
    fn hessians_are_one(&self) -> bool {
        false
    }

    /// Whether weights apply to single rows; otherwise a query has the mean weight of its rows.
    fn weights_rows(&self) -> bool {
        false
    }

    /// The initial score of all rows. `positive` is the weighted fraction of relevant rows.
    fn start(&self, _positive: f64) -> f64 {
        0.0
    }

    /// Whether it has state that is updated between rounds.
    fn learns(&self) -> bool {
        false
    }

    /// Updates its state from the statistics of all queries of a round.
    fn learn(&mut self, _tally: &PositionLosses) {}
}

/// The objective of a training; `None` for the squared error, whose gradients are the residuals.
pub fn objective(parameters: &Parameters) -> Option<Box<dyn Objective>> {
    Some(match parameters.objective {
        ObjectiveName::Squared => return None,
        ObjectiveName::Logistic => Box::new(logistic::Logistic::new(parameters)),
        ObjectiveName::RankNet | ObjectiveName::LambdaRank if parameters.unbiased => {
            Box::new(unbiased::Unbiased::new(parameters))
        }
        ObjectiveName::RankNet | ObjectiveName::LambdaRank | ObjectiveName::GbRank => {
            Box::new(pairwise::Pairwise::new(parameters))
        }
        ObjectiveName::XeNdcg => Box::new(xendcg::XeNdcg::new(parameters)),
        ObjectiveName::ListNet => Box::new(listnet::ListNet),
        ObjectiveName::QueryRmse => Box::new(query_rmse::QueryRmse),
    })
}
