//! Models at the best round of each metric: copies of the trained model that end where a metric was best on the first
//! validation set.

use super::log::{BestRound, LogEntry};
use super::request::TrainRequest;
use super::rounds::ensemble_of_mut;
use planetree_base::error::{Error, Result};
use planetree_metric::Metric;
use planetree_model::model::Model;

/// The model at the best round of a metric.
pub struct BestModel {
    /// The metric.
    pub metric: Metric,
    /// The best round and the value of the metric in that round.
    pub best: BestRound,
    /// The model up to that round.
    pub model: Model,
}

impl TrainRequest {
    /// Returns an error if models at the best rounds are requested without a validation set or for metrics that are
    /// not logged.
    pub(super) fn check_best_for(&self) -> Result<()> {
        let Some(first) = self.best_for.first() else { return Ok(()) };
        if self.validation.is_empty() {
            return Err(Error::usage(
                format_args!("--model-for {first}: there is no validation set"),
                "add one with --valid, or remove --model-for",
            ));
        }
        match self.best_for.iter().find(|metric| !self.parameters.metrics.contains(metric)) {
            Some(metric) => Err(Error::usage(
                format_args!("--model-for {metric}: the metric is not computed after each round"),
                format_args!("add {metric} to the parameter metric"),
            )),
            None => Ok(()),
        }
    }

    /// Returns the models at the best rounds of the requested metrics. `model` has the trees of all rounds, the first
    /// `start_trees` of which are those of the start model.
    pub(super) fn best_models(
        &self,
        model: &Model,
        start_trees: usize,
        log: &[LogEntry],
    ) -> Result<Vec<BestModel>> {
        let Some(set) = self.validation.first() else { return Ok(Vec::new()) };
        let of_metric = |metric: &Metric| {
            let best = BestRound::of(log, &set.name, metric).ok_or_else(|| {
                Error::usage(
                    format_args!("--model-for {metric}: no query of validation set {} counts", set.name),
                    "use another validation set, or another convention for queries without relevant documents",
                )
            })?;
            let mut model = model.clone();
            keep_rounds(&mut model, start_trees, best.round);
            Ok(BestModel { metric: *metric, best, model })
        };
        self.best_for.iter().map(of_metric).collect()
    }
}

/// Removes the trees of all rounds after the `last` one, and the part that holds them if none are left.
pub fn keep_rounds(model: &mut Model, start_trees: usize, last: u32) {
    let trees = &mut ensemble_of_mut(model).trees;
    trees.truncate(start_trees + last as usize);
    if trees.is_empty() && model.parts.len() > 1 {
        model.parts.pop(); // the start model alone is best
    }
}
