//! Scores validation sets by functions of features, and logs metrics.

use crate::config::{Parameters, Target};
use crate::driver::{LogValue, MemberInput, Metrics, Scores, StageContext, ValidationData, ValidationSet};
use fearless_simd::Level;
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledRows;
use planetree_metric::Mean;
use planetree_model::family::{Family, RowValues};
use planetree_model::model::ModelFeature;
use std::sync::Arc;

/// The validation sets of a linear function or a net, with the scores that training started from.
pub(crate) struct LinearValidation {
    /// The features of the model.
    features: Vec<ModelFeature>,
    sets: Vec<ValidationSet>,
    /// The labels of a class with their metrics, by set, if the function learns one of several classes.
    classes: Vec<(Vec<LabelledRows>, Metrics)>,
}

impl LinearValidation {
    /// Takes the validation sets of a stage, with the scores that they start from, if there are any.
    pub(crate) fn new<L: Sync>(
        context: &StageContext<'_>,
        settings: &Parameters<L>,
        member: &MemberInput,
        start: Vec<Scores>,
    ) -> Result<Self> {
        let mut start = start.into_iter();
        let sets = context.validation.iter().map(|set| {
            let start = start.next().unwrap_or_else(|| Scores::constant(set.rows(), 0.0));
            ValidationSet::new(set.clone(), start)
        });
        let of_class = |grade: i32| {
            let labels = |set: &Arc<ValidationData>| {
                let mut rows = set.rows().to_vec();
                let labels = rows.iter_mut().flat_map(|rows| &mut rows.labels);
                labels.for_each(|label| *label = Target::AtMost(grade).label(*label));
                let metrics = Metrics::new(settings, &rows)?;
                Ok((rows, metrics))
            };
            context.validation.iter().map(labels).collect::<Result<Vec<_>>>()
        };
        let class = member.at_most.filter(|_| context.request.plan.target.has_classes());
        Ok(LinearValidation {
            features: context.features.to_vec(),
            sets: sets.collect(),
            classes: class.map(of_class).transpose()?.unwrap_or_default(),
        })
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
            let means = match self.classes.get(number) {
                Some((rows, metrics)) => metrics.evaluate(rows, &scores),
                None => set.data.evaluate(&scores),
            };
            values.extend(LogValue::of_means(&set.data.name, &means));
        }
        Ok(values)
    }
}
