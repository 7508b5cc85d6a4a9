//! Connects algorithms that train linear functions to the training driver. Every round replaces the function.

use super::validation::LinearValidation;
use crate::driver::{Learner, LogValue, PartUpdate, Scores};
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_metric::Mean;
use planetree_model::model::{LinearFunction, PartFamily};
use std::borrow::Cow;

/// Trains a linear function, round by round.
pub(crate) trait LinearAlgorithm: Send {
    /// Continues from the function of a checkpoint.
    fn resume(&mut self, function: &LinearFunction);

    /// Called once, before the first round of this run.
    fn start(&mut self, round: u32) -> Result<()>;

    /// Trains a round. Returns false if the function cannot be improved, now or in later rounds.
    fn round(&mut self, round: u32) -> Result<bool>;

    /// Returns the function after the last round.
    fn function(&self) -> Cow<'_, LinearFunction>;

    /// Returns the metrics of the training rows after the last round.
    fn means(&self) -> &[Mean];

    /// Returns a message for the user after the function could not be improved any more.
    fn end_note(&self, rounds: u32) -> String;

    /// Returns a message for the user after the last round, if the function could still be improved much.
    fn limit_note(&self, _rounds: u32) -> Option<String> {
        None
    }

    /// Returns a message for the user if a limit within the round `kept` ended its search.
    fn unfinished_note(&self, _kept: u32) -> Option<String> {
        None
    }
}

/// Learner of a linear function.
pub(crate) struct LinearLearner<A> {
    /// The algorithm.
    pub algorithm: A,
    /// The validation sets.
    pub validation: LinearValidation,
}

impl<A: LinearAlgorithm> Learner for LinearLearner<A> {
    fn replay(&mut self, part: &PartFamily, _meter: &dyn Meter) -> Result<()> {
        let PartFamily::Linear(function) = part else {
            return Err(Error::bug("linear", "the checkpoint has a part of another family"));
        };
        self.algorithm.resume(function);
        Ok(())
    }

    fn start(&mut self, round: u32) -> Result<()> {
        self.algorithm.start(round)
    }

    fn round(&mut self, round: u32) -> Result<Option<PartUpdate>> {
        let is_improved = self.algorithm.round(round)?;
        Ok(is_improved.then(|| PartUpdate::Whole(PartFamily::Linear(self.algorithm.function().into_owned()))))
    }

    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>> {
        self.validation.log(&*self.algorithm.function(), self.algorithm.means(), round)
    }

    fn validation_scores(&self, set: usize, _round: u32) -> Result<Cow<'_, Scores>> {
        Ok(Cow::Owned(self.validation.scores(&*self.algorithm.function(), set)?))
    }

    fn end_note(&self, rounds: u32) -> String {
        self.algorithm.end_note(rounds)
    }

    fn limit_note(&self, rounds: u32) -> Option<String> {
        self.algorithm.limit_note(rounds)
    }

    fn unfinished_note(&self, kept: u32) -> Option<String> {
        self.algorithm.unfinished_note(kept)
    }

    fn no_split(&self) -> Error {
        Error::bug("linear", "the first round has no result")
    }
}
