//! Drives a training run. This module contains the code that boosting and forests share.
//!
//! `open.rs` opens, checks and bins the data. `rounds.rs` runs the rounds of every stage, in which `members.rs` trains
//! the parts side by side, each by a [`Learner`], `class_fit.rs` fits the weights of classes, and
//! `coupling.rs` couples classes by a softmax. `validation.rs` evaluates
//! the model on validation sets, with the metrics that `metrics.rs` prepares, `log.rs` writes
//! the table of rounds, and `checkpoint.rs` saves and restores the current model. `memory.rs` estimates memory before the
//! work starts, `sampling.rs` samples rows or queries, and `scores.rs` holds the score of every row.

mod backend;
mod best_models;
mod boost_worker;
mod checkpoint;
mod class_fit;
mod coupling;
mod forest_tree;
mod gradient_summary;
mod grower;
mod leakage;
mod learner;
mod log;
mod members;
mod memory;
mod metrics;
mod open;
mod request;
mod rounds;
mod sampling;
mod scores;
mod split_costs;
mod stage_input;
mod strength;
mod validation;

pub(crate) use backend::BackendCell;
pub use backend::{Backend, Combination, EncodedJob, RemotePart, RemoteScores, RemoteStart, run_job};
pub(crate) use best_models::BestModel;
pub use boost_worker::{BoostWorker, TreeStart};
pub use checkpoint::{CheckpointPlan, Every};
pub(crate) use class_fit::{ClassFit, fit_labels};
pub use coupling::{CoupledClass, SoftmaxGroup};
pub(crate) use coupling::{expected_values, odds_of_classes};
pub use forest_tree::ForestTree;
pub(crate) use forest_tree::{ForestNode, ForestSplit};
pub use gradient_summary::GradientSummary;
pub use grower::{Draw, TreeGrower};
pub(crate) use learner::{Learner, LearnerOutputs, PartUpdate};
pub(crate) use log::{BestRound, LogValue};
pub use log::{LogEntry, write_rounds};
pub(crate) use members::{Member, Members, TrainingRows, diverged_on};
pub(crate) use memory::{DataSize, LearnerBytes};
pub use metrics::Metrics;
pub use open::check_labels;
pub(crate) use open::{BinKey, Sources, misfit, no_split, open_sources};
pub use request::CustomObjective;
pub use request::{GivenScores, NamedData, TrainRequest};
pub(crate) use rounds::Stage;
pub use rounds::Training;
pub use sampling::draw_limit;
pub(crate) use sampling::draw_rows;
pub use scores::{Scores, mean_of};
pub(crate) use split_costs::SplitCosts;
pub use stage_input::{FeatureValues, StartScores};
pub(crate) use stage_input::{MemberInput, PartSettings, SharedValues, StageContext, TrainingStart};
pub(crate) use strength::TreeStrength;
pub use strength::{MeanStrength, mean_strengths, write_strength};
pub use validation::value_of;
pub(crate) use validation::{ValidationData, ValidationSet};

use planetree_base::progress::{SharedMeter, unwatched};
use planetree_model::model::{Model, Tree};

/// Receives the progress of a training run.
pub trait Observer {
    /// Called when a phase begins, such as reading or training.
    fn phase(&mut self, name: &str);
    /// Called when a step of known size begins; the returned meter receives its progress.
    fn begin(&mut self, _step: &str, _total: u64, _unit: &'static str) -> SharedMeter {
        unwatched()
    }
    /// Called after each round with the values that were added to the log.
    fn round(&mut self, round: u32, rounds: u32, values: &[LogEntry]);
    /// Called with a message for the user.
    fn note(&mut self, text: &str);
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn phase(&mut self, _name: &str) {}
    fn round(&mut self, _round: u32, _rounds: u32, _values: &[LogEntry]) {}
    fn note(&mut self, _text: &str) {}
}

/// The result of a training run.
pub struct Outcome {
    /// The model up to its best round. It has no trees if they were streamed to the model file.
    pub model: Model,
    /// Size of the model if it was streamed to the model file, otherwise `None`.
    pub written: Option<ModelSize>,
    /// The training log.
    pub log: Vec<LogEntry>,
    /// The best round of the last stage, up to which the model was kept. `None` without early stopping.
    pub best: Option<BestRound>,
    /// The out-of-bag score of every training row, or NaN if the row is in the sample of every tree. `None` if not
    /// requested.
    pub out_of_bag: Option<Vec<f64>>,
    /// The ranking quality of every tree of a forest after each of its splits. `None` if not requested.
    pub strength: Option<Vec<TreeStrength>>,
    /// The models at the best rounds of the metrics in [`TrainRequest::best_for`], in that order.
    pub best_models: Vec<BestModel>,
    /// Time spent reading, binning and training.
    pub seconds: PhaseSeconds,
}

/// Size of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelSize {
    /// Number of trees.
    pub trees: u64,
    /// Number of leaves.
    pub leaves: u64,
}

impl ModelSize {
    /// Counts a tree and its leaves.
    pub fn add(&mut self, tree: &Tree) {
        self.trees += 1;
        self.leaves += tree.nodes.iter().filter(|node| node.split.is_none()).count() as u64;
    }
}

impl Outcome {
    /// Returns the size of the model, whether or not it was streamed to the model file.
    pub fn size(&self) -> ModelSize {
        self.written.unwrap_or_else(|| {
            let mut size = ModelSize::default();
            self.model.trees().for_each(|tree| size.add(tree));
            size
        })
    }
}

/// Time spent per phase, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct PhaseSeconds {
    /// Reading the manifest, labels and validation sets.
    pub load: f64,
    /// Binning the dataset.
    pub bin: f64,
    /// Growing trees.
    pub train: f64,
}
