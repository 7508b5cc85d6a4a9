//! Scores validation sets by functions of features, and logs metrics.

use crate::driver::{LogValue, Scores, StageContext, ValidationSet};
use fearless_simd::Level;
use planetree_base::error::{Error, Result};
use planetree_metric::Mean;
use planetree_model::family::{Family, RowValues};
use planetree_model::model::ModelFeature;

/// The validation sets of a linear function or a net, with the scores that training started from.
pub(crate) struct LinearValidation {
    /// The features of the model.
    features: Vec<ModelFeature>,
    sets: Vec<ValidationSet>,
}

impl LinearValidation {
    /// Takes the validation sets of a stage, with the scores that they start from, if there are any.
    pub(crate) fn new(context: &StageContext<'_>, start: Vec<Scores>) -> Self {
        let mut start = start.into_iter();
        let sets = context.validation.iter().map(|set| {
            let start = start.next().unwrap_or_else(|| Scores::constant(set.rows(), 0.0));
            ValidationSet::new(set.clone(), start)
        });
        LinearValidation { features: context.features.to_vec(), sets: sets.collect() }
    }

    /// Returns the scores of a validation set.
    pub(crate) fn scores(&self, function: &dyn Family, set: usize) -> Result<Scores> {
        let (scorer, set) = (function.scorer(&self.features, Level::new()), &self.sets[set]);
        let mut scores = set.by_query(|values, width| {
            let mut scores = vec![0.0; values.len() / width.max(1)];
            scorer.score(RowValues::Matrix { values, width }, &mut scores);
            scores
        })?;
        scores.add_values(|partition, row| set.scores().partition(partition)[row]);
        Ok(scores)
    }

    /// Returns the values to log after a round. `means` are the metrics of the training rows.
    pub(crate) fn log(&self, function: &dyn Family, means: &[Mean], round: u32) -> Result<Vec<LogValue>> {
        let mut values: Vec<LogValue> = LogValue::of_means("train", means).collect();
        for (number, set) in self.sets.iter().enumerate() {
            let scores = self.scores(function, number)?;
            if let Some(row) = set.data.not_finite(&scores) {
                return Err(Error::Untrainable(Box::new(Error::usage(
                    format_args!(
                        "the score of row {row} of {} became non-finite after round {round}",
                        set.data.name
                    ),
                    "set normalise_features=query, or a larger lambda_l2",
                ))));
            }
            values.extend(LogValue::of_means(&set.data.name, &set.data.evaluate(&scores)));
        }
        Ok(values)
    }
}
