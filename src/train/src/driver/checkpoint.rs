//! Checkpoints: the model so far and the log, in one file that replaces the last one whole.

use super::log::LogEntry;
use crate::config::Parameters;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_model::model::{DataUsed, Model, ModelFeature};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const STATE: &str = "planetree.checkpoint";

/// How often a checkpoint is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// So many rounds.
    Rounds(u32),
    /// So much time.
    Time(Duration),
}

/// Where and how often.
#[derive(Debug, Clone)]
pub struct CheckpointPlan {
    /// The file.
    pub location: Location,
    /// How often.
    pub every: Every,
}

/// What a checkpoint holds beside the model.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    start_trees: usize,
    log: Vec<LogEntry>,
}

/// Writes checkpoints when they are due.
pub struct Checkpoints {
    plan: CheckpointPlan,
    last: Instant,
}

impl Checkpoints {
    /// From now on.
    pub fn new(plan: &CheckpointPlan) -> Self {
        Checkpoints { plan: plan.clone(), last: Instant::now() }
    }

    /// Whether one is due after a round.
    pub fn is_due(&self, round: u32) -> bool {
        match self.plan.every {
            Every::Rounds(rounds) => round.is_multiple_of(rounds),
            Every::Time(time) => self.last.elapsed() >= time,
        }
    }

    /// What to say when the user stops the training after a round.
    pub fn stopped(&self, round: u32) -> Error {
        Error::Stopped { round, place: self.plan.location.to_string() }
    }

    /// Writes one.
    pub fn write(&mut self, model: &Model, start_trees: usize, log: &[LogEntry]) -> Result<()> {
        let state = State { start_trees, log: log.to_vec() };
        let state = serde_json::to_string(&state).expect("numbers and strings always serialise");
        model.write_with(&self.plan.location, &[(STATE, state)])?;
        self.last = Instant::now();
        Ok(())
    }
}

/// A checkpoint that was read.
pub struct Resumed {
    /// The model so far.
    pub model: Model,
    /// Its trees that come from the start model.
    pub start_trees: usize,
    /// The log so far.
    pub log: Vec<LogEntry>,
}

/// Reads a checkpoint, if there is one, and checks that it is of this training.
pub fn resume(location: &Location, expected: &Model, parameters: &Parameters) -> Result<Option<Resumed>> {
    if location.size()?.is_none() {
        return Ok(None);
    }
    let (model, metadata) = Model::read_with(location)?;
    let state: Option<State> = metadata.get(STATE).and_then(|text| serde_json::from_str(text).ok());
    let Some(state) = state else {
        return Err(Error::place(
            location,
            "this is a model, not a checkpoint",
            "name the checkpoint of the training that was stopped",
        ));
    };
    if let Some(difference) = difference(&model, state.start_trees, expected) {
        return Err(Error::place(
            location,
            format_args!("the checkpoint is of another training: {difference}"),
            "use the data and parameters of that training, or start anew without --resume",
        ));
    }
    if model.rounds > parameters.num_trees {
        return Err(Error::place(
            location,
            format_args!(
                "the checkpoint has {} rounds already, num_trees is {}",
                model.rounds, parameters.num_trees
            ),
            "raise num_trees, or start anew without --resume",
        ));
    }
    Ok(Some(Resumed { model, start_trees: state.start_trees, log: state.log }))
}

/// What differs between the training of a checkpoint and this one. Data come first: everything else follows
/// from them.
fn difference(model: &Model, start_trees: usize, expected: &Model) -> Option<String> {
    if let Some(difference) = data_difference(&model.data, &expected.data) {
        return Some(difference);
    }
    if model.trees.get(..start_trees) != Some(&expected.trees[..])
        || model.base_score != expected.base_score
        || model.base_feature != expected.base_feature
    {
        return Some("it started from another model".to_owned());
    }
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("num_trees")).map(str::to_owned).collect()
    };
    let (theirs, ours) = (lines(&model.configuration), lines(&expected.configuration));
    if let Some((theirs, ours)) = theirs.iter().zip(&ours).find(|(theirs, ours)| theirs != ours) {
        return Some(format!("it has {theirs}, this one {ours}"));
    }
    let names =
        |features: &[ModelFeature]| features.iter().map(|feature| feature.name.clone()).collect::<Vec<_>>();
    if theirs.len() != ours.len() || names(&model.features) != names(&expected.features) {
        return Some("its parameters or features are others".to_owned());
    }
    let mut features = model.features.iter().zip(&expected.features);
    if let Some((feature, _)) = features.find(|(theirs, ours)| theirs.words != ours.words) {
        return Some(format!("the words of {} have other codes", feature.name));
    }
    None
}

fn data_difference(theirs: &[DataUsed], ours: &[DataUsed]) -> Option<String> {
    // Several training sets are all called `train`, and their order numbers the rows.
    let split = |data: &[DataUsed]| -> (Vec<DataUsed>, Vec<DataUsed>) {
        data.iter().cloned().partition(|data| data.name == "train")
    };
    let shown = |data: &DataUsed| {
        let DataUsed { rows, queries, fingerprint, .. } = data;
        format!("{rows} rows, {queries} queries, fingerprint {fingerprint}")
    };
    let differ = |what: &str, theirs: &DataUsed, ours: &DataUsed| {
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
