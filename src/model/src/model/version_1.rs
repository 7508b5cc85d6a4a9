//! Names in files of format version 1, in which a model is a single ensemble without parts.

use super::Combine;
use serde::Deserialize;

/// The values of the key `ensemble`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OldEnsemble {
    Boost,
    Bag,
    Wins,
}

impl OldEnsemble {
    /// Returns how the values of the trees are combined.
    pub(crate) fn combine(&self) -> Combine {
        match self {
            OldEnsemble::Boost => Combine::Sum,
            OldEnsemble::Bag => Combine::Mean,
            OldEnsemble::Wins => Combine::Wins,
        }
    }
}
