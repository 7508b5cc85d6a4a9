//! The data that an executor needs besides the dataset to rebuild the state of a training run.

use super::worker_shares::WorkerShares;
use crate::bins::{BinOptions, Binning, DescribedBins};
use crate::config::Parameters;
use crate::driver::CoupledClass;
use crate::tree::CodedTree;
use planetree_base::compact::Bytes;
use planetree_base::error::Result;
use planetree_base::job::Shard;
use planetree_data::dataset::DatasetReader;
use planetree_data::source::LabelledData;
use planetree_model::model::Model;
use planetree_model::predict::GroupPredictor;
use rayon::prelude::*;
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
    /// The content of the file of the model whose scores the part starts from. `None` if it starts from `base_score`.
    pub start: Option<Bytes>,
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

/// Computes the scores that training starts from, by row group of the shard. `model` is the content of a model file.
pub(crate) fn start_scores(model: &Bytes, shard: &Shard<'_, LabelledData>) -> Result<Vec<Vec<f64>>> {
    let model = Model::from_bytes(&model.0)?;
    let prepare = |reader| Ok((reader, GroupPredictor::new(&model, reader)?));
    let datasets: Vec<(&DatasetReader, GroupPredictor)> =
        shard.data.readers().map(prepare).collect::<Result<_>>()?;
    let of_group = |partition: &usize| {
        let (dataset, group) = shard.data.place_of(*partition);
        let (reader, predictor) = &datasets[dataset];
        predictor.scores(reader, &reader.open_group(group)?)
    };
    shard.parts.par_iter().map(of_group).collect()
}
