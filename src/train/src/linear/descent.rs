//! Trains a linear function that minimises a loss. Every round is a step of Newton's method, or finds the minimum for
//! one penalty.

use super::learner::LinearAlgorithm;
use super::newton::{Evaluation, Problem, STEPS};
use super::prepare::overflow;
use super::runner::LinearJobs;
use crate::driver::TrainRequest;
use planetree_base::error::{Error, Result};
use planetree_base::size::counted;
use planetree_metric::Mean;
use planetree_model::model::LinearFunction;
use std::borrow::Cow;

/// Minimises the loss of a linear function.
pub(super) struct LossDescent<'a> {
    pub request: &'a TrainRequest,
    pub problem: Problem<'a>,
    pub jobs: LinearJobs<'a>,
    /// The values of `svm_c` of SVMs, one per round, each of which finds the minimum. Empty for other models, of which a
    /// round is a step.
    pub costs: Vec<f64>,
    /// The rounds in which the maximum number of steps ended the search for a value of `svm_c`, with what a further step
    /// would gain.
    pub unfinished: Vec<(u32, f64)>,
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
            return Err(match self.costs.is_empty() {
                true => Error::usage(
                    format_args!("lambda_l2 = {:e} is too large: the penalty overflows", self.problem.lambda),
                    "lower lambda_l2; the linear presets have 1e-10 and 1",
                ),
                false => Error::usage("svm_c is too small: the penalty overflows", "raise svm_c"),
            });
        }
        if !current.is_finite() {
            return Err(overflow(self.request.place()));
        }
        self.current = Some(current);
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<bool> {
        let Some(current) = &self.current else {
            return Err(Error::bug("linear", "the learner was not started"));
        };
        if !self.costs.is_empty() {
            let Some(cost) = self.costs.get(round as usize - 1) else { return Ok(false) };
            self.problem.lambda = self.problem.plan.weight / cost;
            let next = self.problem.minimise(&self.jobs, current.function.clone())?;
            if !next.is_minimum() {
                self.unfinished.push((round, next.possible_gain()));
            }
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
        match self.costs.len() {
            0 => format!("converged after {}", counted(u64::from(rounds), "round", "rounds")),
            values => costs_tried(values),
        }
    }

    fn limit_note(&self, rounds: u32) -> Option<String> {
        let current =
            self.current.as_ref().filter(|current| self.costs.is_empty() && !current.is_minimum())?;
        Some(format!(
            "the weights did not converge in {}: a further step would lower the loss by about {:.1e} of it; raise \
             num_trees, or set a larger lambda_l2 if the classes can be separated",
            counted(u64::from(rounds), "round", "rounds"),
            current.possible_gain()
        ))
    }

    fn unfinished_note(&self, kept: u32) -> Option<String> {
        let (round, gain) = self.unfinished.iter().find(|(round, _)| *round == kept)?;
        Some(format!(
            "svm_c = {}: the search ended after {STEPS} steps, and a further one would lower the objective by about {gain:.1e} \
             of it; lower svm_c",
            self.costs[*round as usize - 1]
        ))
    }
}

/// Returns a message for the user after all values of `svm_c` were tried.
pub(crate) fn costs_tried(values: usize) -> String {
    match values {
        1 => "svm_c has a single value, so there are no further rounds".to_owned(),
        values => format!("all {values} values of svm_c were tried"),
    }
}
