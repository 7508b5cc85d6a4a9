//! Defines families of models: the kinds of functions that the parts of a model can be. There are decision trees
//! (`trees/`), linear functions (`linear/`) and nets (`net/`).
//!
//! The trait [`Family`] is the interface between a family and the rest of planetree, and [`PartFamily`] lists all
//! families. To add a family, implement [`Family`] in a file or folder of its own, add a variant to [`PartFamily`],
//! and add a line to each function of [`PartFamily`]. Code that supports only one family, such as exports to other
//! tree libraries, accesses the content of a part with a function such as [`PartFamily::trees`]. If a part belongs to
//! another family, such code returns an error that names the part.

mod feature;
#[cfg(test)]
mod fixtures;
mod importance;
pub mod linear;
pub mod net;
mod row;
mod scorer;
pub mod trees;

pub use feature::ModelFeature;
pub use importance::FeatureImportance;
pub use linear::{FeatureNormalisation, LinearFunction, LinearTerm};
pub use net::{Activation, NetFunction, NetInput, NetLayer};
pub(crate) use row::ModelRow;
pub(crate) use scorer::PartScorer;
pub use scorer::RowValues;
pub(crate) use scorer::load_values;
pub use trees::{Branch, Combine, Node, Split, Tree, TreeEnsemble};

use fearless_simd::Level;
use planetree_base::error::Result;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};

/// The operations that every family of models supports.
pub trait Family: Debug {
    /// Returns the name of the family in files.
    fn kind(&self) -> &'static str;

    /// Returns the indices of the features that values depend on.
    fn used_features(&self) -> BTreeSet<u32>;

    /// Returns why the value of a document depends on the other documents of its query, or `None` if it does not.
    fn comparison(&self) -> Option<Comparison>;

    /// Returns whether the value of a document depends on the other documents of its query.
    fn compares_documents(&self) -> bool {
        self.comparison().is_some()
    }

    /// Prepares the part for scoring many rows with the vector instructions of `level`. The part must be valid.
    fn scorer(&self, features: &[ModelFeature], level: Level) -> Box<dyn PartScorer>;

    /// Returns a description of the first problem in the part, or `None` if it is valid in a model with `features`
    /// features.
    fn fault(&self, features: usize) -> Option<String>;

    /// Adds the importance that the features have in this part to `all`, which has one entry per feature of the model.
    fn add_importance(&self, all: &mut [FeatureImportance]);

    /// Returns the number of rows of this part in the model table.
    fn row_count(&self) -> u64;

    /// Passes the rows of this part of the model table to `sink`, several at a time, in the order in which
    /// [`Family::read_row`] expects them.
    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&mut dyn Iterator<Item = ModelRow>) -> Result<()>,
    ) -> Result<()>;

    /// Appends the next row of this part of the model table. Returns an error if the row does not continue the previous
    /// rows.
    fn read_row(&mut self, row: ModelRow) -> Result<(), String>;

    /// Replaces the index of every feature: `numbers` has the new index of each feature of the model.
    fn renumber_features(&mut self, numbers: &[u32]);

    /// Returns everything that is stored in the header of the model file instead of its rows, as JSON.
    /// [`PartFamily::new`] is the inverse.
    fn settings(&self) -> Map<String, Value>;
}

/// Why the value of a document depends on the other documents of its query, for messages about code that scores single
/// rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// What the part does, as the continuation of a sentence that begins with the part.
    pub reason: &'static str,
    /// What to do instead of scoring single rows.
    pub remedy: &'static str,
}

/// The family of a part, with its content.
#[derive(Debug, Clone, PartialEq)]
pub enum PartFamily {
    /// Decision trees.
    Trees(TreeEnsemble),
    /// A linear function.
    Linear(LinearFunction),
    /// A net.
    Net(NetFunction),
}

impl PartFamily {
    /// The names of all families in files.
    pub const KINDS: [&str; 3] = [trees::KIND, linear::KIND, net::KIND];

    /// Creates the content of a part from the kind and the settings in a model file. It has no rows yet. Returns `None`
    /// if the kind is unknown.
    pub fn new(kind: &str, settings: Map<String, Value>) -> Option<Result<Self, serde_json::Error>> {
        match kind {
            trees::KIND => Some(TreeEnsemble::from_settings(settings).map(PartFamily::Trees)),
            linear::KIND => Some(LinearFunction::from_settings(settings).map(PartFamily::Linear)),
            net::KIND => Some(NetFunction::from_settings(settings).map(PartFamily::Net)),
            _ => None,
        }
    }

    /// Returns the trees, or `None` if the part belongs to another family.
    pub fn trees(&self) -> Option<&TreeEnsemble> {
        match self {
            PartFamily::Trees(trees) => Some(trees),
            PartFamily::Linear(_) | PartFamily::Net(_) => None,
        }
    }

    /// Returns the linear function, or `None` if the part belongs to another family.
    pub fn linear(&self) -> Option<&LinearFunction> {
        match self {
            PartFamily::Linear(function) => Some(function),
            _ => None,
        }
    }

    /// Like [`PartFamily::trees`], but returns a mutable reference.
    pub fn trees_mut(&mut self) -> Option<&mut TreeEnsemble> {
        match self {
            PartFamily::Trees(trees) => Some(trees),
            PartFamily::Linear(_) | PartFamily::Net(_) => None,
        }
    }
}

impl Deref for PartFamily {
    type Target = dyn Family;

    fn deref(&self) -> &Self::Target {
        match self {
            PartFamily::Trees(trees) => trees,
            PartFamily::Linear(linear) => linear,
            PartFamily::Net(net) => net,
        }
    }
}

impl DerefMut for PartFamily {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            PartFamily::Trees(trees) => trees,
            PartFamily::Linear(linear) => linear,
            PartFamily::Net(net) => net,
        }
    }
}
