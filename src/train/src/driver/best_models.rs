//! Models at the best round of each metric: copies of the trained model that end where a metric was best on the first
//! validation set.

use super::log::{BestRound, LogEntry};
use super::request::TrainRequest;
use planetree_base::error::{Error, Result};
use planetree_metric::Metric;
use planetree_model::model::{Model, Part};

/// The model at the best round of a metric.
pub struct BestModel {
    /// The metric.
    pub metric: Metric,
    /// The best round of the last stage and the value of the metric in that round.
    pub best: BestRound,
    /// Number of rounds of the last stage.
    pub rounds: u32,
    /// The model up to that round.
    pub model: Model,
}

impl TrainRequest {
    /// Returns an error if models at the best rounds are requested without a validation set, for metrics that are not
    /// logged, or for a learner in which each round replaces the result of the previous one.
    pub(super) fn check_best_for(&self) -> Result<()> {
        let Some(first) = self.best_for.first() else { return Ok(()) };
        if self.validation.is_empty() {
            return Err(Error::usage(
                format_args!("--model-for {first}: there is no validation set"),
                "add one with --valid, or remove --model-for",
            ));
        }
        let spec = self.plan.stages.last().map(|stage| stage.learner.config().spec());
        if let Some(spec) = spec.filter(|spec| spec.replaces_rounds) {
            return Err(Error::usage(
                format_args!("--model-for {first}: every round of {} replaces the previous one", spec.noun),
                "remove --model-for; set early_stopping_rounds to keep the best round of the first metric",
            ));
        }
        let is_logged =
            |metric: &&Metric| self.plan.stages.last().is_some_and(|stage| stage.metrics.contains(metric));
        match self.best_for.iter().find(|metric| !is_logged(metric)) {
            Some(metric) => Err(Error::usage(
                format_args!("--model-for {metric}: the metric is not computed after each round"),
                format_args!("add {metric} to the parameter metric"),
            )),
            None => Ok(()),
        }
    }

    /// Returns the models at the best rounds of the requested metrics. `log` is that of the last stage, and `kept`
    /// returns the model up to a round of it.
    pub(super) fn best_models(
        &self,
        log: &[LogEntry],
        kept: impl Fn(u32) -> Model,
    ) -> Result<Vec<BestModel>> {
        let Some(set) = self.validation.first() else { return Ok(Vec::new()) };
        let of_metric = |metric: &Metric| {
            let best = BestRound::of(log, &set.name, metric).ok_or_else(|| {
                Error::usage(
                    format_args!("--model-for {metric}: no query of validation set {} counts", set.name),
                    "use another validation set, or another convention for queries without relevant documents",
                )
            })?;
            let rounds = log.iter().map(|entry| entry.round).max().unwrap_or(0);
            Ok(BestModel { metric: *metric, best, rounds, model: kept(best.round) })
        };
        self.best_for.iter().map(of_metric).collect()
    }
}

/// Removes the trees of all rounds after the `last` one from the parts of the last stage, which begin with `first_part`
/// and had `start_trees` before the first round. Removes these parts if they are empty and others precede them.
pub(super) fn keep_rounds(model: &mut Model, first_part: usize, start_trees: &[usize], last: u32) {
    for (part, start) in model.parts[first_part..].iter_mut().zip(start_trees) {
        if let Some(ensemble) = part.family.trees_mut() {
            ensemble.trees.truncate(start + last as usize);
        }
    }
    let is_empty = |part: &Part| part.family.trees().is_some_and(|ensemble| ensemble.trees.is_empty());
    if first_part > 0 && last == 0 && model.parts[first_part..].iter().all(is_empty) {
        model.parts.truncate(first_part); // the start alone is best
    }
}
