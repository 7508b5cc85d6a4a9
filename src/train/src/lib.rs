//! Trains boosted trees and random forests. The modules contain the parameters ([`config`]), the binning of feature
//! values ([`bins`]), the objectives, the growing of single trees, the two learners (boosting and forests), and the
//! jobs that a cluster runs.
//!
//! [`train`] runs a [`TrainRequest`] and returns an [`Outcome`]. `driver/` contains the code that boosting and forests
//! share.

pub mod bins;
pub mod boost;
pub mod config;
mod driver;
mod forest;
pub mod jobs;
pub mod objective;
pub mod tree;

pub use driver::*;

use config::LearnerParameters;
use planetree_base::error::{Error, Result};

/// Trains the model that `request` describes, and reports progress to `observer`.
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
                "objective {}: forests are trained directly on the labels and do not take an objective",
                custom.name
            ),
            "use a boosting preset, such as planet",
        )),
    }
}
