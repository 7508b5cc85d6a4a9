//! The training loop. It runs the rounds of every stage and handles the log, early stopping, checkpoints, interruption
//! and progress. The [`Members`] of a stage do the work of a round. `begin.rs` and `end.rs` are the ends of a stage.

mod begin;
mod end;

use super::best_models::BestModel;
use super::checkpoint::{CheckpointState, Checkpoints, Resumed, resume};
use super::learner::{LearnerOutputs, PartUpdate};
use super::log::{BestRound, LogEntry, LogValue};
use super::members::Members;
use super::request::TrainRequest;
use super::{ModelSize, Observer, PhaseSeconds};
use crate::config::Parameters;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_model::model::{Model, ModelWriter, Part, PartFamily};
use std::time::Instant;

/// A training run in progress.
pub struct Training<'a> {
    request: &'a TrainRequest,
    /// The model so far, without the trees that were streamed to a file.
    model: Model,
    log: Vec<LogEntry>,
    /// The file that trees are streamed to. `None` means that they are kept in the model.
    file: Option<ModelWriter>,
    /// Time spent per phase so far.
    pub seconds: PhaseSeconds,
    begun: Instant,
    /// Seconds that training took in earlier stages, and before it was interrupted and resumed.
    before: f64,
    /// Seconds spent writing trees to the model file.
    writing: f64,
    /// The stage in progress, from 1.
    stage: u32,
    /// Number of finished rounds of the stage.
    round: u32,
    /// Number of the first part of the stage.
    first_part: usize,
    /// Size of the trees of the stage so far.
    size: ModelSize,
    /// The rest of a checkpoint whose stage has not begun yet.
    resumed: Option<CheckpointState>,
    best: Option<BestRound>,
    best_models: Vec<BestModel>,
}

/// A stage that is about to run.
pub struct Stage<'s, 'm> {
    /// Number of the stage, from 1.
    pub number: u32,
    /// The parameters of the stage. The parts differ in their seeds only.
    pub parameters: &'s Parameters,
    /// The parts to train.
    pub members: &'s mut Members<'m>,
    /// Whether the parts start from scores that may be better than all rounds: round 0 is then logged and counts.
    pub has_start: bool,
}

/// Why training stopped.
enum StopReason {
    Complete,
    Early,
    NoSplit,
}

impl<'a> Training<'a> {
    /// Creates a training run that begins with its first round or continues from its checkpoint. `model` is the model
    /// before the first round, without the parts to be trained.
    pub fn open(
        request: &'a TrainRequest,
        model: Model,
        seconds: PhaseSeconds,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let mut training = Training {
            request,
            first_part: model.parts.len(),
            model,
            log: Vec::new(),
            file: None,
            seconds,
            begun: Instant::now(),
            before: 0.0,
            writing: 0.0,
            stage: 1,
            round: 0,
            size: ModelSize::default(),
            resumed: None,
            best: None,
            best_models: Vec::new(),
        };
        let (true, Some(plan)) = (request.resume, &request.checkpoint) else { return Ok(training) };
        let Some(Resumed { model, state }) = resume(&plan.location, &training.model, &request.plan)? else {
            observer.note(&format!("{}: no checkpoint yet; starting from scratch", plan.location));
            return Ok(training);
        };
        let round = state.round_of(&model);
        let from = match state.stage {
            stage if state.is_between_stages(&model) => format!("the beginning of stage {stage}"),
            1 => format!("round {round}"),
            stage => format!("round {round} of stage {stage}"),
        };
        observer.note(&format!("resuming from {from} of {}", plan.location));
        let configuration = std::mem::take(&mut training.model.configuration);
        training.model = Model { configuration, ..model };
        training.before = state.log.last().map_or(0.0, |entry| entry.seconds);
        training.log.clone_from(&state.log);
        (training.stage, training.round, training.first_part) = (state.stage, round, state.first_part);
        training.resumed = Some(state);
        Ok(training)
    }

    /// Returns the current model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the current model.
    pub fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }

    /// Returns the model and its copies at the best rounds of other metrics.
    pub fn models_mut(&mut self) -> impl Iterator<Item = &mut Model> {
        let others = self.best_models.iter_mut().map(|best| &mut best.model);
        std::iter::once(&mut self.model).chain(others)
    }

    /// Returns the number of the stage to run next, from 1. The parts of earlier stages are in the model.
    pub fn next_stage(&self) -> u32 {
        self.stage
    }

    /// Returns the parts of the stages that are finished, with those of the start model.
    pub fn finished_parts(&self) -> &[Part] {
        &self.model.parts[..self.first_part]
    }

    /// Takes the parts of the stages that are finished, without a copy. They must be given back before the next round.
    pub fn take_finished_parts(&mut self) -> Vec<Part> {
        self.model.parts.drain(..self.first_part).collect()
    }

    /// Gives back the parts of the stages that are finished.
    pub fn return_finished_parts(&mut self, parts: Vec<Part>) {
        drop(self.model.parts.splice(..0, parts));
    }

    /// Runs all remaining rounds of a stage. Returns the results of the learners, in the order of the parts.
    pub fn run(
        &mut self,
        mut stage: Stage<'_, '_>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<LearnerOutputs>> {
        let is_resumed = self.begin(&mut stage, observer)?;
        observer.phase(&match self.request.plan.stages.len() {
            1 => "training".to_owned(),
            stages => format!("stage {} of {stages}", stage.number),
        });
        if self.request.checkpoint.is_some() {
            interrupt::be_orderly(); // from now on, an interrupt writes a checkpoint
        }
        self.begun = Instant::now();
        let mut checkpoints = self.request.checkpoint.as_ref().map(Checkpoints::new);
        let stop = self.run_rounds(&mut stage, is_resumed, &mut checkpoints, observer);
        if let (Err(Error::Interrupted), Some(checkpoints)) = (&stop, &mut checkpoints) {
            self.write_checkpoint(checkpoints, Some(stage.members))?;
            return Err(checkpoints.stopped(self.model.rounds));
        }
        let outputs = self.end(&stop?, stage, observer)?;
        if let Some(checkpoints) = &mut checkpoints
            && self.stage as usize <= self.request.plan.stages.len()
        {
            self.write_checkpoint(checkpoints, None)?;
        }
        Ok(outputs)
    }

    fn run_rounds(
        &mut self,
        stage: &mut Stage<'_, '_>,
        is_resumed: bool,
        checkpoints: &mut Option<Checkpoints>,
        observer: &mut dyn Observer,
    ) -> Result<StopReason> {
        stage.members.start(self.round + 1)?;
        if stage.has_start && !(is_resumed && self.has_entries()) && self.round == 0 {
            // The start alone is logged as round 0, because it may be better than all later rounds.
            let values = stage.members.evaluate(0)?;
            self.enter(stage, values, observer);
        }
        loop {
            if self.is_due_to_stop(stage.parameters) {
                return Ok(StopReason::Early);
            }
            if self.round >= stage.parameters.num_trees {
                return Ok(StopReason::Complete);
            }
            interrupt::check()?;
            let round = self.round + 1;
            let Some(updates) = stage.members.round(round)? else { return Ok(StopReason::NoSplit) };
            // On a cluster, the evaluation can be interrupted. The round is added only afterwards, so that a checkpoint
            // never contains half a round.
            let values = stage.members.evaluate(round)?;
            let replaced = self.add(updates)?;
            self.enter(stage, values, observer);
            if let Some(best) = self.best_round(stage.parameters) {
                let parts = &self.model.parts[self.first_part..];
                stage.members.keep_best(parts, &replaced, best.round == round);
            }
            if let Some(checkpoints) = checkpoints
                && checkpoints.is_due(round)
            {
                self.write_checkpoint(checkpoints, Some(stage.members))?;
            }
        }
    }

    /// Adds a round to the model or to the model file. Returns which parts were replaced.
    fn add(&mut self, updates: Vec<Option<PartUpdate>>) -> Result<Vec<bool>> {
        self.model.rounds += 1;
        self.round += 1;
        let mut replaced = vec![false; updates.len()];
        for (number, update) in updates.into_iter().enumerate() {
            let part = &mut self.model.parts[self.first_part + number].family;
            match (update, &mut self.file) {
                (None, _) => {}
                (Some(PartUpdate::Whole(content)), _) => {
                    *part = content;
                    replaced[number] = true;
                }
                (Some(PartUpdate::Tree(tree)), None) => {
                    self.size.add(&tree);
                    let ensemble = part.trees_mut();
                    ensemble.expect("a part that grows by trees is an ensemble of trees").trees.push(tree);
                }
                (Some(PartUpdate::Tree(tree)), Some(file)) => {
                    self.size.add(&tree);
                    let begun = Instant::now();
                    file.write_tree(&tree)?;
                    self.writing += begun.elapsed().as_secs_f64();
                }
            }
        }
        Ok(replaced)
    }

    /// Adds the values of a round to the log and passes them to the observer.
    fn enter(&mut self, stage: &Stage<'_, '_>, values: Vec<LogValue>, observer: &mut dyn Observer) {
        let seconds = self.before + self.begun.elapsed().as_secs_f64();
        let first = self.log.len();
        self.log.extend(values.into_iter().map(|LogValue { split, metric, value }| LogEntry {
            stage: stage.number,
            round: self.round,
            split,
            metric: metric.to_string(),
            value,
            seconds,
        }));
        observer.round(self.round, stage.parameters.num_trees, &self.log[first..]);
    }

    /// Writes a checkpoint. Between two stages, there are no parts in training.
    fn write_checkpoint(&self, checkpoints: &mut Checkpoints, members: Option<&Members<'_>>) -> Result<()> {
        let best = || members.iter().flat_map(|members| members.best());
        let state = CheckpointState {
            stage: self.stage,
            first_part: self.first_part,
            round: Some(self.round),
            best: best().map(|(number, _)| number).collect(),
            states: members.map(|members| members.states(self.round)).unwrap_or_default(),
            log: self.log.clone(),
        };
        let kept: Vec<PartFamily> = best().map(|(_, content)| content.clone()).collect();
        checkpoints.write(&self.model, &kept, &state)
    }

    /// Returns the file to stream trees to, or `None` if there are several parts, or a checkpoint or early stopping
    /// needs the trees again. Streaming saves memory, because deep trees are large.
    fn model_file(&self, stage: &mut Stage<'_, '_>) -> Result<Option<ModelWriter>> {
        match self.request.streamed_to(stage.parameters.early_stopping_rounds) {
            Some(location) if self.model.parts.len() == 1 && stage.members.first().can_stream() => {
                ModelWriter::create(location, &self.model.features).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn is_due_to_stop(&self, parameters: &Parameters) -> bool {
        let Some(patience) = parameters.early_stopping_rounds else { return false };
        self.best_round(parameters).is_some_and(|best| self.round >= best.round + patience)
    }

    fn has_entries(&self) -> bool {
        self.log.iter().any(|entry| entry.stage == self.stage)
    }

    /// Returns the best round of the stage according to the first metric on the first validation set. `None` if early
    /// stopping is off.
    fn best_round(&self, parameters: &Parameters) -> Option<BestRound> {
        parameters.early_stopping_rounds?;
        let set = self.request.validation.first()?;
        let first = self.log.partition_point(|entry| entry.stage < self.stage);
        BestRound::of(&self.log[first..], &set.name, parameters.metrics.first()?)
    }
}

/// Returns the number of trees of a part.
fn rounds_in(content: &PartFamily) -> u64 {
    content.trees().map_or(0, |ensemble| ensemble.trees.len() as u64)
}

#[cfg(test)]
mod tests;
