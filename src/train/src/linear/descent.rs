//! Trains a linear function that minimises a loss. Every round is a step of Newton's method.

use super::learner::LinearAlgorithm;
use super::newton::{Evaluation, Problem};
use super::runner::LinearJobs;
use crate::driver::TrainRequest;
use planetree_base::error::{Error, Result};
use planetree_metric::Mean;
use planetree_model::model::LinearFunction;
use std::borrow::Cow;

/// Minimises the loss of a linear function.
pub struct LossDescent<'a> {
    pub request: &'a TrainRequest,
    pub problem: Problem<'a>,
    pub jobs: LinearJobs<'a>,
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
            return Err(Error::usage(
                format_args!(
                    "lambda_l2 = {:e} is too large: the penalty overflows",
                    self.problem.parameters.lambda_l2
                ),
                "lower lambda_l2; at the scale of the features, 1 is already strong",
            ));
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
        format!("converged after {rounds} rounds")
    }

    fn limit_note(&self, rounds: u32) -> Option<String> {
        let current = self.current.as_ref().filter(|current| !current.is_minimum())?;
        Some(format!(
            "the weights did not converge in {rounds} rounds: a further step would lower the loss by about {:.1e} of it; \
             raise num_trees, or set a larger lambda_l2 if the classes can be separated",
            current.possible_gain()
        ))
    }
}
