//! The parts that a stage trains side by side: one per class and run. They are combined into one score, by which rounds
//! are judged.

use super::backend::{Backend, Combination};
use super::class_fit::{ClassFit, PartWeights};
use super::coupling::{SoftmaxGroup, expected_values, odds_of_classes};
use super::learner::{Learner, PartUpdate};
use super::log::LogValue;
use super::metrics::Metrics;
use super::scores::Scores;
use super::validation::ValidationData;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_data::source::LabelledRows;
use planetree_model::model::{Part, PartFamily};
use rayon::prelude::*;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// A part and the learner that trains it.
pub struct Member<'a> {
    /// The learner.
    pub learner: Box<dyn Learner + 'a>,
    /// The part before the first round.
    pub part: Part,
}

/// The parts of a stage. Their scores are combined with the weights of the parts.
pub struct Members<'a> {
    all: Vec<Member<'a>>,
    /// Whether each part cannot be improved any more.
    ended: Vec<bool>,
    /// The content after the best round so far, for parts that are replaced by every round.
    best: Vec<Option<PartFamily>>,
    /// The constant to which the weighted scores of the parts are added.
    intercept: f64,
    validation: Vec<Arc<ValidationData>>,
    /// The training rows. `None` if the score of the only part is that of the model, so that its learner evaluates it.
    training: Option<TrainingRows<'a>>,
    /// How the weights of the parts are fitted after every round. `None` if the parts have fixed weights.
    fit: Option<ClassFit<'a>>,
    /// The parts that are coupled by a softmax. If there are any, all parts are.
    groups: Vec<SoftmaxGroup>,
}

/// Rows that the parts have scores of.
#[derive(Debug, Clone, Copy)]
enum DataSplit {
    Training,
    Validation(usize),
}

impl Member<'_> {
    /// Returns the scores of some rows after a round, if the learner has them.
    fn scores(&self, split: DataSplit, round: u32) -> Result<Option<Cow<'_, Scores>>> {
        Ok(match split {
            DataSplit::Training => self.learner.training_scores().map(Cow::Borrowed),
            DataSplit::Validation(set) => Some(self.learner.validation_scores(set, round)?),
        })
    }
}

/// The training rows, which are evaluated by the combined scores of all parts.
pub enum TrainingRows<'a> {
    /// The rows are in this process.
    Here(Metrics, &'a [LabelledRows]),
    /// A backend holds the rows.
    Remote(&'a dyn Backend, Box<Combination>),
}

impl<'a> Members<'a> {
    /// Combines parts. `training` evaluates the scores of the training rows. It is `None` if the score of the only part is
    /// that of the model.
    pub fn new(
        all: Vec<Member<'a>>,
        intercept: f64,
        validation: Vec<Arc<ValidationData>>,
        training: Option<TrainingRows<'a>>,
    ) -> Self {
        let (ended, best) = (vec![false; all.len()], all.iter().map(|_| None).collect());
        Members { all, ended, best, intercept, validation, training, fit: None, groups: Vec::new() }
    }

    /// Sets how the weights of the parts are fitted after every round.
    pub fn with_fit(self, fit: Option<ClassFit<'a>>) -> Self {
        Members { fit, ..self }
    }

    /// Sets the parts that are coupled by a softmax.
    pub fn with_groups(self, groups: Vec<SoftmaxGroup>) -> Self {
        Members { groups, ..self }
    }

    /// Returns the parts before the first round.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.all.iter().map(|member| &member.part)
    }

    /// Returns the number of parts.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the learner of the first part.
    pub fn first(&mut self) -> &mut dyn Learner {
        &mut *self.all[0].learner
    }

    /// Returns the learners of all parts.
    pub fn learners(&mut self) -> impl Iterator<Item = &mut Box<dyn Learner + 'a>> {
        self.all.iter_mut().map(|member| &mut member.learner)
    }

    /// Returns what the learners need besides their parts, for a checkpoint after a round. Empty if they need nothing.
    pub fn states(&self, round: u32) -> Vec<Option<Value>> {
        let states: Vec<Option<Value>> = self.all.iter().map(|member| member.learner.state(round)).collect();
        if states.iter().any(Option::is_some) { states } else { Vec::new() }
    }

    /// Calls a function for every learner. Learners that leave threads idle run at the same time.
    fn each<T: Send>(
        &mut self,
        work: impl Fn(usize, &mut dyn Learner) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let numbered = |(number, member): (usize, &mut Member<'a>)| work(number, &mut *member.learner);
        match self.all.len() > 1 && self.all.iter().all(|member| member.learner.leaves_threads_idle()) {
            true => self.all.par_iter_mut().with_max_len(1).enumerate().map(numbered).collect(),
            false => self.all.iter_mut().enumerate().map(numbered).collect(),
        }
    }

    /// Prepares the first round of this run.
    pub fn start(&mut self, round: u32) -> Result<()> {
        self.each(|_, learner| learner.start(round)).map(drop)
    }

    /// Trains a round of every part that can still be improved. Returns the updates by part, or `None` if there are none.
    pub fn round(&mut self, round: u32) -> Result<Option<Vec<Option<PartUpdate>>>> {
        self.couple(round)?;
        let ended = self.ended.clone();
        let updates = self.each(|number, learner| {
            interrupt::check()?;
            if ended[number] { Ok(None) } else { learner.round(round) }
        })?;
        self.ended = updates.iter().map(Option::is_none).collect();
        Ok(updates.iter().any(Option::is_some).then_some(updates))
    }

    /// Computes the gradients of coupled parts, each from the scores of all of its group.
    fn couple(&mut self, round: u32) -> Result<()> {
        for group in self.groups.clone() {
            let members = &mut self.all[group.members];
            let scores: Option<Vec<&Scores>> =
                members.iter().map(|member| member.learner.training_scores()).collect();
            let odds: Vec<Option<Scores>> = match (scores, &self.training) {
                (Some(scores), Some(TrainingRows::Here(_, rows))) => {
                    odds_of_classes(rows, &scores).into_iter().map(Some).collect()
                }
                _ => members.iter().map(|_| None).collect(),
            };
            for (member, odds) in members.iter_mut().zip(odds) {
                member.learner.couple(round, odds)?;
            }
        }
        Ok(())
    }

    /// Marks a part that ended before the round of a checkpoint.
    pub fn end(&mut self, part: usize) {
        self.ended[part] = true;
    }

    /// Returns the values to log after a round: those of the combined scores.
    pub fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>> {
        if self.training.is_none() {
            return self.first().evaluate(round);
        }
        let weights = self.weights(round)?;
        let combined = |rows: &[LabelledRows], split: DataSplit| -> Result<Option<Scores>> {
            let Some(scores) = self.scores(split, round)? else { return Ok(None) };
            let terms: Vec<_> = weights.weights.iter().copied().zip(scores).collect();
            Ok(Some(match self.groups.as_slice() {
                [] => Scores::combined(rows, weights.intercept, &terms),
                groups => expected_values(rows, weights.intercept, &terms, groups),
            }))
        };
        let mut values = Vec::new();
        let training = match &self.training {
            None => None,
            Some(TrainingRows::Here(metrics, rows)) => {
                combined(rows, DataSplit::Training)?.map(|scores| metrics.evaluate(rows, &scores))
            }
            Some(TrainingRows::Remote(backend, combination)) => {
                let PartWeights { weights, intercept } = weights.clone();
                backend.evaluate(&Combination { weights, intercept, ..(**combination).clone() })?
            }
        };
        values.extend(LogValue::of_means("train", &training.unwrap_or_default()));
        for (number, set) in self.validation.iter().enumerate() {
            let Some(scores) = combined(set.rows(), DataSplit::Validation(number))? else { continue };
            if let Some(row) = set.not_finite(&scores) {
                return Err(diverged_on(&set.name, row, round));
            }
            values.extend(LogValue::of_means(&set.name, &set.evaluate(&scores)));
        }
        Ok(values)
    }

    /// Returns the scores of all parts after a round. `None` if a part has none.
    fn scores(&self, split: DataSplit, round: u32) -> Result<Option<Vec<Cow<'_, Scores>>>> {
        let all = self.all.iter().map(|member| member.scores(split, round)).collect::<Result<Vec<_>>>()?;
        Ok(all.into_iter().collect())
    }

    /// Returns the weights of the parts by which a round is judged: those that the model would have if it ended there.
    fn weights(&self, round: u32) -> Result<PartWeights> {
        Ok(self.fitted(round)?.unwrap_or_else(|| PartWeights {
            weights: self.all.iter().map(|member| member.part.weight).collect(),
            intercept: self.intercept,
        }))
    }

    /// Fits the weights of the parts. `None` if they are not fitted, or if a learner has no scores to fit them on.
    fn fitted(&self, round: u32) -> Result<Option<PartWeights>> {
        let Some(fit) = &self.fit else { return Ok(None) };
        let mut splits = Vec::new();
        if let Some(rows) = fit.training {
            let Some(scores) = self.scores(DataSplit::Training, round)? else { return Ok(None) };
            splits.push((rows, scores));
        }
        if fit.on_validation {
            let Some(set) = self.validation.first() else { return Ok(None) };
            let Some(scores) = self.scores(DataSplit::Validation(0), round)? else { return Ok(None) };
            splits.push((set.rows(), scores));
        }
        Ok(Some(fit.fit(&splits)))
    }

    /// Returns whether rounds are judged by fixed weights although the weights are fitted after training.
    pub fn judges_by_other_weights(&self) -> bool {
        let has_scores = || self.all.iter().all(|member| member.learner.training_scores().is_some());
        self.fit.as_ref().is_some_and(|fit| fit.training.is_some() && !has_scores())
    }

    /// Keeps the content that replaced parts have after the best round so far: this round, or an earlier one.
    pub fn keep_best(&mut self, parts: &[Part], replaced: &[bool], is_best: bool) {
        for number in (0..parts.len()).filter(|number| replaced[*number]) {
            if is_best {
                self.best[number] = Some(parts[number].family.clone());
            } else if self.best[number].is_none() {
                self.best[number] = Some(self.all[number].part.family.clone()); // round 0 is the best
            }
        }
    }

    /// Returns the content that [`Members::keep_best`] kept, with the numbers of the parts.
    pub fn best(&self) -> impl Iterator<Item = (usize, &PartFamily)> {
        self.best.iter().enumerate().filter_map(|(number, best)| Some((number, best.as_ref()?)))
    }

    /// Restores content that a checkpoint kept.
    pub fn restore_best(&mut self, number: usize, content: PartFamily) {
        if let Some(best) = self.best.get_mut(number) {
            *best = Some(content);
        }
    }

    /// Returns a part to its content after the round `last`, the best one.
    pub fn rewind(&mut self, number: usize, part: &mut PartFamily, last: u32) {
        let start = &self.all[number].part.family;
        match (self.best[number].take(), part.trees_mut()) {
            (Some(best), _) => *part = best,
            (None, Some(ensemble)) => {
                let before = start.trees().map_or(0, |ensemble| ensemble.trees.len());
                ensemble.trees.truncate(before + last as usize);
            }
            (None, None) => {}
        }
    }
}

/// Returns the error for a validation row whose score became infinite or NaN.
pub(crate) fn diverged_on(name: &str, row: u64, round: u32) -> Error {
    Error::Untrainable(Box::new(Error::usage(
        format_args!("the score of row {row} of {name} became non-finite after round {round}"),
        "lower learning_rate; 0.01 to 0.3 is usual",
    )))
}
