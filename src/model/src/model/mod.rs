//! A trained model: its parts and everything else that prediction needs.
//!
//! ```text
//! score = intercept + sum over the parts of weight * normalised value of the part
//! ```

mod check;
mod example;
mod importance;
mod normalisation;
mod origin;
mod part;
mod table;

#[doc(hidden)]
pub use example::example;
pub use normalisation::Normalisation;
pub use origin::Origin;
pub use part::Part;
pub use table::ModelWriter;

pub use crate::family::{
    Branch, Combine, Family, FeatureImportance, ModelFeature, Node, PartFamily, Split, Tree, TreeEnsemble,
};

use planetree_base::error::{Error, Result};
use planetree_base::storage::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Display;

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
    /// The score before the first part.
    pub intercept: f64,
    /// The parts in the order in which they are added.
    pub parts: Vec<Part>,
    /// All features in column order; parts refer to them by index.
    pub features: Vec<ModelFeature>,
    /// All parameters, as `key = value` TOML.
    pub configuration: String,
    /// The training and validation datasets.
    pub data: Vec<DatasetRecord>,
    /// Number of training rounds; after early stopping it is larger than the number of trees.
    pub rounds: u32,
    /// The file that the model was read from.
    pub origin: Origin,
}

impl Model {
    /// The features that scores depend on.
    pub fn used_features(&self) -> BTreeSet<u32> {
        self.parts.iter().flat_map(|part| part.family.used_features()).collect()
    }

    /// All trees of all parts.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.parts.iter().filter_map(|part| part.family.trees()).flat_map(|ensemble| &ensemble.trees)
    }

    /// Whether scores are the values of the only part, without any further arithmetic.
    pub fn is_plain(&self) -> bool {
        self.intercept == 0.0 && matches!(self.parts.as_slice(), [part] if part.is_plain())
    }

    /// The trees of a model whose scores are those of one ensemble, as training makes it.
    pub fn only_trees(&self) -> Option<&TreeEnsemble> {
        self.parts.first().filter(|_| self.is_plain()).and_then(|part| part.family.trees())
    }

    /// The same, for changes.
    pub fn only_trees_mut(&mut self) -> Option<&mut TreeEnsemble> {
        let is_plain = self.is_plain();
        self.parts.first_mut().filter(|_| is_plain).and_then(|part| part.family.trees_mut())
    }

    /// A part as messages name it.
    pub fn part_label(&self, part: usize) -> String {
        format!("part {part} ({})", self.parts[part].name)
    }

    /// Returns an error if a score depends on other rows of the query, so that single rows cannot be scored. The
    /// message starts with `context`.
    pub fn check_single_rows(&self, context: impl Display) -> Result<()> {
        for (number, part) in self.parts.iter().enumerate() {
            let label = self.part_label(number);
            if part.family.compares_documents() {
                return Err(Error::usage(
                    format_args!(
                        "{context}: {label} is a pairwise model, which cannot score single rows: it compares the \
                         documents of a query"
                    ),
                    "use `planetree predict`, or train with another preset, such as rf-point",
                ));
            }
            if part.normalisation != Normalisation::None {
                return Err(Error::usage(
                    format_args!(
                        "{context}: {label} is normalised over the documents of a query ({}), so it cannot score \
                         single rows",
                        part.normalisation.name()
                    ),
                    "use `planetree predict` or score('model', 'dataset'), or a model without normalisation",
                ));
            }
        }
        Ok(())
    }

    /// The fingerprints of the training datasets.
    pub fn trained_on(&self) -> impl Iterator<Item = Digest> {
        self.data.iter().filter(|data| data.name == "train").map(|data| data.fingerprint)
    }
}
