//! Connects linear models to the training driver. Every round replaces the weights by better ones.

use super::newton::{Evaluation, Problem};
use super::runner::LinearJobs;
use crate::driver::{Learner, LearnerOutputs, LogValue, PartUpdate, Scores, TrainRequest, ValidationSet};
use fearless_simd::Level;
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_model::family::{Family, RowValues};
use planetree_model::model::{LinearFunction, ModelFeature, PartFamily};
use std::borrow::Cow;

/// Learner of a linear function.
pub struct LinearLearner<'a> {
    pub request: &'a TrainRequest,
    pub problem: Problem<'a>,
    pub jobs: LinearJobs<'a>,
    /// The factors of half the squared weights of SVMs, one per round, each of which finds the minimum. Empty for other
    /// models, of which a round is a step.
    pub penalties: Vec<f64>,
    /// The features of the model.
    pub features: Vec<ModelFeature>,
    /// The validation sets with the scores that training started from.
    pub validation: Vec<ValidationSet>,
    /// The function before the first round of this run.
    pub function: LinearFunction,
    /// The function after the last round, with its loss. `None` before the first round of this run.
    pub current: Option<Evaluation>,
}

impl LinearLearner<'_> {
    fn function(&self) -> &LinearFunction {
        self.current.as_ref().map_or(&self.function, |current| &current.function)
    }

    /// Returns the scores of a validation set.
    fn scores(&self, set: &ValidationSet) -> Scores {
        let scorer = self.function().scorer(&self.features, Level::new());
        let mut scores = set.by_query(|values, width| {
            let mut scores = vec![0.0; values.len() / width.max(1)];
            scorer.score(RowValues::Matrix { values, width }, &mut scores);
            scores
        });
        scores.add_values(|partition, row| set.scores().partition(partition)[row]);
        scores
    }
}

impl Learner for LinearLearner<'_> {
    fn replay(&mut self, part: &PartFamily, _meter: &dyn Meter) -> Result<()> {
        let PartFamily::Linear(function) = part else {
            return Err(Error::bug("linear", "the checkpoint has a part of another family"));
        };
        self.function = function.clone();
        Ok(())
    }

    fn start(&mut self, _round: u32) -> Result<()> {
        let current = self.problem.evaluate(&self.jobs, self.function.clone())?;
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

    fn round(&mut self, round: u32) -> Result<Option<PartUpdate>> {
        let Some(current) = &self.current else {
            return Err(Error::bug("linear", "the learner was not started"));
        };
        if !self.penalties.is_empty() {
            let Some(penalty) = self.penalties.get(round as usize - 1) else { return Ok(None) };
            self.problem.lambda = *penalty;
            let next = self.problem.minimise(&self.jobs, current.function.clone())?;
            self.current = Some(next);
            return Ok(Some(PartUpdate::Whole(PartFamily::Linear(self.function().clone()))));
        }
        match self.problem.improve(&self.jobs, current)? {
            Some(next) => self.current = Some(next),
            // The first round is always kept, even if no feature helps.
            None if round == 1 => {}
            None => return Ok(None),
        }
        Ok(Some(PartUpdate::Whole(PartFamily::Linear(self.function().clone()))))
    }

    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>> {
        let means = self.current.as_ref().map_or(&[][..], |current| &current.means);
        let mut values: Vec<LogValue> = LogValue::of_means("train", means).collect();
        for set in &self.validation {
            let scores = self.scores(set);
            if let Some(row) = set.data.not_finite(&scores) {
                return Err(Error::Untrainable(Box::new(Error::usage(
                    format_args!(
                        "the score of row {row} of {} became non-finite after round {round}",
                        set.data.name
                    ),
                    "set normalise_features=query, or a larger lambda_l2",
                ))));
            }
            values.extend(LogValue::of_means(&set.data.name, &set.data.evaluate(&scores)));
        }
        Ok(values)
    }

    fn training_scores(&self) -> Option<&Scores> {
        None // the rows are scored where they are, which may be another process
    }

    fn validation_scores(&self, set: usize, _round: u32) -> Cow<'_, Scores> {
        Cow::Owned(self.scores(&self.validation[set]))
    }

    fn leaves_threads_idle(&self) -> bool {
        false
    }

    fn can_stream(&self) -> bool {
        false
    }

    fn finish(&mut self, _last: u32) -> LearnerOutputs {
        LearnerOutputs::default()
    }

    fn end_note(&self, rounds: u32) -> String {
        match self.penalties.len() {
            0 | 1 => format!("converged after {rounds} rounds"),
            values => format!("all {values} values of svm_c were tried"),
        }
    }

    fn no_split(&self) -> Error {
        Error::bug("linear", "the first round has no result")
    }
}
