//! Lists the learners that parts can be trained by.

use crate::config::{LearnerParameters, Parameters};
use crate::driver::PartSettings;

/// Returns the parameters of a stage as those of its learner.
pub(super) fn settings_of(parameters: &Parameters) -> Box<dyn PartSettings> {
    match &parameters.learner {
        LearnerParameters::Boost(boost) => Box::new(parameters.with(boost.clone())),
        LearnerParameters::Forest(forest) => Box::new(parameters.with(forest.clone())),
        LearnerParameters::Linear(linear) => Box::new(parameters.with(linear.clone())),
        LearnerParameters::RankSvm(ranksvm) => Box::new(parameters.with(ranksvm.clone())),
        LearnerParameters::AdaRank(adarank) => Box::new(parameters.with(adarank.clone())),
        LearnerParameters::CoordinateAscent(ascent) => Box::new(parameters.with(ascent.clone())),
        LearnerParameters::Net(net) => Box::new(parameters.with(net.clone())),
    }
}
