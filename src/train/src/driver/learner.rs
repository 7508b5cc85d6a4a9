//! The interface between the training driver and the learners.

use super::log::LogValue;
use super::scores::Scores;
use super::strength::TreeStrength;
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_model::model::{PartFamily, Tree};
use serde_json::Value;
use std::borrow::Cow;

/// Trains one part of a model, round by round. The driver trains the parts of a stage side by side.
pub trait Learner: Send {
    /// Restores the scores of all rows after the rounds of a checkpoint, in which the part was `part`.
    fn replay(&mut self, part: &PartFamily, meter: &dyn Meter) -> Result<()>;

    /// Returns what a resumed run needs besides the part, for a checkpoint after a round. It is the last finished round, or
    /// the one before it if another part of the stage was interrupted. `None` if the part is enough.
    fn state(&self, _round: u32) -> Option<Value> {
        None
    }

    /// Restores the result of [`Learner::state`] of a checkpoint. Called after [`Learner::replay`].
    fn restore(&mut self, _state: &Value) -> Result<()> {
        Ok(())
    }

    /// Called once, before the first round of this run.
    fn start(&mut self, round: u32) -> Result<()>;

    /// Computes the gradients of a round for a part that is coupled with others by a softmax. Called before every round,
    /// after the previous round of all parts. `odds` has the log odds of the part against the others for all training
    /// rows, if this process has the scores.
    fn couple(&mut self, _round: u32, _odds: Option<Scores>) -> Result<()> {
        Ok(())
    }

    /// Trains a round and adds it to the scores of all rows. Returns `None` if the part cannot be improved, now or in
    /// later rounds.
    fn round(&mut self, round: u32) -> Result<Option<PartUpdate>>;

    /// Returns the values to log after a round if this is the only part of its stage.
    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>>;

    /// Returns the scores of the training rows after a round. `None` if the learner does not have them: rows are scored
    /// where they are, which may be another process.
    fn training_scores(&self) -> Option<&Scores> {
        None
    }

    /// Returns the scores of a validation set after a round, including the scores that the part started from.
    fn validation_scores(&self, set: usize, round: u32) -> Result<Cow<'_, Scores>>;

    /// Returns whether a round leaves threads idle on small data, so that several parts should be trained at the same
    /// time.
    fn leaves_threads_idle(&self) -> bool {
        false
    }

    /// Returns whether the updates of a finished round are never read again, so that they can be streamed to the model
    /// file.
    fn can_stream(&self) -> bool {
        false
    }

    /// Returns the results besides the part and the log, given that the model keeps the rounds up to `last`.
    fn finish(&mut self, _last: u32) -> LearnerOutputs {
        LearnerOutputs::default()
    }

    /// Returns a message for the user after the part could not be improved any more.
    fn end_note(&self, rounds: u32) -> String {
        format!("stopped after {rounds} trees: no further split has a gain")
    }

    /// Returns a warning that shows only in training, if there is any. One that equals [`Learner::end_note`] is not
    /// repeated.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Returns a message for the user if training ended at the maximum number of rounds, although the part is not what
    /// it should be without this limit.
    fn limit_note(&self, _rounds: u32) -> Option<String> {
        None
    }

    /// Returns a message for the user if the round `kept`, which is that of the model, is not what it should be because a
    /// limit within the round ended its search.
    fn unfinished_note(&self, _kept: u32) -> Option<String> {
        None
    }

    /// Returns the error for a training run that could not split even one node.
    fn no_split(&self) -> Error;
}

/// What a round changes in its part.
pub enum PartUpdate {
    /// The next tree of an ensemble.
    Tree(Tree),
    /// New content, which replaces that of the previous round.
    Whole(PartFamily),
}

/// The results of a learner besides the part and the log.
#[derive(Default)]
pub struct LearnerOutputs {
    /// Out-of-bag scores; see [`Outcome::out_of_bag`](super::Outcome::out_of_bag).
    pub out_of_bag: Option<Vec<f64>>,
    /// Ranking quality of each tree; see [`Outcome::strength`](super::Outcome::strength).
    pub strength: Option<Vec<TreeStrength>>,
}
