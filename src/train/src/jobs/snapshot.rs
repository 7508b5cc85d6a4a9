//! The data that an executor needs besides the dataset to rebuild the state of a training run.

use super::worker_shares::WorkerShares;
use crate::bins::{BinOptions, Binning, DescribedBins};
use crate::config::Parameters;
use crate::tree::CodedTree;
use serde::{Deserialize, Serialize};

/// Everything besides the dataset that is needed to rebuild the state of some rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingSnapshot {
    /// The training parameters as TOML.
    pub parameters: String,
    /// Whether cells have a weight or hessian besides gradient and count.
    pub weighted: bool,
    /// The score of every row before the first tree.
    pub base_score: f64,
    bins: Vec<DescribedBins>,
    /// The workers of each share, if workers build streaming histograms of their own.
    pub workers: Option<WorkerShares>,
    /// All trees grown so far.
    pub trees: Vec<CodedTree>,
}

impl TrainingSnapshot {
    /// Creates the snapshot of a training run before its first tree.
    pub fn new(parameters: &Parameters, weighted: bool, base_score: f64, binning: &Binning) -> Self {
        let bins = binning.features.iter().map(DescribedBins::of).collect();
        TrainingSnapshot {
            parameters: parameters.to_toml(),
            weighted,
            base_score,
            bins,
            workers: None,
            trees: Vec::new(),
        }
    }

    /// Returns the bins of all features.
    pub fn binning(&self, parameters: &Parameters) -> Binning {
        BinOptions::of(parameters).binning(self.bins.iter().map(DescribedBins::bins).collect())
    }
}
