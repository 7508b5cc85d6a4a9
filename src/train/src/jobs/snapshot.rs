//! What the rows of a training are rebuilt from on an executor, besides the dataset.

use crate::bins::{BinOptions, Binning, DescribedBins};
use crate::config::Parameters;
use crate::tree::CodedTree;
use serde::{Deserialize, Serialize};

/// Everything needed to rebuild the state of some rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingSnapshot {
    /// The training's parameters as TOML.
    pub parameters: String,
    /// Whether cells hold a weight or hessian besides gradient and count.
    pub weighted: bool,
    /// The score before the first tree.
    pub base_score: f64,
    bins: Vec<DescribedBins>,
    /// The trees so far.
    pub trees: Vec<CodedTree>,
}

impl TrainingSnapshot {
    /// The state before the first tree.
    pub fn new(parameters: &Parameters, weighted: bool, base_score: f64, binning: &Binning) -> Self {
        let bins = binning.features.iter().map(DescribedBins::of).collect();
        TrainingSnapshot { parameters: parameters.to_toml(), weighted, base_score, bins, trees: Vec::new() }
    }

    /// The binning of the features.
    pub fn binning(&self, parameters: &Parameters) -> Binning {
        BinOptions::of(parameters).binning(self.bins.iter().map(DescribedBins::bins).collect())
    }
}
