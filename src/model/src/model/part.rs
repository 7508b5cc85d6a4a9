//! Defines a part of a model: a term of the sum that gives the score of a document.

use super::{Normalisation, PartRole};
use crate::family::{PartFamily, TreeEnsemble, trees};

/// A part of a model: a function that computes a value for every document, and the normalisation and weight that are
/// applied before the value is added to the score.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name of the part in messages and in the columns of predictions.
    pub name: String,
    /// The factor by which the normalised value is multiplied before it is added to the score.
    pub weight: f64,
    /// How the values of a query's documents are normalised before they are multiplied by the weight.
    pub normalisation: Normalisation,
    /// The training parameters of this part, as TOML lines of the form `key = value`. Empty if they are the same as the
    /// parameters of the model.
    pub configuration: String,
    /// The role of the part in a model that was trained in stages, averaged over runs or made of classes. `None` in
    /// other models.
    pub role: Option<PartRole>,
    /// The function that computes the values.
    pub family: PartFamily,
}

impl Part {
    /// Creates a part from an ensemble of trees, with weight 1 and without normalisation.
    pub fn trees(ensemble: TreeEnsemble) -> Self {
        Part {
            name: trees::KIND.to_owned(),
            weight: 1.0,
            normalisation: Normalisation::None,
            configuration: String::new(),
            role: None,
            family: PartFamily::Trees(ensemble),
        }
    }

    /// Returns whether values are added to the score unchanged: the weight is 1, and there is no normalisation.
    pub fn is_plain(&self) -> bool {
        self.weight == 1.0 && self.normalisation == Normalisation::None
    }

    /// Returns whether the value that is added to a document's score depends on the other documents of its query.
    pub fn needs_queries(&self) -> bool {
        self.normalisation != Normalisation::None || self.family.compares_documents()
    }
}
