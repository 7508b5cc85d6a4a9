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
mod gains;
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

pub(crate) use gains::check_gains;
pub use ranked::QueryBuffers;
pub use unbiased::PositionLosses;

use crate::config::{ObjectiveParameters, PairLoss};
use planetree_base::error::Error;
use planetree_data::source::LabelledRows;
use std::fmt::{Debug, Display};

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

/// Why an objective cannot learn from some data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelProblem {
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl LabelProblem {
    /// A problem and its remedy.
    pub fn new(problem: impl Display, remedy: impl Display) -> Self {
        LabelProblem { problem: problem.to_string(), remedy: remedy.to_string() }
    }

    /// The error for the data at `place`.
    pub(crate) fn at(self, place: impl Display) -> Error {
        Error::place(place, self.problem, self.remedy)
    }
}

/// A training objective.
pub trait Objective: Debug + Send + Sync {
    /// Rejects labels, weights or positions that it cannot learn from. `rows` are all training rows.
    fn check(&self, _rows: &[LabelledRows]) -> Result<(), LabelProblem> {
        Ok(())
    }

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

    /// Whether a label counts as relevant, for [`Objective::start`].
    fn is_relevant(&self, label: f32) -> bool {
        label >= 1.0
    }

    /// The initial score of all rows. `positive` is the weighted fraction of relevant rows.
    fn start(&self, _positive: f64) -> f64 {
        0.0
    }

    /// Whether its gradients depend on random numbers, which differ from round to round.
    fn draws(&self) -> bool {
        false
    }

    /// Whether it has state that is updated between rounds.
    fn learns(&self) -> bool {
        false
    }

    /// Updates its state from the statistics of all queries of a round.
    fn learn(&mut self, _tally: &PositionLosses) {}
}

/// The objective of a training; `None` for the squared error, whose gradients are the residuals.
pub fn objective(parameters: &ObjectiveParameters, seed: u64) -> Option<Box<dyn Objective>> {
    Some(match parameters {
        ObjectiveParameters::Squared => return None,
        ObjectiveParameters::Logistic { relevant_from } => Box::new(logistic::Logistic::new(*relevant_from)),
        ObjectiveParameters::Pairwise(pairwise) => match pairwise.loss {
            PairLoss::Logistic { sigma, unbiased: true, bias_norm } => {
                Box::new(unbiased::Unbiased::new(pairwise, sigma, bias_norm))
            }
            PairLoss::Logistic { .. } | PairLoss::Hinge { .. } => Box::new(pairwise::Pairwise::new(pairwise)),
        },
        ObjectiveParameters::XeNdcg => Box::new(xendcg::XeNdcg::new(seed)),
        ObjectiveParameters::ListNet => Box::new(listnet::ListNet),
        ObjectiveParameters::QueryRmse => Box::new(query_rmse::QueryRmse),
    })
}
