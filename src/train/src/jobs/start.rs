//! The scores that training starts from, as executors compute them for their rows.

use crate::driver::RemoteScores;
use planetree_base::compact::Bytes;
use planetree_base::error::Result;
use planetree_base::job::Shard;
use planetree_base::wire::malformed;
use planetree_data::dataset::DatasetReader;
use planetree_data::source::LabelledData;
use planetree_model::model::Model;
use planetree_model::predict::GroupPredictor;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What executors compute the scores from that training starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartSnapshot {
    /// The content of the file of a model that scores the rows.
    model: Option<Bytes>,
    /// The scores of all rows of the training data, which are added to those of the model.
    given: Option<Vec<f64>>,
}

impl StartSnapshot {
    /// Encodes the model.
    pub fn of(start: &RemoteScores) -> Result<Self> {
        let model = start.model.as_ref().map(|model| model.to_bytes()).transpose()?;
        Ok(StartSnapshot { model: model.map(Bytes), given: start.given.clone() })
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        let of_model = self.model.as_ref().map_or(0, |model| model.0.len());
        of_model + self.given.as_ref().map_or(0, |given| size_of_val(given.as_slice()))
    }

    /// Computes the scores, by row group of the shard.
    pub(crate) fn scores(&self, shard: &Shard<'_, LabelledData>) -> Result<Vec<Vec<f64>>> {
        let mut scores = match &self.model {
            Some(model) => model_scores(model, shard)?,
            None => {
                let rows = shard.parts.iter().map(|partition| rows_of(shard.data, *partition));
                rows.map(|(first, end)| vec![0.0; (end - first) as usize]).collect()
            }
        };
        if let Some(given) = &self.given {
            for (partition, scores) in shard.parts.iter().zip(&mut scores) {
                let (first, end) = rows_of(shard.data, *partition);
                let given = given.get(first as usize..end as usize).ok_or_else(malformed)?;
                scores.iter_mut().zip(given).for_each(|(score, given)| *score += given);
            }
        }
        Ok(scores)
    }
}

/// Returns the first row of a partition and the row after its last one.
fn rows_of(data: &LabelledData, partition: usize) -> (u64, u64) {
    let next = partition + 1;
    let end = if next < data.partitions() { data.first_row(next) } else { data.row_count() };
    (data.first_row(partition), end)
}

/// Computes the scores of a model, by row group of the shard.
fn model_scores(model: &Bytes, shard: &Shard<'_, LabelledData>) -> Result<Vec<Vec<f64>>> {
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
