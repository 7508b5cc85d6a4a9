//! Defines a trained model: its parts and everything else that prediction needs.
//!
//! ```text
//! score = intercept + sum over the parts of weight * normalised value of the part
//! ```
//!
//! Neighbouring parts can form a group, which is a single term of this sum; see `group.rs`.

mod blend;
mod check;
mod classes;
mod example;
mod group;
mod importance;
mod normalisation;
mod origin;
mod part;
mod role;
mod table;
mod version_1;

pub use blend::{BlendMember, blend};
pub(crate) use classes::ModelClasses;
#[doc(hidden)]
pub use example::example;
pub(crate) use group::Term;
pub use group::{Link, PartGroup};
pub use normalisation::Normalisation;
pub use origin::Origin;
pub use part::Part;
pub use role::{ClassBounds, PartRole};
pub use table::ModelWriter;
pub(crate) use version_1::OldEnsemble;

pub use crate::family::{
    Activation, Branch, Combine, Comparison, Family, FeatureImportance, FeatureNormalisation, LinearFunction,
    LinearTerm, ModelFeature, NetFunction, NetInput, NetLayer, Node, PartFamily, Split, Tree, TreeEnsemble,
};

use crate::family::{linear, net};
use planetree_base::error::{Error, Result};
use planetree_base::size::counted;
use planetree_base::storage::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Display;

/// Key of the metadata that a checkpoint has besides a model: the state of the training, which had not ended.
pub const CHECKPOINT: &str = "planetree.checkpoint";

/// A dataset on which a model was trained or validated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// `train` for training data, otherwise the name of the validation set.
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
    /// The constant to which the weighted values of the parts are added.
    pub intercept: f64,
    /// The parts, in the order in which their values are added to the score.
    pub parts: Vec<Part>,
    /// Neighbouring parts that are one term of the score, ordered by their first part, outer groups first.
    pub groups: Vec<PartGroup>,
    /// All features in column order; parts refer to them by index.
    pub features: Vec<ModelFeature>,
    /// All training parameters, as TOML lines of the form `key = value`.
    pub configuration: String,
    /// The training and validation datasets.
    pub data: Vec<DatasetRecord>,
    /// Number of training rounds. After early stopping, it is larger than the number of trees that were kept.
    pub rounds: u32,
    /// Hash of the start scores of all rows, if the model was trained from such scores. They are not part of the model: a
    /// score is the start score of the row plus the value of the model.
    pub start_scores: Option<Digest>,
    /// The file that the model was read from, for messages.
    pub origin: Origin,
}

impl Model {
    /// Returns an error if the value of the model is only one term of a score, because the model was trained from start
    /// scores.
    pub fn check_complete(&self, place: impl Display) -> Result<()> {
        match self.start_scores {
            None => Ok(()),
            Some(_) => Err(Error::place(
                place,
                "the model was trained from start scores, which are not part of it: its value alone is not a score",
                "score with `planetree predict --start-scores FILE`, which adds those of the rows",
            )),
        }
    }

    /// Returns the model as a term of a score: the caller adds the start scores of the rows, or wants the value alone.
    pub fn without_start_scores(self) -> Self {
        Model { start_scores: None, ..self }
    }

    /// Returns the indices of the features that scores depend on.
    pub fn used_features(&self) -> BTreeSet<u32> {
        self.parts.iter().flat_map(|part| part.family.used_features()).collect()
    }

    /// Returns the trees of all parts, part by part.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.parts.iter().filter_map(|part| part.family.trees()).flat_map(|ensemble| &ensemble.trees)
    }

    /// Returns the number of weights of all linear functions and nets.
    pub fn weight_count(&self) -> u64 {
        let has_weights = |part: &&Part| [linear::KIND, net::KIND].contains(&part.family.kind());
        self.parts.iter().filter(has_weights).map(|part| part.family.row_count()).sum()
    }

    /// Returns the index of the first part with trees on normalised features, whose thresholds are not values of the
    /// features. `None` if there is none.
    pub fn normalised_trees(&self) -> Option<usize> {
        let is_normalised = |part: &Part| {
            part.family.trees().is_some_and(|ensemble| ensemble.normalisation != FeatureNormalisation::None)
        };
        self.parts.iter().position(is_normalised)
    }

    /// Returns the size of the model for messages, such as `100 trees` or `46 weights`.
    pub fn size_text(&self) -> String {
        let (trees, weights) = (self.trees().count() as u64, self.weight_count());
        match (trees, weights) {
            (_, 0) => counted(trees, "tree", "trees"),
            (0, _) => counted(weights, "weight", "weights"),
            (_, _) => {
                format!("{} and {}", counted(trees, "tree", "trees"), counted(weights, "weight", "weights"))
            }
        }
    }

    /// Returns whether the model has a single part whose values are the scores, without an intercept, weight or
    /// normalisation.
    pub fn is_plain(&self) -> bool {
        self.intercept == 0.0
            && self.groups.is_empty()
            && matches!(self.parts.as_slice(), [part] if part.is_plain())
    }

    /// Returns the tree ensemble if it is the whole model, as in models that training produces. Returns `None` if the
    /// model has several parts, an intercept, a weight or a normalisation.
    pub fn only_trees(&self) -> Option<&TreeEnsemble> {
        self.parts.first().filter(|_| self.is_plain()).and_then(|part| part.family.trees())
    }

    /// Like [`Model::only_trees`], but returns a mutable reference.
    pub fn only_trees_mut(&mut self) -> Option<&mut TreeEnsemble> {
        let is_plain = self.is_plain();
        self.parts.first_mut().filter(|_| is_plain).and_then(|part| part.family.trees_mut())
    }

    /// Returns the number and the name of a part, for messages.
    pub fn part_label(&self, part: usize) -> String {
        format!("part {part} ({})", self.parts[part].name)
    }

    /// Returns an error if the score of a row depends on other rows of its query, because single rows cannot be scored
    /// in that case. The message starts with `context`.
    pub fn check_single_rows(&self, context: impl Display) -> Result<()> {
        for (number, part) in self.parts.iter().enumerate() {
            let label = self.part_label(number);
            if let Some(Comparison { reason, remedy }) = part.family.comparison() {
                return Err(Error::usage(
                    format_args!("{context}: {label} {reason} and cannot score single rows"),
                    remedy,
                ));
            }
            if part.normalisation != Normalisation::None {
                return Err(normalised(context, &label, part.normalisation.name()));
            }
        }
        for (number, group) in self.groups.iter().enumerate() {
            if group.normalisation != Normalisation::None {
                let (label, name) = (self.group_label(number), group.normalisation.name());
                return Err(normalised(context, &label, name));
            }
        }
        Ok(())
    }

    /// Returns whether the score of a document depends on the other documents of its query.
    pub fn needs_queries(&self) -> bool {
        let is_normalised = |group: &PartGroup| group.normalisation != Normalisation::None;
        self.parts.iter().any(Part::needs_queries) || self.groups.iter().any(is_normalised)
    }

    /// Returns the fingerprints of the training datasets.
    pub fn trained_on(&self) -> impl Iterator<Item = Digest> {
        self.data.iter().filter(|data| data.name == "train").map(|data| data.fingerprint)
    }
}

/// Returns the error for single rows of a model with a normalised term.
fn normalised(context: impl Display, label: &str, name: &str) -> Error {
    Error::usage(
        format_args!(
            "{context}: {label} is normalised over the documents of a query ({name}), so it cannot score single rows"
        ),
        "use `planetree predict` or score('model', 'dataset'), or a model without normalisation",
    )
}
