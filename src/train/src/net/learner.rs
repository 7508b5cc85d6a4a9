//! Connects nets to the training driver. A round is an epoch, which replaces the net.

use super::training::{NetProblem, TrainedNet};
use crate::driver::{Learner, LogValue, PartUpdate, Scores};
use crate::linear::LinearValidation;
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_base::storage::interrupt;
use planetree_model::model::{NetFunction, NetLayer, PartFamily};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Trains a net, epoch by epoch.
pub(super) struct NetLearner<'a> {
    pub problem: NetProblem<'a>,
    pub validation: LinearValidation,
    /// The split of the data by whose first metric nets are compared: the first validation set, or the training data.
    pub judged_by: String,
    /// The nets that have not diverged, one per restart.
    pub nets: Vec<TrainedNet>,
    /// The net after the last epoch: the best one of all restarts.
    pub current: EpochResult,
    /// The best net of all epochs. `None` before the first one.
    pub best: Option<EpochResult>,
    /// Number of the epoch in which the last net diverged.
    pub diverged: Option<u32>,
    /// Number of finished epochs, and the state before the last of them.
    pub finished: u32,
    pub before: Option<Box<NetState>>,
}

/// A net after an epoch, with the values to log.
#[derive(Debug, Clone)]
pub(super) struct EpochResult {
    pub layers: Vec<NetLayer>,
    pub log: Vec<LogValue>,
}

/// What a resumed run needs besides the net after the last epoch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NetState {
    nets: Vec<TrainedNet>,
    best: Option<Vec<NetLayer>>,
    diverged: Option<u32>,
}

impl NetLearner<'_> {
    fn function(&self) -> NetFunction {
        self.problem.function(&self.current.layers)
    }

    /// Evaluates a net. Returns `None` if a score is not finite.
    fn evaluated(&self, layers: &[NetLayer], round: u32) -> Result<Option<EpochResult>> {
        let Some(means) = self.problem.means(layers)? else { return Ok(None) };
        match self.validation.log(&self.problem.function(layers), &means, round) {
            Ok(log) => Ok(Some(EpochResult { layers: layers.to_vec(), log })),
            Err(Error::Untrainable(_)) => Ok(None), // a score of a validation set is not finite
            Err(error) => Err(error),
        }
    }

    /// Returns whether a net is better than another one by the first metric of the split that judges.
    fn is_better(&self, one: &EpochResult, other: &EpochResult) -> bool {
        let Some(metric) = self.problem.settings.metrics.first() else { return true };
        let value = |result: &EpochResult| {
            let values = result.log.iter().filter(|value| value.split == self.judged_by);
            values
                .filter(|value| value.metric == *metric)
                .map(|value| value.value)
                .find(|value| !value.is_nan())
        };
        match (value(one), value(other)) {
            (Some(one), Some(other)) => metric.is_better(one, other),
            (one, _) => one.is_some(),
        }
    }

    /// Trains an epoch of all restarts. Returns false if the net cannot be trained any further.
    fn epoch(&mut self, round: u32) -> Result<bool> {
        if self.diverged.is_some() {
            return Ok(false);
        }
        let before = self.last_state();
        let mut best_now: Option<EpochResult> = None;
        // An interrupted epoch must leave nothing behind.
        let mut nets = Vec::new();
        for mut net in self.nets.clone() {
            interrupt::check()?;
            if !self.problem.epoch(&mut net, round)? {
                continue;
            }
            let Some(result) = self.evaluated(&net.layers, round)? else { continue };
            nets.push(net);
            if best_now.as_ref().is_none_or(|best| self.is_better(&result, best)) {
                best_now = Some(result);
            }
        }
        match (best_now, &self.best) {
            (Some(result), best) => {
                if best.as_ref().is_none_or(|best| self.is_better(&result, best)) {
                    self.best = Some(result.clone());
                }
                self.current = result;
            }
            // The best net becomes that of one more round, after which training ends.
            (None, Some(best)) => {
                self.current = best.clone();
                self.diverged = Some(round);
            }
            (None, None) => {
                return Err(Error::Untrainable(Box::new(Error::usage(
                    "the net diverged in the first epoch: weights or scores became non-finite",
                    "lower learning_rate; 0.001 to 0.01 is usual with optimiser=adam; or set normalise_features=z",
                ))));
            }
        }
        (self.nets, self.finished, self.before) = (nets, round, Some(Box::new(before)));
        Ok(true)
    }

    /// Returns the state after the last finished epoch.
    fn last_state(&self) -> NetState {
        let best = self.best.as_ref().map(|best| best.layers.clone());
        NetState { nets: self.nets.clone(), best, diverged: self.diverged }
    }
}

impl Learner for NetLearner<'_> {
    fn replay(&mut self, part: &PartFamily, _meter: &dyn Meter) -> Result<()> {
        let PartFamily::Net(net) = part else {
            return Err(Error::bug("net", "the checkpoint has a part of another family"));
        };
        self.current.layers.clone_from(&net.layers);
        Ok(())
    }

    fn state(&self, round: u32) -> Option<Value> {
        match &self.before {
            Some(before) if round < self.finished => serde_json::to_value(before).ok(),
            _ => serde_json::to_value(self.last_state()).ok(),
        }
    }

    fn restore(&mut self, state: &Value) -> Result<()> {
        let damaged = || Error::usage("the checkpoint does not fit the net", "start over without --resume");
        let NetState { nets, best, diverged } = NetState::deserialize(state).map_err(|_| damaged())?;
        let is_fitting = |layers: &[NetLayer]| {
            let shape = |layers: &[NetLayer]| -> Vec<[usize; 3]> {
                let shape = |layer: &NetLayer| [layer.inputs, layer.biases.len(), layer.weights.len()];
                layers.iter().map(shape).collect()
            };
            shape(layers) == shape(&self.current.layers)
        };
        let mut all = nets.iter().map(|net| &net.layers).chain(&best);
        let are_too_many = nets.len() > self.problem.settings.learner.restarts as usize;
        if are_too_many || !all.all(|layers| is_fitting(layers)) || !nets.iter().all(TrainedNet::is_valid) {
            return Err(damaged());
        }
        (self.nets, self.diverged) = (nets, diverged);
        self.best = match best {
            Some(layers) => self.evaluated(&layers, 0)?,
            None => None,
        };
        Ok(())
    }

    fn start(&mut self, _first: u32) -> Result<()> {
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<Option<PartUpdate>> {
        let is_trained = self.epoch(round)?;
        Ok(is_trained.then(|| PartUpdate::Whole(PartFamily::Net(self.function()))))
    }

    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>> {
        if round == 0 {
            let start = self.evaluated(&self.current.layers, round)?;
            return Ok(start.map(|start| start.log).unwrap_or_default());
        }
        Ok(self.current.log.clone())
    }

    fn validation_scores(&self, set: usize, _round: u32) -> Result<Cow<'_, Scores>> {
        Ok(Cow::Owned(self.validation.scores(&self.function(), set)?))
    }

    fn end_note(&self, rounds: u32) -> String {
        diverged_note(self.diverged.unwrap_or(rounds))
    }

    fn warning(&self) -> Option<String> {
        let restarts = self.problem.settings.learner.restarts as usize;
        match (self.diverged, restarts - self.nets.len()) {
            (Some(epoch), _) => Some(diverged_note(epoch)),
            (None, 0) => None,
            (None, lost) => Some(format!(
                "{lost} of {restarts} restarts diverged: weights or scores became non-finite; the others were kept; \
                 lower learning_rate"
            )),
        }
    }

    fn no_split(&self) -> Error {
        Error::bug("net", "the first epoch has no result")
    }
}

fn diverged_note(epoch: u32) -> String {
    format!(
        "the net diverged in epoch {epoch}: weights or scores became non-finite; the best epoch before it was kept; \
         lower learning_rate"
    )
}
