//! Trains boosted trees, random forests, linear models and neural nets. The modules contain the parameters ([`config`]),
//! the binning of feature values ([`bins`]), the objectives, the growing of single trees, the learners, and the jobs that
//! a cluster runs.
//!
//! [`train`] runs a [`TrainRequest`] and returns an [`Outcome`]. `compose/` trains the stages, runs and classes of a
//! plan; `driver/` contains the code that boosting and forests share.

#![warn(unreachable_pub)]

pub mod adarank;
pub mod bins;
pub mod boost;
mod compose;
pub mod config;
pub mod coordinate_ascent;
mod driver;
#[cfg(test)]
mod fixtures;
mod forest;
pub mod jobs;
pub mod linear;
pub mod net;
pub mod objective;
pub mod ranksvm;
pub mod tree;

pub use driver::*;

use planetree_base::error::Result;

/// Trains the model that `request` describes, and reports progress to `observer`.
pub fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Outcome> {
    if let Some(backend) = &request.backend {
        backend.check(request)?;
    }
    compose::train(request, observer)
}
