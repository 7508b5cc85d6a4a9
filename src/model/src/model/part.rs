//! A part of a model.

use super::Normalisation;
use crate::family::{PartFamily, TreeEnsemble, trees};

/// A part of a model: a function of a document, and how it enters the score.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name, for people.
    pub name: String,
    /// The factor by which the normalised value enters the score.
    pub weight: f64,
    /// What happens to the values of a query's documents before they are weighted.
    pub normalisation: Normalisation,
    /// All parameters, as `key = value` TOML; empty if they are those of the model.
    pub configuration: String,
    /// The function.
    pub family: PartFamily,
}

impl Part {
    /// An ensemble of trees that enters the score as it is.
    pub fn trees(ensemble: TreeEnsemble) -> Self {
        Part {
            name: trees::KIND.to_owned(),
            weight: 1.0,
            normalisation: Normalisation::None,
            configuration: String::new(),
            family: PartFamily::Trees(ensemble),
        }
    }

    /// Whether values enter the score as they are.
    pub fn is_plain(&self) -> bool {
        self.weight == 1.0 && self.normalisation == Normalisation::None
    }

    /// Whether a value that enters the score depends on the other documents of the query.
    pub fn needs_queries(&self) -> bool {
        self.normalisation != Normalisation::None || self.family.compares_documents()
    }
}
