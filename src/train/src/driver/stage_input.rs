//! What learners are created from.

use super::Observer;
use super::backend::RemoteScores;
use super::coupling::CoupledClass;
use super::learner::Learner;
use super::memory::DataSize;
use super::open::Sources;
use super::request::TrainRequest;
use super::scores::Scores;
use super::validation::ValidationData;
use crate::bins::BinnedData;
use planetree_base::error::Result;
use planetree_model::model::{ModelFeature, PartFamily, TreeEnsemble};
use std::sync::{Arc, Mutex, PoisonError};

/// Everything that the learners of a stage share.
pub(crate) struct StageContext<'a> {
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
pub(crate) struct SharedValues(Mutex<Option<Arc<FeatureValues>>>);

impl SharedValues {
    /// Returns the values. The first call reads them.
    pub(crate) fn get_or_read(
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
pub(crate) struct MemberInput {
    /// The index of the part in its stage.
    pub number: usize,
    /// The parameters.
    pub settings: Box<dyn PartSettings>,
    /// The rows with the labels that the part learns.
    pub data: Arc<BinnedData>,
    /// The grade up to which these labels are 1, if they are those of a class. `None` if they are those of the data.
    pub at_most: Option<i32>,
    /// The class that the part learns, if it is coupled with others by a softmax.
    pub coupled: Option<CoupledClass>,
    /// The ensemble that the new trees are appended to, if the part extends one.
    pub extended: Option<TreeEnsemble>,
    /// Whether a forest computes out-of-bag scores.
    pub out_of_bag: bool,
}

/// The parameters that a part is trained with.
pub(crate) trait PartSettings: Send + Sync {
    /// Creates the learner of a part, and the content of the part before its first round. `start` are the scores that the
    /// part starts from, or `None` if it starts from a constant or a feature.
    fn learner<'a>(
        &'a self,
        context: &StageContext<'a>,
        input: &'a MemberInput,
        start: Option<StartScores>,
        observer: &mut dyn Observer,
    ) -> Result<(PartFamily, Box<dyn Learner + 'a>)>;

    /// Returns the memory per row of `members` parts that are trained side by side, in bytes, not counting the row's
    /// codes.
    fn bytes_per_row(&self, request: &TrainRequest, members: u64) -> u64;

    /// Returns the memory that training needs besides that per row, in bytes: sums of threads, and trees while they are
    /// grown.
    fn working_bytes(&self, _request: &TrainRequest, _size: &DataSize) -> u64 {
        0
    }

    /// Returns the memory of what a part keeps until the end, in bytes, if it is not small beside the rows.
    fn kept_bytes(&self, _request: &TrainRequest, _size: &DataSize) -> u64 {
        0
    }

    /// Returns whether the error of the training rows is logged in place of the metrics.
    fn logs_error(&self, _request: &TrainRequest) -> bool {
        false
    }
}

/// The scores of all rows before the first round.
pub struct StartScores {
    /// The scores of the training rows.
    pub training: TrainingStart,
    /// The scores of each validation set.
    pub validation: Vec<Scores>,
}

impl StartScores {
    /// Separates the scores of the training rows from those of the validation sets.
    pub fn divided(scores: Option<Self>) -> (Option<TrainingStart>, Vec<Scores>) {
        match scores {
            Some(StartScores { training, validation }) => (Some(training), validation),
            None => (None, Vec::new()),
        }
    }
}

/// The scores of the training rows before the first round.
pub enum TrainingStart {
    /// The scores.
    Here(Scores),
    /// What the processes of a backend compute the scores of their rows from.
    Remote(RemoteScores),
}
