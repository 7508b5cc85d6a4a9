//! Training: parameters ([`config`]), binned data ([`bins`]), objectives, trees, boosting and forests.
//!
//! [`train`] takes a [`TrainRequest`] and returns an [`Outcome`]. `driver/` is what boosting and forests share.

pub mod bins;
pub mod boost;
pub mod config;
mod driver;
pub mod forest;
pub mod jobs;
pub mod objective;
pub mod tree;

pub use driver::*;

use config::LearnerParameters;
use planetree_base::error::{Error, Result};

/// Trains a model.
pub fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Outcome> {
    if let Some(backend) = &request.backend {
        backend.check(request)?;
    }
    let parameters = &request.parameters;
    match (&parameters.learner, &request.objective) {
        (LearnerParameters::Boost(boost), _) => {
            boost::train(request, &parameters.with(boost.clone()), observer)
        }
        (LearnerParameters::Forest(forest), None) => {
            forest::train(request, &parameters.with(forest.clone()), observer)
        }
        (LearnerParameters::Forest(_), Some(custom)) => Err(Error::usage(
            format_args!(
                "objective {}: a forest grows its trees from the labels and has no objective",
                custom.name
            ),
            "use a preset that boosts, such as planet",
        )),
    }
}
