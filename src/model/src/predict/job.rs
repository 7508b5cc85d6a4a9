//! Scores row groups on the executors of a cluster, with the same code as in a single process.

use super::group::{GroupPredictor, PredictedGroup};
use crate::model::Model;
use planetree_base::compact::Bytes;
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Scope, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use planetree_data::table::{batches_from_bytes, batches_to_bytes};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A job that scores rows. The content of the model file is sent to the executors as the job's snapshot, so they need
/// no access to the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreRows {
    /// Whether to return the values of the parts in addition to the scores.
    pub parts: bool,
}

/// Predictions for some row groups, in order.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoredGroups {
    /// Seconds spent reading, summed over threads.
    pub load_seconds: f64,
    /// Seconds spent scoring, summed over threads.
    pub predict_seconds: f64,
    /// The encoded predictions for each row group.
    groups: Vec<Bytes>,
}

/// A model that an executor has received and prepared for a dataset.
pub struct SentModel {
    predictor: GroupPredictor,
    bytes: u64,
}

impl ScoredGroups {
    /// Decodes the predictions and passes them to `sink` in order, one row group at a time.
    pub fn each_group(&self, sink: &mut dyn FnMut(PredictedGroup) -> Result<()>) -> Result<()> {
        for group in &self.groups {
            for batch in batches_from_bytes(&group.0)? {
                sink(PredictedGroup::from_batch(&batch).ok_or_else(malformed)?)?;
            }
        }
        Ok(())
    }
}

impl Job for ScoreRows {
    const NAME: &'static str = "score";
    const SCOPE: Scope = Scope::Data;
    type Data = LabelledData;
    type State = SentModel;
    type Snapshot = Bytes;
    type Partial = ScoredGroups;

    fn prepare(
        &self,
        model_file: Option<Bytes>,
        shard: &Shard<'_, LabelledData>,
    ) -> Result<Option<SentModel>> {
        let Some(Bytes(model_file)) = model_file else { return Ok(None) };
        // The driver adds start scores, if there are any.
        let model = Model::from_bytes(&model_file)?.without_start_scores();
        let reader = shard.data.readers().next().ok_or_else(malformed)?;
        let predictor = GroupPredictor::with_parts(&model, reader, self.parts)?;
        Ok(Some(SentModel { predictor, bytes: model_file.len() as u64 }))
    }

    fn state_bytes(state: &SentModel) -> u64 {
        state.bytes
    }

    /// Scores row groups on all threads.
    fn map(&self, state: &SentModel, shard: &Shard<'_, LabelledData>) -> Result<Option<ScoredGroups>> {
        let reader = shard.data.readers().next().ok_or_else(malformed)?;
        let groups = shard.parts.par_iter().map(|partition| {
            let done = state.predictor.predict(reader, shard.data.group_id(*partition))?;
            Ok(ScoredGroups {
                load_seconds: done.load.as_secs_f64(),
                predict_seconds: done.score.as_secs_f64(),
                groups: vec![Bytes(batches_to_bytes(&[done.result.into_batch()?])?)],
            })
        });
        let groups: Vec<ScoredGroups> = groups.collect::<Result<_>>()?;
        Ok(Some(Partial::merge_all(groups)?.unwrap_or_default()))
    }
}

impl Partial for ScoredGroups {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.load_seconds += other.load_seconds;
        self.predict_seconds += other.predict_seconds;
        self.groups.extend(other.groups);
        Ok(())
    }
}
