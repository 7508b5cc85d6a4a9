//! What learners are created from.

use super::open::Sources;
use super::request::TrainRequest;
use super::scores::Scores;
use super::validation::ValidationData;
use crate::bins::BinnedData;
use crate::config::{BoostSettings, ForestSettings, LearnerParameters, Parameters};
use planetree_model::model::{ModelFeature, TreeEnsemble};
use std::sync::Arc;

/// Everything that the learners of a stage share.
pub struct StageContext<'a> {
    /// The request.
    pub request: &'a TrainRequest,
    /// The datasets.
    pub sources: &'a Sources,
    /// The validation sets, as read for this stage.
    pub validation: &'a [Arc<ValidationData>],
    /// The features of the model.
    pub features: &'a [ModelFeature],
    /// Number of parts that are trained side by side.
    pub members: usize,
}

/// What a part is trained on.
pub struct MemberInput {
    /// The parameters.
    pub settings: MemberSettings,
    /// The rows with the labels that the part learns.
    pub data: Arc<BinnedData>,
    /// The scores that the part starts from. `None` if it starts from a constant or a feature.
    pub start: Option<StartScores>,
    /// The ensemble that the new trees are appended to, if the part extends one.
    pub extended: Option<TreeEnsemble>,
    /// Whether a forest computes out-of-bag scores.
    pub out_of_bag: bool,
}

/// The parameters of a part.
pub enum MemberSettings {
    /// The part is boosted.
    Boost(BoostSettings),
    /// The part is a forest.
    Forest(ForestSettings),
}

impl MemberSettings {
    /// Separates parameters by learner.
    pub fn of(parameters: &Parameters) -> Self {
        match &parameters.learner {
            LearnerParameters::Boost(boost) => MemberSettings::Boost(parameters.with(boost.clone())),
            LearnerParameters::Forest(forest) => MemberSettings::Forest(parameters.with(forest.clone())),
        }
    }
}

/// The scores of all rows before the first round.
pub struct StartScores {
    /// The scores of the training rows.
    pub training: Scores,
    /// The scores of each validation set.
    pub validation: Vec<Scores>,
}
