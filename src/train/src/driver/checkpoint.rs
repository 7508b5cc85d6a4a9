//! Checkpoints, which save the current model and the log in one file. The file is replaced atomically.

use super::log::LogEntry;
use super::rounds::ensemble_of;
use crate::config::Parameters;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_model::model::{DatasetRecord, Model, ModelFeature};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const STATE: &str = "planetree.checkpoint";

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
#[derive(Debug, Serialize, Deserialize)]
struct CheckpointState {
    start_trees: usize,
    log: Vec<LogEntry>,
}

/// Writes checkpoints when they are due.
pub struct Checkpoints {
    plan: CheckpointPlan,
    last: Instant,
}

impl Checkpoints {
    /// Creates a writer whose first interval starts now.
    pub fn new(plan: &CheckpointPlan) -> Self {
        Checkpoints { plan: plan.clone(), last: Instant::now() }
    }

    /// Returns whether a checkpoint is due after a round.
    pub fn is_due(&self, round: u32) -> bool {
        match self.plan.every {
            Every::Rounds(rounds) => round.is_multiple_of(rounds),
            Every::Time(time) => self.last.elapsed() >= time,
        }
    }

    /// Returns the error that reports that training was interrupted after a round and can be resumed.
    pub fn stopped(&self, round: u32) -> Error {
        Error::Stopped { round, place: self.plan.location.to_string() }
    }

    /// Writes a checkpoint and restarts the interval.
    pub fn write(&mut self, model: &Model, start_trees: usize, log: &[LogEntry]) -> Result<()> {
        let state = CheckpointState { start_trees, log: log.to_vec() };
        let state = serde_json::to_string(&state).expect("numbers and strings always serialise");
        model.write_with(&self.plan.location, &[(STATE, state)])?;
        self.last = Instant::now();
        Ok(())
    }
}

/// A checkpoint that was read.
pub struct Resumed {
    /// The model at the checkpoint.
    pub model: Model,
    /// Number of trees that come from the start model. They precede the trees of this training run.
    pub start_trees: usize,
    /// The log up to the checkpoint.
    pub log: Vec<LogEntry>,
}

/// Reads the checkpoint and checks that it belongs to this training run. Returns `None` if the file does not exist.
pub fn resume(location: &Location, expected: &Model, parameters: &Parameters) -> Result<Option<Resumed>> {
    if location.size()?.is_none() {
        return Ok(None);
    }
    let (model, metadata) = Model::read_with(location)?;
    let state: Option<CheckpointState> = metadata.get(STATE).and_then(|text| serde_json::from_str(text).ok());
    let Some(state) = state else {
        return Err(Error::place(
            location,
            "this is a model, not a checkpoint",
            "pass the checkpoint file of the interrupted training run with --checkpoint",
        ));
    };
    if let Some(difference) = difference(&model, state.start_trees, expected) {
        return Err(Error::place(
            location,
            format_args!("the checkpoint is from a different training run: {difference}"),
            "use the data and parameters of that run, or start over without --resume",
        ));
    }
    if model.rounds > parameters.num_trees {
        return Err(Error::place(
            location,
            format_args!(
                "the checkpoint has {} rounds already, num_trees is {}",
                model.rounds, parameters.num_trees
            ),
            "raise num_trees, or start over without --resume",
        ));
    }
    Ok(Some(Resumed { model, start_trees: state.start_trees, log: state.log }))
}

/// Describes the first difference between the training run that wrote a checkpoint and this run. The data are
/// compared first, because other differences may follow from them.
fn difference(model: &Model, start_trees: usize, expected: &Model) -> Option<String> {
    if let Some(difference) = data_difference(&model.data, &expected.data) {
        return Some(difference);
    }
    let (expected_trees, start_parts) = (ensemble_of(expected), expected.parts.len() - 1);
    let is_same_start = model.intercept == expected.intercept
        && model.parts.len() == expected.parts.len()
        && model.parts[..start_parts] == expected.parts[..start_parts]
        && model.parts[start_parts].family.trees().is_some_and(|ensemble| {
            ensemble.trees.get(..start_trees) == Some(&expected_trees.trees[..])
                && ensemble.base_score == expected_trees.base_score
                && ensemble.base_feature == expected_trees.base_feature
        });
    if !is_same_start {
        return Some("it started from another model".to_owned());
    }
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("num_trees")).map(str::to_owned).collect()
    };
    let (theirs, ours) = (lines(&model.configuration), lines(&expected.configuration));
    if let Some((theirs, ours)) = theirs.iter().zip(&ours).find(|(theirs, ours)| theirs != ours) {
        return Some(format!("it has {theirs}, this run has {ours}"));
    }
    let names =
        |features: &[ModelFeature]| features.iter().map(|feature| feature.name.clone()).collect::<Vec<_>>();
    if theirs.len() != ours.len() || names(&model.features) != names(&expected.features) {
        return Some("its parameters or features differ".to_owned());
    }
    let mut features = model.features.iter().zip(&expected.features);
    if let Some((feature, _)) = features.find(|(theirs, ours)| theirs.words != ours.words) {
        return Some(format!("the categories of feature {} have different codes", feature.name));
    }
    None
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
