//! The training request, which contains the data, the parameters and all options of a training run.

use super::backend::Backend;
use super::checkpoint::CheckpointPlan;
use crate::config::{BoostSettings, ObjectiveParameters, TrainingPlan};
use crate::objective::{Objective, objective};
use planetree_base::storage::{Digest, Location, RunningDigest};
use planetree_metric::Metric;
use planetree_model::cost::CostTable;
use planetree_model::model::Model;
use std::path::PathBuf;
use std::sync::Arc;

/// A validation set and its name in the log.
#[derive(Debug, Clone)]
pub struct NamedData {
    /// The name in the log.
    pub name: String,
    /// The location of the dataset.
    pub location: Location,
}

/// Scores that boosting starts from, as they are given by the caller. They are not part of the trained model: its value
/// is added to them.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenScores {
    /// The score of each training row.
    pub training: Vec<f64>,
    /// The scores of each validation set, in the order of the request.
    pub validation: Vec<Vec<f64>>,
}

impl GivenScores {
    /// Returns a hash of all scores.
    pub(crate) fn digest(&self) -> Digest {
        let mut digest = RunningDigest::new();
        for scores in std::iter::once(&self.training).chain(&self.validation) {
            digest.update(&(scores.len() as u64).to_le_bytes());
            scores.iter().for_each(|score| digest.update(&score.to_bits().to_le_bytes()));
        }
        digest.digest()
    }
}

/// A custom objective, which is implemented by the caller.
#[derive(Clone)]
pub struct CustomObjective {
    /// The name that the model's configuration records.
    pub name: String,
    /// Creates a new instance for each training run.
    pub make: Arc<dyn Fn() -> Box<dyn Objective> + Send + Sync>,
}

/// A training request.
pub struct TrainRequest {
    /// The training data: one dataset, or several to concatenate.
    pub data: Vec<Location>,
    /// Validation sets; the first one drives early stopping.
    pub validation: Vec<NamedData>,
    /// The parameters of all stages, the number of runs, and what is learned.
    pub plan: TrainingPlan,
    /// The model whose trees and scores the training run starts from. `None` starts without trees.
    pub start: Option<Model>,
    /// The scores that boosting starts from, besides those of a model. `None` starts without them.
    pub start_scores: Option<GivenScores>,
    /// Whether a forest computes out-of-bag scores, for the log and for
    /// [`Outcome::out_of_bag`](super::Outcome::out_of_bag).
    pub out_of_bag: bool,
    /// Whether a forest measures the ranking quality of each tree after every split, for
    /// [`Outcome::strength`](super::Outcome::strength).
    pub strength: bool,
    /// A file to stream the model to, tree by tree. It is used only by forests, and only if no tree is needed again.
    /// The outcome then contains no trees, only the [size](super::Outcome::written) of the model.
    pub stream_to: Option<Location>,
    /// Memory limit in bytes. `None` means no limit.
    pub memory_limit: Option<u64>,
    /// Whether boosting stores binned data once, by row, instead of by row and by column. The model is the same.
    pub compact: bool,
    /// Directory that caches binned data if they exceed the memory limit.
    pub cache: PathBuf,
    /// Location and interval of checkpoints. `None` means no checkpoints.
    pub checkpoint: Option<CheckpointPlan>,
    /// Whether to resume from the checkpoint, if there is one.
    pub resume: bool,
    /// A custom objective, which overrides the objective of the parameters.
    pub objective: Option<CustomObjective>,
    /// Metrics whose best rounds on the first validation set become models of their own, for
    /// [`Outcome::best_models`](super::Outcome::best_models). They must be among the metrics of the parameters.
    pub best_for: Vec<Metric>,
    /// The costs of features, which the parameters `cost_lambda` and `cost_batch` refer to. `None` means that all features
    /// are free.
    pub costs: Option<CostTable>,
    /// Whether to train only on the features that all datasets of `data` have.
    pub common_features: bool,
    /// The backend that holds the rows. `None` means this process.
    pub backend: Option<Arc<dyn Backend>>,
}

impl TrainRequest {
    /// Creates a request to train on one dataset. All other fields have their default values.
    pub fn new(data: Location, plan: impl Into<TrainingPlan>) -> Self {
        TrainRequest {
            data: vec![data],
            validation: Vec::new(),
            plan: plan.into(),
            start: None,
            start_scores: None,
            out_of_bag: false,
            strength: false,
            stream_to: None,
            memory_limit: None,
            compact: false,
            cache: std::env::temp_dir(),
            checkpoint: None,
            resume: false,
            objective: None,
            best_for: Vec::new(),
            costs: None,
            common_features: false,
            backend: None,
        }
    }

    /// Adds a validation set; the first one drives early stopping.
    pub fn validate(mut self, name: &str, location: Location) -> Self {
        self.validation.push(NamedData { name: name.to_owned(), location });
        self
    }

    /// Sets a custom objective and the name under which the model records it.
    pub fn objective<O: Objective + 'static>(
        mut self,
        name: &str,
        make: impl Fn() -> O + Send + Sync + 'static,
    ) -> Self {
        let make = move || -> Box<dyn Objective> { Box::new(make()) };
        self.objective = Some(CustomObjective { name: name.to_owned(), make: Arc::new(make) });
        self
    }

    /// Returns whether the objective is the squared error.
    pub(crate) fn is_squared_error(&self, parameters: &BoostSettings) -> bool {
        self.objective.is_none() && parameters.learner.objective == ObjectiveParameters::Squared
    }

    /// Returns the plan as the model records it.
    pub(crate) fn configuration(&self) -> String {
        let parameters = match &self.costs {
            Some(costs) => format!("{}{}", costs.to_record(), self.plan.with_cost_values().to_toml()),
            None => self.plan.to_toml(),
        };
        match &self.objective {
            Some(custom) => {
                format!("# objective: {}, of another crate\n{parameters}", custom.name.replace('\n', " "))
            }
            None => parameters,
        }
    }

    /// Creates the objective of this training run. `None` means squared error, whose gradients are the residuals.
    pub(crate) fn make_objective(&self, parameters: &BoostSettings) -> Option<Box<dyn Objective>> {
        match &self.objective {
            Some(custom) => Some((custom.make)()),
            None => objective(&parameters.learner.objective, parameters.seed),
        }
    }

    /// Returns the local file that trees are streamed to as they are grown, unless a later round needs them again: for a
    /// checkpoint, for early stopping, or as the start of a later stage.
    pub(super) fn streamed_to(&self, early_stopping_rounds: Option<u32>) -> Option<&Location> {
        let is_final = self.plan.only().is_some()
            && self.checkpoint.is_none()
            && self.best_for.is_empty()
            && early_stopping_rounds.is_none();
        self.stream_to.as_ref().filter(|location| is_final && matches!(location, Location::Local(_)))
    }

    /// Returns whether the trees of a part stay in memory until the end.
    pub(crate) fn keeps_trees(&self, early_stopping_rounds: Option<u32>) -> bool {
        self.streamed_to(early_stopping_rounds).is_none()
    }

    /// Returns the locations of the training data, for use as a prefix of messages.
    pub fn place(&self) -> String {
        let places: Vec<String> = self.data.iter().map(Location::to_string).collect();
        places.join(", ")
    }

    /// Returns the maximum size in bytes of the histograms that are kept. It is an eighth of the memory limit, as
    /// `Needs` assumes.
    pub fn histogram_bytes(&self) -> usize {
        /// Upper bound, which also applies without a memory limit. Keeping still more histograms would cost more than
        /// it saves: without the histogram of a node, those of both children are built from their rows.
        const MOST: u64 = 1 << 30;
        self.memory_limit.map_or(MOST, |limit| (limit / 8).clamp(1 << 20, MOST)) as usize
    }
}
