//! What to train.

use super::checkpoint::CheckpointPlan;
use super::fleet::Fleet;
use crate::config::{ObjectiveName, Parameters};
use crate::objective::{Objective, objective};
use planetree_base::storage::Location;
use planetree_model::model::Model;
use std::path::PathBuf;
use std::sync::Arc;

/// A dataset and its name in the log.
#[derive(Debug, Clone)]
pub struct NamedData {
    /// The name.
    pub name: String,
    /// Where it is.
    pub location: Location,
}

/// An objective of the caller's own.
#[derive(Clone)]
pub struct CustomObjective {
    /// Its name, which the model's configuration records.
    pub name: String,
    /// Makes one for a training.
    pub make: Arc<dyn Fn() -> Box<dyn Objective> + Send + Sync>,
}

/// What to train.
pub struct TrainRequest {
    /// The training data: one dataset, or several whose rows are taken end to end.
    pub data: Vec<Location>,
    /// Validation sets; the first decides on early stopping.
    pub validation: Vec<NamedData>,
    /// The parameters.
    pub parameters: Parameters,
    /// The model to start from.
    pub start: Option<Model>,
    /// Whether the trees of a forest are asked about the rows they did not see: for the log, and for
    /// [`Outcome::out_of_bag`](super::Outcome::out_of_bag).
    pub out_of_bag: bool,
    /// Whether the trees of a forest are grown again, split by split, to say how good they rank: for
    /// [`Outcome::strength`](super::Outcome::strength).
    pub strength: bool,
    /// Where the model may be written tree by tree. A forest does so when no tree is needed again, and then its
    /// outcome has no trees but says what was [written](super::Outcome::written).
    pub stream_to: Option<Location>,
    /// Bytes of memory to stay within.
    pub memory_limit: Option<u64>,
    /// Where binned data are cached when they do not fit.
    pub cache: PathBuf,
    /// Checkpoints.
    pub checkpoint: Option<CheckpointPlan>,
    /// Whether to go on from the checkpoint, if there is one.
    pub resume: bool,
    /// An objective of the caller's own, in place of that of the parameters.
    pub objective: Option<CustomObjective>,
    /// Where the rows are, if not in this process.
    pub fleet: Option<Arc<dyn Fleet>>,
}

impl TrainRequest {
    /// A training on one dataset, and nothing else.
    pub fn new(data: Location, parameters: Parameters) -> Self {
        TrainRequest {
            data: vec![data],
            validation: Vec::new(),
            parameters,
            start: None,
            out_of_bag: false,
            strength: false,
            stream_to: None,
            memory_limit: None,
            cache: std::env::temp_dir(),
            checkpoint: None,
            resume: false,
            objective: None,
            fleet: None,
        }
    }

    /// Adds a validation set; the first one decides on early stopping.
    pub fn validate(mut self, name: &str, location: Location) -> Self {
        self.validation.push(NamedData { name: name.to_owned(), location });
        self
    }

    /// Trains with an objective of the caller's own, by its name.
    pub fn objective<O: Objective + 'static>(
        mut self,
        name: &str,
        make: impl Fn() -> O + Send + Sync + 'static,
    ) -> Self {
        let make = move || -> Box<dyn Objective> { Box::new(make()) };
        self.objective = Some(CustomObjective { name: name.to_owned(), make: Arc::new(make) });
        self
    }

    /// Whether the objective is the squared error.
    pub(crate) fn is_squared_error(&self) -> bool {
        self.objective.is_none() && self.parameters.objective == ObjectiveName::Squared
    }

    /// The parameters as the model records them.
    pub(crate) fn configuration(&self) -> String {
        let parameters = self.parameters.to_toml();
        match &self.objective {
            Some(custom) => {
                format!("# objective: {}, of another crate\n{parameters}", custom.name.replace('\n', " "))
            }
            None => parameters,
        }
    }

    /// The objective of this training; `None` for the squared error, whose gradients are the residuals.
    pub(crate) fn make_objective(&self) -> Option<Box<dyn Objective>> {
        match &self.objective {
            Some(custom) => Some((custom.make)()),
            None => objective(&self.parameters),
        }
    }

    /// Where the training data are, as a message begins.
    pub fn place(&self) -> String {
        let places: Vec<String> = self.data.iter().map(Location::to_string).collect();
        places.join(", ")
    }

    /// Bytes that kept histograms may take.
    ///
    /// An eighth of the memory limit, which `Needs` counts on.
    pub fn histogram_bytes(&self) -> usize {
        /// Beyond this, building both children costs less than the memory.
        const MOST: u64 = 1 << 30;
        self.memory_limit.map_or(MOST, |limit| (limit / 8).clamp(1 << 20, MOST)) as usize
    }
}
