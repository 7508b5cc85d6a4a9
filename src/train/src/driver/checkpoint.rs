//! Checkpoints, which save the current model and the log in one file. The file is replaced atomically.

use super::log::LogEntry;
use super::request::TrainRequest;
use crate::config::TrainingPlan;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_model::model::{
    CHECKPOINT, DatasetRecord, Model, ModelFeature, Normalisation, Part, PartFamily,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The interval between checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// Every given number of rounds.
    Rounds(u32),
    /// Whenever this much time has passed since the last checkpoint.
    Time(Duration),
}

/// Location and interval of checkpoints.
#[derive(Debug, Clone)]
pub struct CheckpointPlan {
    /// The file to write.
    pub location: Location,
    /// Interval between checkpoints.
    pub every: Every,
}

/// The contents of a checkpoint besides the model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CheckpointState {
    /// The stage in progress, from 1.
    #[serde(default = "first_stage", skip_serializing_if = "is_first_stage")]
    pub stage: u32,
    /// Number of the first part of the stage.
    #[serde(default)]
    pub first_part: usize,
    /// Number of finished rounds of the stage. `None` in files of earlier versions, in which it is that of the model.
    #[serde(default)]
    pub round: Option<u32>,
    /// The parts of the stage that every round replaces. Their content after the best round follows the parts of the
    /// model, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best: Vec<usize>,
    /// What the learners of the stage need besides their parts, by part. Empty if they need nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<Option<Value>>,
    /// The log so far.
    pub log: Vec<LogEntry>,
}

fn first_stage() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first_stage(stage: &u32) -> bool {
    *stage == 1
}

impl CheckpointState {
    /// Returns the number of finished rounds of the stage.
    pub(super) fn round_of(&self, model: &Model) -> u32 {
        self.round.unwrap_or(model.rounds)
    }

    /// Returns whether the checkpoint was written at the end of a stage, when the parts of the next one did not exist.
    pub(super) fn is_between_stages(&self, model: &Model) -> bool {
        self.stage > 1 && self.round == Some(0) && self.first_part == model.parts.len()
    }

    /// Returns the error for a part that began with other content than in this training run.
    pub(super) fn started_otherwise(&self, request: &TrainRequest, part: usize) -> Error {
        let place = request.checkpoint.as_ref().map(|plan| plan.location.to_string()).unwrap_or_default();
        different(place, &format!("part {} started from another model", self.first_part + part))
    }
}

fn different(place: impl std::fmt::Display, difference: &str) -> Error {
    Error::place(
        place,
        format_args!("the checkpoint is from a different training run: {difference}"),
        "use the data and parameters of that run, or start over without --resume",
    )
}

/// Writes checkpoints when they are due.
pub(super) struct Checkpoints {
    plan: CheckpointPlan,
    last: Instant,
}

impl Checkpoints {
    /// Creates a writer whose first interval starts now.
    pub(super) fn new(plan: &CheckpointPlan) -> Self {
        Checkpoints { plan: plan.clone(), last: Instant::now() }
    }

    /// Returns whether a checkpoint is due after a round.
    pub(super) fn is_due(&self, round: u32) -> bool {
        match self.plan.every {
            Every::Rounds(rounds) => round.is_multiple_of(rounds),
            Every::Time(time) => self.last.elapsed() >= time,
        }
    }

    /// Returns the error that reports that training was interrupted after a round and can be resumed.
    pub(super) fn stopped(&self, round: u32) -> Error {
        Error::Stopped { round, place: self.plan.location.to_string() }
    }

    /// Writes a checkpoint and restarts the interval. `best` is the content of the parts `state.best`.
    pub(super) fn write(
        &mut self,
        model: &Model,
        best: &[PartFamily],
        state: &CheckpointState,
    ) -> Result<()> {
        let state = serde_json::to_string(state).expect("numbers and strings always serialise");
        // With a weight of 0, the content of earlier rounds does not change the scores of the checkpoint.
        let best = best.iter().map(|content| Part {
            name: "best".to_owned(),
            weight: 0.0,
            normalisation: Normalisation::None,
            configuration: String::new(),
            role: None,
            family: content.clone(),
        });
        let best: Vec<Part> = best.collect();
        match best.is_empty() {
            true => model.write_with(&self.plan.location, &[(CHECKPOINT, state)])?,
            false => {
                let parts = model.parts.iter().cloned().chain(best).collect();
                Model { parts, ..model.clone() }.write_with(&self.plan.location, &[(CHECKPOINT, state)])?;
            }
        }
        self.last = Instant::now();
        Ok(())
    }
}

/// A checkpoint that was read.
pub(super) struct Resumed {
    /// The model at the checkpoint.
    pub model: Model,
    /// Everything else.
    pub state: CheckpointState,
}

/// Reads the checkpoint and checks that it belongs to this training run. `expected` is the model before the first round.
/// Returns `None` if the file does not exist.
pub(super) fn resume(location: &Location, expected: &Model, plan: &TrainingPlan) -> Result<Option<Resumed>> {
    if location.size()?.is_none() {
        return Ok(None);
    }
    let (model, metadata) = Model::read_with(location)?;
    let state: Option<CheckpointState> =
        metadata.get(CHECKPOINT).and_then(|text| serde_json::from_str(text).ok());
    let Some(state) = state else {
        return Err(Error::place(
            location,
            "this is a model, not a checkpoint",
            "pass the checkpoint file of the interrupted training run with --checkpoint",
        ));
    };
    if let Some(difference) = difference(&model, &state, expected, plan) {
        return Err(different(location, &difference));
    }
    let num_trees = plan.stages.get(state.stage as usize - 1).map_or(0, |stage| stage.num_trees);
    let round = state.round_of(&model);
    if round > num_trees {
        return Err(Error::place(
            location,
            format_args!("the checkpoint has {round} rounds already, num_trees is {num_trees}"),
            "raise num_trees, or start over without --resume",
        ));
    }
    Ok(Some(Resumed { model, state }))
}

/// Describes the first difference between the training run that wrote a checkpoint and this run. The data are
/// compared first, because other differences may follow from them.
fn difference(
    model: &Model,
    state: &CheckpointState,
    expected: &Model,
    plan: &TrainingPlan,
) -> Option<String> {
    if let Some(difference) = data_difference(&model.data, &expected.data) {
        return Some(difference);
    }
    let is_same_start = model.intercept == expected.intercept
        && expected.parts.len() <= state.first_part
        && model.parts.get(..expected.parts.len()) == Some(&expected.parts[..])
        && (state.first_part < model.parts.len() || state.is_between_stages(model));
    if !is_same_start {
        return Some("it started from another model".to_owned());
    }
    if model.start_scores != expected.start_scores {
        return Some("it started from other start scores".to_owned());
    }
    if let Some(difference) = setting_difference(&model.configuration, &expected.configuration) {
        return Some(difference);
    }
    if state.stage == 0 || state.stage as usize > plan.stages.len() {
        return Some("its parameters differ".to_owned());
    }
    let is_tree_count = |line: &&str| line.starts_with("num_trees");
    let counts = model.configuration.lines().filter(is_tree_count).zip(&plan.stages);
    for (stage, (theirs, ours)) in (1..state.stage).zip(counts) {
        if theirs != format!("num_trees = {}", ours.num_trees) {
            let ours = ours.num_trees;
            return Some(format!("its stage {stage} ended with {theirs}, this run has num_trees = {ours}"));
        }
    }
    let names =
        |features: &[ModelFeature]| features.iter().map(|feature| feature.name.clone()).collect::<Vec<_>>();
    if names(&model.features) != names(&expected.features) {
        return Some("its parameters or features differ".to_owned());
    }
    let mut features = model.features.iter().zip(&expected.features);
    if let Some((feature, _)) = features.find(|(theirs, ours)| theirs.words != ours.words) {
        return Some(format!("the categories of feature {} have different codes", feature.name));
    }
    None
}

/// A line of a configuration: the number of its stage, which is 0 outside of `[[stage]]` tables, its key and its value.
struct ConfigLine<'a> {
    stage: usize,
    key: &'a str,
    value: &'a str,
}

impl ConfigLine<'_> {
    fn shown(&self) -> String {
        let ConfigLine { stage, key, value } = self;
        let line = if value.is_empty() { (*key).to_owned() } else { format!("{key} = {value}") };
        if *stage == 0 { line } else { format!("{line} in stage {stage}") }
    }
}

/// Describes the first setting other than the number of trees that differs between two configurations. Settings are
/// compared by their keys, because configurations leave out some of those at their defaults.
fn setting_difference(theirs: &str, ours: &str) -> Option<String> {
    let (theirs, ours) = (config_lines(theirs), config_lines(ours));
    fn same<'l, 't>(lines: &'l [ConfigLine<'t>], line: &ConfigLine<'_>) -> Option<&'l ConfigLine<'t>> {
        lines.iter().find(|other| (other.stage, other.key) == (line.stage, line.key))
    }
    for line in &theirs {
        match same(&ours, line) {
            Some(own) if own.value == line.value => {}
            Some(own) => return Some(format!("it has {}, this run has {}", line.shown(), own.shown())),
            None => return Some(format!("it has {}, this run does not", line.shown())),
        }
    }
    let line = ours.iter().find(|line| same(&theirs, line).is_none())?;
    Some(format!("this run has {}, it does not", line.shown()))
}

fn config_lines(text: &str) -> Vec<ConfigLine<'_>> {
    let mut stage = 0;
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("num_trees")) {
        if line == "[[stage]]" {
            stage += 1;
            continue;
        }
        let (key, value) = line.split_once(" = ").unwrap_or((line, ""));
        lines.push(ConfigLine { stage, key, value });
    }
    lines
}

fn data_difference(theirs: &[DatasetRecord], ours: &[DatasetRecord]) -> Option<String> {
    // All training sets are called `train`. They are compared in order, because their order determines the row numbers.
    let split = |data: &[DatasetRecord]| -> (Vec<DatasetRecord>, Vec<DatasetRecord>) {
        data.iter().cloned().partition(|data| data.name == "train")
    };
    let shown = |data: &DatasetRecord| {
        let DatasetRecord { rows, queries, fingerprint, .. } = data;
        format!("{rows} rows, {queries} queries, fingerprint {fingerprint}")
    };
    let differ = |what: &str, theirs: &DatasetRecord, ours: &DatasetRecord| {
        Some(format!("the {what} data differ: it has {}; this one {}", shown(theirs), shown(ours)))
    };
    let ((their_train, theirs), (our_train, ours)) = (split(theirs), split(ours));
    if their_train.len() != our_train.len() {
        let (theirs, ours) = (their_train.len(), our_train.len());
        return Some(format!("the training data differ: it has {theirs} datasets, this one {ours}"));
    }
    if let Some((theirs, ours)) = their_train.iter().zip(&our_train).find(|(theirs, ours)| theirs != ours) {
        return differ("training", theirs, ours);
    }
    for ours in &ours {
        match theirs.iter().find(|theirs| theirs.name == ours.name) {
            Some(theirs) if theirs != ours => return differ(&ours.name, theirs, ours),
            Some(_) => {}
            None => return Some(format!("it has no validation set {}", ours.name)),
        }
    }
    (theirs.len() != ours.len()).then(|| "it has more validation sets".to_owned())
}

#[cfg(test)]
mod tests {
    use super::setting_difference;

    #[test]
    fn settings_are_compared_by_key() {
        let text = "seed = 0\nnum_trees = 5\nmissing = \"zero\"\n";
        assert_eq!(setting_difference(text, &text.replace('5', "7")), None);
        let others = [
            ("seed = 1\nmissing = \"zero\"\n", "it has seed = 0, this run has seed = 1"),
            ("seed = 0\nleaf = \"mean\"\nmissing = \"zero\"\n", "this run has leaf = \"mean\", it does not"),
            ("seed = 0\n", "it has missing = \"zero\", this run does not"),
        ];
        for (other, difference) in others {
            assert_eq!(setting_difference(text, other).as_deref(), Some(difference));
        }
        let stages = "[[stage]]\nseed = 0\n\n[[stage]]\nseed = 0\n";
        let other = "[[stage]]\nseed = 0\n\n[[stage]]\nseed = 3\n";
        let difference = "it has seed = 0 in stage 2, this run has seed = 3 in stage 2";
        assert_eq!(setting_difference(stages, other).as_deref(), Some(difference));
        let custom = "# objective: mine, of another crate\n";
        let difference = "it has # objective: mine, of another crate, this run does not";
        assert_eq!(setting_difference(&format!("{custom}{text}"), text).as_deref(), Some(difference));
    }
}
