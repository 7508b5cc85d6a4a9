//! The data that an executor needs besides the dataset to rebuild the state of a training run.

use super::start::StartSnapshot;
use super::worker_shares::WorkerShares;
use crate::bins::{BinOptions, Binning, DescribedBins};
use crate::config::Parameters;
use crate::driver::CoupledClass;
use crate::tree::CodedTree;
use serde::{Deserialize, Serialize};

/// Everything besides the dataset that is needed to rebuild the state of some rows in a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingSnapshot {
    /// The parameters of the stage as TOML. Its parts differ in their seeds only.
    pub parameters: String,
    bins: Vec<DescribedBins>,
    /// The workers of each share, if workers build streaming histograms of their own.
    pub workers: Option<WorkerShares>,
    /// The boosted parts of the stage.
    pub members: Vec<MemberSnapshot>,
}

/// A boosted part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberSnapshot {
    /// The parameters of the part as TOML.
    pub parameters: String,
    /// The grade up to which labels become 1 and above which they become 0. `None` if the labels are learned.
    pub at_most: Option<i32>,
    /// The class, if the part is coupled with others by a softmax.
    pub coupled: Option<CoupledClass>,
    /// Whether cells have a weight or hessian besides gradient and count.
    pub weighted: bool,
    /// The score of every row before the first tree.
    pub base_score: f64,
    /// What the scores that the part starts from are computed from. `None` if it starts from `base_score`.
    pub start: Option<StartSnapshot>,
    /// All trees grown so far.
    pub trees: Vec<CodedTree>,
}

impl TrainingSnapshot {
    /// Creates the snapshot of a stage without boosted parts.
    pub fn new(parameters: &Parameters, binning: &Binning) -> Self {
        let bins = binning.features.iter().map(DescribedBins::of).collect();
        TrainingSnapshot { parameters: parameters.to_toml(), bins, workers: None, members: Vec::new() }
    }

    /// Returns the bins of all features.
    pub fn binning(&self, parameters: &Parameters) -> Binning {
        BinOptions::of(parameters).binning(self.bins.iter().map(DescribedBins::bins).collect())
    }
}
