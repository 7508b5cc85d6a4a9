//! Training objectives, which compute the gradient and hessian of every row from the rows of its query.
//!
//! - A row's *gradient* is the negative first derivative of the loss with respect to the row's score. Its *hessian* is
//!   the second derivative.
//! - A *pair* consists of two documents of a query with different labels. Its *pair loss* is a function of their score
//!   difference, weighted by the *delta*: how much a metric changes when the two documents are swapped.
//!
//! Gradients are single-precision numbers. They do not depend on the number of threads, the partitions or the vector
//! instructions of the machine, because every query is processed independently and always in the same order.

mod delta;
mod gains;
mod listnet;
mod logistic;
mod pair_by_pair;
mod pair_loss;
mod pair_weights;
mod pairwise;
mod query_rmse;
mod rankboost;
mod ranked;
mod row_weights;
mod softmax;
mod softmax_class;
mod unbiased;
mod xendcg;

#[cfg(test)]
mod tests;

pub(crate) use gains::check_gains;
pub use ranked::QueryBuffers;
pub(crate) use row_weights::weigh;
pub(crate) use softmax_class::log_odds;
pub(crate) use unbiased::PositionLosses;

use crate::config::{ObjectiveParameters, PairwiseLoss};
use planetree_base::error::Error;
use planetree_data::source::LabelledRows;
use std::fmt::{Debug, Display};

/// Input of an objective: the documents of one query.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Index of the query in the dataset, which is part of the key for random numbers.
    pub number: u64,
    /// Number of the round, starting from 1, which is part of the key for random numbers.
    pub round: u32,
    /// The label of each document.
    pub labels: &'a [f32],
    /// The current score of each document.
    pub scores: &'a [f64],
    /// Position at which each document was shown, counted from 0; `None` if unknown.
    pub positions: Option<&'a [u32]>,
    /// The result of [`Objective::label_constant`] for this query.
    pub label_constant: f32,
}

/// Output of an objective: one gradient and one hessian per document of a query.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Negative first derivatives of the loss.
    pub gradients: &'a mut [f32],
    /// Second derivatives of the loss, which are never negative.
    pub hessians: &'a mut [f32],
}

/// Reason why an objective cannot learn from the given data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelProblem {
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl LabelProblem {
    /// Creates a problem with its remedy.
    pub fn new(problem: impl Display, remedy: impl Display) -> Self {
        LabelProblem { problem: problem.to_string(), remedy: remedy.to_string() }
    }

    /// Converts the problem to an error about the data at `place`.
    pub(crate) fn at(self, place: impl Display) -> Error {
        Error::place(place, self.problem, self.remedy)
    }
}

/// A training objective.
pub trait Objective: Debug + Send + Sync {
    /// Rejects labels, weights or positions that the objective cannot learn from. `rows` contains all training rows.
    fn check(&self, _rows: &[LabelledRows]) -> Result<(), LabelProblem> {
        Ok(())
    }

    /// Returns a number that depends only on the labels of a query. It is computed once per query and passed to
    /// [`Objective::gradients`] in every round.
    fn label_constant(&self, _labels: &[f32]) -> f32 {
        0.0
    }

    /// Computes the gradients and hessians of a query, which has at least one document.
    fn gradients(&self, query: &Query<'_>, buffers: &mut QueryBuffers, out: Gradients<'_>);

    /// Returns whether a query with these labels can have nonzero gradients.
    fn has_gradient(&self, labels: &[f32]) -> bool {
        labels.iter().any(|label| *label != labels[0])
    }

    /// Returns whether every hessian is 1, so that row counts can replace sums of hessians.
    fn hessians_are_one(&self) -> bool {
        false
    }

    /// Returns whether every row keeps its own weight. Otherwise, all rows of a query get their mean weight.
    fn weights_rows(&self) -> bool {
        false
    }

    /// Returns whether a label counts as relevant. The fraction of relevant rows is passed to [`Objective::start`].
    fn is_relevant(&self, label: f32) -> bool {
        label >= 1.0
    }

    /// Returns the initial score of all rows. `positive` is the weighted fraction of relevant rows.
    fn start(&self, _positive: f64) -> f64 {
        0.0
    }

    /// Returns whether the gradients depend on random numbers, which differ from round to round.
    fn draws(&self) -> bool {
        false
    }

    /// Returns whether the objective has state that is updated after each round.
    fn learns(&self) -> bool {
        false
    }

    /// Updates the state with the pair losses that were collected from all queries in a round.
    fn learn(&mut self, _tally: &PositionLosses) {}
}

/// Creates the objective. Returns `None` for squared error, whose gradients are the residuals.
pub fn objective(parameters: &ObjectiveParameters, seed: u64) -> Option<Box<dyn Objective>> {
    Some(match parameters {
        ObjectiveParameters::Squared => return None,
        ObjectiveParameters::Logistic { relevant_from } => Box::new(logistic::Logistic::new(*relevant_from)),
        ObjectiveParameters::Pairwise(pairwise) => match pairwise.loss {
            PairwiseLoss::Logistic { sigma, unbiased: true, bias_norm } => {
                Box::new(unbiased::Unbiased::new(pairwise, sigma, bias_norm))
            }
            PairwiseLoss::Logistic { .. } | PairwiseLoss::Hinge { .. } => {
                Box::new(pairwise::Pairwise::new(pairwise))
            }
        },
        ObjectiveParameters::XeNdcg => Box::new(xendcg::XeNdcg::new(seed)),
        ObjectiveParameters::ListNet => Box::new(listnet::ListNet),
        ObjectiveParameters::QueryRmse => Box::new(query_rmse::QueryRmse),
        ObjectiveParameters::RankBoost => Box::new(rankboost::RankBoost),
        ObjectiveParameters::SoftmaxClasses => softmax_class(2), // one class against all others
    })
}

/// Creates the objective of one of several classes that are coupled by a softmax. Its scores are log odds.
pub(crate) fn softmax_class(classes: usize) -> Box<dyn Objective> {
    Box::new(softmax_class::SoftmaxClass::new(classes))
}
