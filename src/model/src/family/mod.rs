//! Families of models: what a part of a model can be. `trees/` is the only one so far.
//!
//! [`Family`] is everything that the rest of planetree asks of a family, and [`PartFamily`] is the table of families:
//! a new one is a file or folder with an implementation of [`Family`], a variant, and a line in each function of
//! [`PartFamily`]. Code that works with one family only, such as explanations of trees, asks for it
//! ([`PartFamily::trees`]) and refuses the others by name.

mod feature;
mod importance;
mod row;
mod scorer;
pub mod trees;

pub use feature::ModelFeature;
pub use importance::FeatureImportance;
pub use row::ModelRow;
pub(crate) use scorer::load_values;
pub use scorer::{PartScorer, RowValues};
pub use trees::{Branch, Combine, Node, Split, Tree, TreeEnsemble};

use fearless_simd::Level;
use planetree_base::error::Result;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};

/// What every family of models does.
pub trait Family: Debug {
    /// Name of the family in files.
    fn kind(&self) -> &'static str;

    /// The features that values depend on.
    fn used_features(&self) -> BTreeSet<u32>;

    /// Whether the value of a document depends on the other documents of its query.
    fn compares_documents(&self) -> bool;

    /// Prepares the scoring of many rows, with these vector instructions. The part must be valid.
    fn scorer(&self, features: &[ModelFeature], level: Level) -> Box<dyn PartScorer>;

    /// Describes the first problem, or returns `None` if the part is valid for a model of `features` features.
    fn fault(&self, features: usize) -> Option<String>;

    /// Adds the importance of features; `all` has one entry per feature.
    fn add_importance(&self, all: &mut [FeatureImportance]);

    /// Number of rows in the model table.
    fn row_count(&self) -> u64;

    /// Passes the rows of the model table to `sink`, some at a time, in the order in which they are read.
    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&mut dyn Iterator<Item = ModelRow>) -> Result<()>,
    ) -> Result<()>;

    /// Appends the next row of the model table; an error if it does not continue those before.
    fn read_row(&mut self, row: ModelRow) -> Result<(), String>;

    /// Everything else that the model file contains, as JSON; the inverse is in [`PartFamily::new`].
    fn settings(&self) -> Map<String, Value>;
}

/// The family of a part, with its content.
#[derive(Debug, Clone, PartialEq)]
pub enum PartFamily {
    /// Decision trees.
    Trees(TreeEnsemble),
}

impl PartFamily {
    /// The kinds of all families.
    pub const KINDS: [&str; 1] = [trees::KIND];

    /// A part without rows, of a kind and with the settings in a file. `None` if the kind is unknown.
    pub fn new(kind: &str, settings: Map<String, Value>) -> Option<Result<Self, serde_json::Error>> {
        match kind {
            trees::KIND => Some(TreeEnsemble::from_settings(settings).map(PartFamily::Trees)),
            _ => None,
        }
    }

    /// The trees, if the part has trees.
    pub fn trees(&self) -> Option<&TreeEnsemble> {
        match self {
            PartFamily::Trees(trees) => Some(trees),
        }
    }

    /// The trees, if the part has trees.
    pub fn trees_mut(&mut self) -> Option<&mut TreeEnsemble> {
        match self {
            PartFamily::Trees(trees) => Some(trees),
        }
    }
}

impl Deref for PartFamily {
    type Target = dyn Family;

    fn deref(&self) -> &Self::Target {
        match self {
            PartFamily::Trees(trees) => trees,
        }
    }
}

impl DerefMut for PartFamily {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            PartFamily::Trees(trees) => trees,
        }
    }
}
