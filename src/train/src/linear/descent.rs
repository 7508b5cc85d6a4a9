//! Trains a linear function that minimises a loss. Every round is a step of Newton's method, or finds the minimum for
//! one penalty.

use super::learner::LinearAlgorithm;
use super::newton::{Evaluation, Problem};
use super::runner::LinearJobs;
use crate::driver::TrainRequest;
use planetree_base::error::{Error, Result};
use planetree_metric::Mean;
use planetree_model::model::LinearFunction;
use std::borrow::Cow;

/// Minimises the loss of a linear function.
pub(super) struct LossDescent<'a> {
    pub request: &'a TrainRequest,
    pub problem: Problem<'a>,
    pub jobs: LinearJobs<'a>,
    /// The factors of half the squared weights of SVMs, one per round, each of which finds the minimum. Empty for other
    /// models, of which a round is a step.
    pub penalties: Vec<f64>,
    /// The function before the first round of this run.
    pub function: LinearFunction,
    /// The function after the last round, with its loss. `None` before the first round of this run.
    pub current: Option<Evaluation>,
}

impl LinearAlgorithm for LossDescent<'_> {
    fn resume(&mut self, function: &LinearFunction) {
        self.function = function.clone();
    }

    fn start(&mut self, _round: u32) -> Result<()> {
        let current = self.problem.evaluate(&self.jobs, self.function.clone())?;
        if !self.problem.penalties_are_finite() {
            return Err(match self.penalties.is_empty() {
                true => Error::usage(
                    format_args!("lambda_l2 = {:e} is too large: the penalty overflows", self.problem.lambda),
                    "lower lambda_l2; at the scale of the features, 1 is already strong",
                ),
                false => Error::usage("svm_c is too small: the penalty overflows", "raise svm_c"),
            });
        }
        if !current.is_finite() {
            return Err(Error::place(
                self.request.place(),
                "labels, weights or features are too large: the loss overflows",
                "scale them down, or set normalise_features=z",
            ));
        }
        self.current = Some(current);
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<bool> {
        let Some(current) = &self.current else {
            return Err(Error::bug("linear", "the learner was not started"));
        };
        if !self.penalties.is_empty() {
            let Some(penalty) = self.penalties.get(round as usize - 1) else { return Ok(false) };
            self.problem.lambda = *penalty;
            let next = self.problem.minimise(&self.jobs, current.function.clone())?;
            self.current = Some(next);
            return Ok(true);
        }
        let next = self.problem.improve(&self.jobs, current)?;
        let is_improved = next.is_some();
        self.current = next.or_else(|| self.current.take());
        // The first round is always kept, even if no feature helps.
        Ok(is_improved || round == 1)
    }

    fn function(&self) -> Cow<'_, LinearFunction> {
        Cow::Borrowed(self.current.as_ref().map_or(&self.function, |current| &current.function))
    }

    fn means(&self) -> &[Mean] {
        self.current.as_ref().map_or(&[], |current| &current.means)
    }

    fn end_note(&self, rounds: u32) -> String {
        match self.penalties.len() {
            0 | 1 => format!("converged after {rounds} rounds"),
            values => format!("all {values} values of svm_c were tried"),
        }
    }

    fn limit_note(&self, rounds: u32) -> Option<String> {
        let current =
            self.current.as_ref().filter(|current| self.penalties.is_empty() && !current.is_minimum())?;
        Some(format!(
            "the weights did not converge in {rounds} rounds: a further step would lower the loss by about {:.1e} of it; \
             raise num_trees, or set a larger lambda_l2 if the classes can be separated",
            current.possible_gain()
        ))
    }
}
