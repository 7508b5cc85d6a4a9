//! What a model is trained for: how the score of every row should move, given the rows of its query.
//!
//! - a row's *gradient* is minus the first derivative of the cost by its score: where the score is
//!   pulled to, and how strongly; its *hessian* is the second derivative: how soon that pull ends;
//! - a *pair* is two documents of a query with different labels, ranked by score; a pairwise cost is
//!   a *link* of the difference of their scores, weighted by what swapping the two would change
//!   in a metric, the *delta*.
//!
//! Gradients are single-precision numbers that do not depend on threads, partitions or the machine's
//! vector instructions: every query is worked on by itself, always in the same order.

mod delta;
mod link;
mod listnet;
mod logistic;
mod one_by_one;
mod pairwise;
mod query_rmse;
mod ranked;
mod softmax;
mod unbiased;
mod weighs;
mod xendcg;

#[cfg(test)]
mod tests;

pub use ranked::Room;
pub use unbiased::Tally;

use crate::config::{ObjectiveName, Parameters};
use std::fmt::Debug;

/// A query as an objective sees it.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Its number in the dataset, for random draws.
    pub number: u64,
    /// The round, from 1, for random draws.
    pub round: u32,
    /// The label of each document.
    pub labels: &'a [f32],
    /// The score of each document so far.
    pub scores: &'a [f64],
    /// Where each document was shown, counted from 0, if that is known.
    pub positions: Option<&'a [u32]>,
    /// What [`Objective::of_labels`] said of it.
    pub of_labels: f32,
}

/// Where an objective puts a query's gradients and hessians, a number a document.
#[derive(Debug)]
pub struct Pulls<'a> {
    /// Minus the first derivatives.
    pub gradients: &'a mut [f32],
    /// The second derivatives; not negative.
    pub hessians: &'a mut [f32],
}

/// How the scores of a query should move.
pub trait Objective: Debug + Send + Sync {
    /// What depends on a query's labels alone: worked out once, given back every round.
    fn of_labels(&self, _labels: &[f32]) -> f32 {
        0.0
    }

    /// Sets the gradients and hessians of a query, which has at least one document.
    fn pull(&self, query: &Query<'_>, room: &mut Room, pulls: Pulls<'_>);

    /// Whether a query of these labels pulls at all, whatever its scores.
    fn has_pull(&self, labels: &[f32]) -> bool {
        labels.iter().any(|label| *label != labels[0])
    }

    /// Whether every hessian is 1, so that nobody needs to add them up.
    fn hessians_are_one(&self) -> bool {
        false
    }

    /// Whether weights are those of single rows; else a query weighs as much as its rows on average.
    fn weighs_rows(&self) -> bool {
        false
    }

    /// The score that all rows start from. `positive` is the weighted share of rows with labels that
    /// count as relevant.
    fn start(&self, _positive: f64) -> f64 {
        0.0
    }

    /// Whether it learns something of its own from round to round.
    fn learns(&self) -> bool {
        false
    }

    /// Learns from what all queries of a round found out.
    fn learn(&mut self, _tally: &Tally) {}
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
