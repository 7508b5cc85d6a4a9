//! A trained model: its trees and everything else that prediction needs.

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
    /// Returns an error for a pairwise model, which cannot score single rows. The message starts with `context`.
    pub fn check_single_rows(&self, context: impl std::fmt::Display) -> Result<()> {
        match self.ensemble {
            Ensemble::Boost | Ensemble::Bag => Ok(()),
            Ensemble::Wins => Err(Error::usage(
                format_args!(
                    "{context}: a pairwise model cannot score single rows; it compares the documents of a query"
                ),
                "use `planetree predict`, or train with another preset, such as rf-point",
            )),
        }
    }

    /// The fingerprints of the training datasets.
    pub fn trained_on(&self) -> impl Iterator<Item = Digest> {
        self.data.iter().filter(|data| data.name == "train").map(|data| data.fingerprint)
    }

    /// The factor by which a tree's value enters the score.
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

/// How a score is computed from the values of the trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ensemble {
    /// The base score plus the sum of the trees' values.
    Boost,
    /// The base score plus the mean of the trees' values.
    Bag,
    /// A pairwise model: the mean of the trees' values is the probability that a document is better than another
    /// document of its query, given the difference of their features. The score is the mean probability over the
    /// other documents.
    Wins,
}

/// A feature of the training data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFeature {
    /// Column name.
    pub name: String,
    /// The value that replaces missing values. With `None` they stay missing, and each split has a branch for them.
    pub fill: Option<f32>,
    /// The categories of a categorical feature, in the order of their codes, which start from 0; empty for numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

impl ModelFeature {
    /// A numeric feature without a fill value.
    pub fn new(name: impl Into<String>) -> Self {
        ModelFeature { name: name.into(), fill: None, words: Vec::new() }
    }
}

/// A training or validation dataset of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// `train`, or the name of a validation set.
    pub name: String,
    /// The dataset's fingerprint: a hash of its rows.
    pub fingerprint: Digest,
    /// Number of rows.
    pub rows: u64,
    /// Number of queries.
    pub queries: u64,
}

/// A trained model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// How the values of the trees are combined.
    pub ensemble: Ensemble,
    /// The score before the first tree.
    pub base_score: f64,
    /// Index of the feature whose value is added to the base score. A missing value counts as the feature's fill
    /// value, or as 0 if it has none.
    pub base_feature: Option<u32>,
    /// All features in column order; splits refer to them by index.
    pub features: Vec<ModelFeature>,
    /// The trees in the order of the rounds. The learning rate is already included in their values.
    pub trees: Vec<Tree>,
    /// All parameters, as `key = value` TOML.
    pub configuration: String,
    /// The training and validation datasets.
    pub data: Vec<DatasetRecord>,
    /// Number of training rounds; after early stopping it is larger than the number of trees.
    pub rounds: u32,
    /// The file that the model was read from.
    pub origin: Origin,
}
