//! Trains a model from a request: boosting or a forest, by the parameters.

pub use crate::driver::*;

use crate::config::EnsembleName;
use crate::error::Result;
use crate::{boost, forest};

/// Trains a model.
pub fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Outcome> {
    if let Some(fleet) = &request.fleet {
        fleet.check(request)?;
    }
    match request.parameters.ensemble {
        EnsembleName::Boost => boost::train(request, observer),
        EnsembleName::Bag => forest::train(request, observer),
    }
}
