//! A trained model: trees, and everything else that prediction needs.

mod check;
mod example;
mod importance;
mod origin;
mod table;
mod tree;

pub use importance::FeatureImportance;
pub use origin::Origin;
pub use table::ModelWriter;

impl Model {
    /// Refuses a model of pairs where single rows are looked at.
    pub fn check_single_rows(&self, what: impl std::fmt::Display) -> Result<()> {
        match self.ensemble {
            Ensemble::Boost | Ensemble::Bag => Ok(()),
            Ensemble::Wins => Err(Error::usage(
                format_args!(
                    "{what}: a model of pairs scores a document by its wins over others of its query"
                ),
                "use `planetree predict`, or train another preset, such as rf-point",
            )),
        }
    }

    /// The fingerprints of the datasets that it was trained on.
    pub fn trained_on(&self) -> impl Iterator<Item = Digest> {
        self.data.iter().filter(|data| data.name == "train").map(|data| data.fingerprint)
    }

    /// What a tree's value is multiplied by in a score.
    pub fn tree_weight(&self) -> f64 {
        match self.ensemble {
            Ensemble::Boost => 1.0,
            Ensemble::Bag | Ensemble::Wins => 1.0 / self.trees.len().max(1) as f64,
        }
    }
}

#[doc(hidden)]
pub use example::example;
pub use tree::{Branch, Node, Split, Tree};

use planetree_base::error::{Error, Result};
use planetree_base::storage::Digest;
use serde::{Deserialize, Serialize};

/// How the trees' values become a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ensemble {
    /// The base score plus the sum of the trees' values.
    Boost,
    /// The base score plus the mean of the trees' values.
    Bag,
    /// The mean of the trees' values is the chance that a document is better than another one of its query, given
    /// the difference of their features; the score is the mean chance against the others.
    Wins,
}

/// A feature that the model was trained with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFeature {
    /// The name of its column.
    pub name: String,
    /// What a missing value is replaced by; `None` leaves it missing, and every split says where it goes.
    pub fill: Option<f32>,
    /// The words behind its codes from 0, in their order; none for a feature of numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

impl ModelFeature {
    /// A feature of numbers whose missing values stay missing.
    pub fn new(name: impl Into<String>) -> Self {
        ModelFeature { name: name.into(), fill: None, words: Vec::new() }
    }
}

/// A dataset that took part in the training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataUsed {
    /// `train`, or the name of a validation set.
    pub name: String,
    /// The dataset's fingerprint: a hash of its rows.
    pub fingerprint: Digest,
    /// Its rows.
    pub rows: u64,
    /// Its queries.
    pub queries: u64,
}

/// A trained model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// How values become a score.
    pub ensemble: Ensemble,
    /// The score before the first tree.
    pub base_score: f64,
    /// The feature whose value is added to the base score, by place; 0 is added where it is missing and
    /// nothing stands for that.
    pub base_feature: Option<u32>,
    /// All features in the order of their columns; splits name them by place.
    pub features: Vec<ModelFeature>,
    /// The trees in the order of the rounds. Their values are already multiplied by the learning rate.
    pub trees: Vec<Tree>,
    /// The configuration as `key = value` TOML, every parameter named.
    pub configuration: String,
    /// What it was trained and validated on.
    pub data: Vec<DataUsed>,
    /// How many rounds were trained; more than the trees kept after early stopping.
    pub rounds: u32,
    /// Where it comes from.
    pub origin: Origin,
}
