//! A training from its request to its outcome: what boosting and forests share.
//!
//! `open.rs` is everything before the first tree that both need: data opened, checked, binned, a checkpoint
//! found. `validation.rs` follows the model on other datasets, `log.rs` is the table of rounds, `checkpoint.rs`
//! writes the model so far, `memory.rs` says before the work whether a limit can be kept, `sampling.rs` draws
//! rows or queries, `scores.rs` has the score of every row.

mod checkpoint;
mod crew;
mod fleet;
mod forest_tree;
mod gains;
mod gradient_summary;
mod grower;
mod leakage;
mod log;
mod memory;
mod open;
mod request;
mod sampling;
mod scores;
mod strength;
mod validation;

pub use checkpoint::Checkpoints;
pub use checkpoint::{CheckpointPlan, Every};
pub use crew::{Crew, TreeStart};
pub use fleet::Fleet;
pub use fleet::FleetCell;
pub use forest_tree::{ForestNode, ForestSplit, ForestTree};
pub(crate) use gains::check_gains;
pub use gradient_summary::GradientSummary;
pub use grower::{Draw, TreeGrower};
pub(crate) use leakage::warn_of_leakage;
pub use log::{BestRound, LogEntry, write_rounds};
pub use open::{Opened, find_checkpoint, no_split, open};
pub use request::{CustomObjective, NamedData, TrainRequest};
pub use sampling::draw_limit;
pub use sampling::draw_rows;
pub use scores::{Scores, mean_of};
pub use strength::{MeanStrength, TreeStrength, mean_strengths, write_strength};
pub use validation::{Metrics, ValidationSet, value_of};

use planetree_base::progress::{SharedMeter, unwatched};
use planetree_model::model::{Model, Tree};

/// Hears how the training goes.
pub trait Observer {
    /// A phase begins.
    fn phase(&mut self, name: &str);
    /// A step begins of which it is known how much there is to do; the meter is told how much is done.
    fn begin(&mut self, _step: &str, _total: u64, _unit: &'static str) -> SharedMeter {
        unwatched()
    }
    /// A round is done; the values are those of this round.
    fn round(&mut self, round: u32, rounds: u32, values: &[LogEntry]);
    /// Something the user should know.
    fn note(&mut self, text: &str);
}

/// What came out of a training.
pub struct Outcome {
    /// The model, up to its best round; without its trees if those are written already.
    pub model: Model,
    /// What was written to the model's file already.
    pub written: Option<ModelSize>,
    /// The log.
    pub log: Vec<LogEntry>,
    /// The round that early stopping kept.
    pub best: Option<BestRound>,
    /// The score of every training row by the trees that did not see it, NaN where all did; if asked for.
    pub out_of_bag: Option<Vec<f64>>,
    /// How good every tree of a forest ranks while it grows; if asked for.
    pub strength: Option<Vec<TreeStrength>>,
    /// Seconds of reading, binning and training.
    pub seconds: PhaseSeconds,
}

/// How large a model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelSize {
    /// Its trees.
    pub trees: u64,
    /// Their leaves.
    pub leaves: u64,
}

impl ModelSize {
    /// Counts a tree.
    pub fn add(&mut self, tree: &Tree) {
        self.trees += 1;
        self.leaves += tree.nodes.iter().filter(|node| node.split.is_none()).count() as u64;
    }
}

impl Outcome {
    /// How large the model is, written or not.
    pub fn size(&self) -> ModelSize {
        self.written.unwrap_or_else(|| {
            let mut size = ModelSize::default();
            self.model.trees.iter().for_each(|tree| size.add(tree));
            size
        })
    }
}

/// Where the time went.
#[derive(Debug, Clone, Copy, Default)]
pub struct PhaseSeconds {
    /// Reading the manifest, labels and validation sets.
    pub load: f64,
    /// From the dataset to binned partitions.
    pub bin: f64,
    /// Growing trees.
    pub train: f64,
}
