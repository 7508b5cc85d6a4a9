//! The training request.

use super::backend::Backend;
use super::checkpoint::CheckpointPlan;
use crate::config::{BoostSettings, ObjectiveParameters, Parameters};
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
    /// Its location.
    pub location: Location,
}

/// A custom objective.
#[derive(Clone)]
pub struct CustomObjective {
    /// Its name, which the model's configuration records.
    pub name: String,
    /// Creates an instance for a training.
    pub make: Arc<dyn Fn() -> Box<dyn Objective> + Send + Sync>,
}

/// A training request.
pub struct TrainRequest {
    /// The training data: one dataset, or several to concatenate.
    pub data: Vec<Location>,
    /// Validation sets; the first one drives early stopping.
    pub validation: Vec<NamedData>,
    /// The parameters.
    pub parameters: Parameters,
    /// The model to start from.
    pub start: Option<Model>,
    /// Forests: whether to compute out-of-bag scores, for the log and for
    /// [`Outcome::out_of_bag`](super::Outcome::out_of_bag).
    pub out_of_bag: bool,
    /// Forests: whether to measure the ranking quality of each tree after every split, for
    /// [`Outcome::strength`](super::Outcome::strength).
    pub strength: bool,
    /// A file to stream the model to, tree by tree. A forest does so if no tree is needed again; the outcome then
    /// has no trees, only the size of what was [written](super::Outcome::written).
    pub stream_to: Option<Location>,
    /// Memory limit in bytes.
    pub memory_limit: Option<u64>,
    /// Cache directory of binned data that exceed the memory limit.
    pub cache: PathBuf,
    /// Location and interval of checkpoints; `None` for none.
    pub checkpoint: Option<CheckpointPlan>,
    /// Whether to resume from the checkpoint, if there is one.
    pub resume: bool,
    /// A custom objective, which overrides that of the parameters.
    pub objective: Option<CustomObjective>,
    /// The backend that holds the rows, if not this process.
    pub backend: Option<Arc<dyn Backend>>,
}

impl TrainRequest {
    /// A request to train on one dataset, with everything else at its default.
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
            backend: None,
        }
    }

    /// Adds a validation set; the first one drives early stopping.
    pub fn validate(mut self, name: &str, location: Location) -> Self {
        self.validation.push(NamedData { name: name.to_owned(), location });
        self
    }

    /// Trains with a custom objective under this name.
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
    pub(crate) fn is_squared_error(&self, parameters: &BoostSettings) -> bool {
        self.objective.is_none() && parameters.learner.objective == ObjectiveParameters::Squared
    }

    /// The parameters as recorded in the model.
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
    pub(crate) fn make_objective(&self, parameters: &BoostSettings) -> Option<Box<dyn Objective>> {
        match &self.objective {
            Some(custom) => Some((custom.make)()),
            None => objective(&parameters.learner.objective, parameters.seed),
        }
    }

    /// The locations of the training data, as a prefix of messages.
    pub fn place(&self) -> String {
        let places: Vec<String> = self.data.iter().map(Location::to_string).collect();
        places.join(", ")
    }

    /// Maximum bytes of kept histograms: an eighth of the memory limit, as assumed by `Needs`.
    pub fn histogram_bytes(&self) -> usize {
        /// Beyond this, building both children costs less than the memory.
        const MOST: u64 = 1 << 30;
        self.memory_limit.map_or(MOST, |limit| (limit / 8).clamp(1 << 20, MOST)) as usize
    }
}
