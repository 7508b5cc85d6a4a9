//! What learners are created from.

use super::open::Sources;
use super::request::TrainRequest;
use super::scores::Scores;
use super::validation::ValidationData;
use crate::bins::BinnedData;
use crate::config::{BoostSettings, ForestSettings, LearnerParameters, LinearSettings, Parameters};
use planetree_base::error::Result;
use planetree_model::model::{ModelFeature, TreeEnsemble};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The values of the training rows, for learners that do not use bins.
    pub values: SharedValues,
}

/// The values of rows by partition and feature. Missing values are NaN.
pub type FeatureValues = Vec<Vec<Vec<f32>>>;

/// The values of the training rows, which are read once for all parts.
#[derive(Default)]
pub struct SharedValues(Mutex<Option<Arc<FeatureValues>>>);

impl SharedValues {
    /// Returns the values. The first call reads them.
    pub fn get_or_read(
        &self,
        read: impl FnOnce() -> Result<Arc<FeatureValues>>,
    ) -> Result<Arc<FeatureValues>> {
        // A thread that panicked while reading has left nothing.
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*values {
            Some(values) => Ok(values.clone()),
            None => Ok(values.insert(read()?).clone()),
        }
    }
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
    pub training: Scores,
    /// The scores of each validation set.
    pub validation: Vec<Scores>,
}
