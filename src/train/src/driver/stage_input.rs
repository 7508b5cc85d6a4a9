//! What learners are created from.

use super::open::Sources;
use super::request::TrainRequest;
use super::scores::Scores;
use super::validation::ValidationData;
use crate::bins::BinnedData;
use crate::config::{BoostSettings, ForestSettings, LearnerParameters, LinearSettings, Parameters};
use planetree_model::model::{Model, ModelFeature, TreeEnsemble};
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
    /// The index of the part in its stage.
    pub number: usize,
    /// The parameters.
    pub settings: MemberSettings,
    /// The rows with the labels that the part learns.
    pub data: Arc<BinnedData>,
    /// The grade up to which these labels are 1, if they are those of a class. `None` if they are those of the data.
    pub at_most: Option<i32>,
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
    /// The part is a linear function.
    Linear(LinearSettings),
}

impl MemberSettings {
    /// Separates parameters by learner.
    pub fn of(parameters: &Parameters) -> Self {
        match &parameters.learner {
            LearnerParameters::Boost(boost) => MemberSettings::Boost(parameters.with(boost.clone())),
            LearnerParameters::Forest(forest) => MemberSettings::Forest(parameters.with(forest.clone())),
            LearnerParameters::Linear(linear) => MemberSettings::Linear(parameters.with(linear.clone())),
        }
    }
}

/// The scores of all rows before the first round.
pub struct StartScores {
    /// The scores of the training rows.
    pub training: TrainingStart,
    /// The scores of each validation set.
    pub validation: Vec<Scores>,
}

/// The scores of the training rows before the first round.
pub enum TrainingStart {
    /// The scores.
    Here(Scores),
    /// The model that computes the scores of rows that a backend holds.
    Remote(Box<Model>),
}
