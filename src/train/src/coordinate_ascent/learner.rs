//! Connects Coordinate Ascent to the training driver. A round is a restart, and the part has the weights of the best one so
//! far.

use super::search::{EvaluatedWeights, equal_weights, evaluate, restart};
use crate::config::{CoordinateAscentOptions, CoordinateAscentSettings, LearnerParameters, MetricRanker};
use crate::driver::TrainRequest;
use crate::linear::{LinearAlgorithm, MetricAlgorithm, RankingProblem, undefined};
use planetree_base::error::Result;
use planetree_metric::Mean;
use planetree_model::model::LinearFunction;
use std::borrow::Cow;

/// Coordinate Ascent, restart by restart.
pub(crate) struct CoordinateAscent<'a> {
    request: &'a TrainRequest,
    settings: &'a CoordinateAscentSettings,
    problem: RankingProblem<'a>,
    /// The weights before the first round of this run.
    start: Vec<f64>,
    /// The best weights so far. `None` before the learner starts.
    best: Option<EvaluatedWeights>,
}

impl MetricAlgorithm for CoordinateAscentOptions {
    type Algorithm<'a> = CoordinateAscent<'a>;

    fn parameters(settings: MetricRanker<Self>) -> LearnerParameters {
        LearnerParameters::CoordinateAscent(settings)
    }

    fn algorithm<'a>(
        settings: &'a CoordinateAscentSettings,
        request: &'a TrainRequest,
        problem: RankingProblem<'a>,
    ) -> CoordinateAscent<'a> {
        let start = equal_weights(problem.features());
        CoordinateAscent { request, settings, problem, start, best: None }
    }
}

impl LinearAlgorithm for CoordinateAscent<'_> {
    fn resume(&mut self, function: &LinearFunction) {
        self.start = self.problem.target.plan.weights(function);
    }

    fn start(&mut self, _round: u32) -> Result<()> {
        let start = evaluate(&self.problem, self.start.clone())?;
        if start.counted == 0 {
            return Err(undefined(&self.problem.target, self.request.place()));
        }
        self.best = Some(start);
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<bool> {
        let found = restart(&self.problem, &self.settings.learner, self.settings.seed, round)?;
        if self.best.as_ref().is_none_or(|best| found.value > best.value) {
            self.best = Some(found);
        }
        Ok(true)
    }

    fn function(&self) -> Cow<'_, LinearFunction> {
        let weights = self.best.as_ref().map_or(&self.start, |best| &best.weights);
        Cow::Owned(self.problem.function(weights))
    }

    fn means(&self) -> &[Mean] {
        self.best.as_ref().map_or(&[], |best| &best.means)
    }

    fn end_note(&self, rounds: u32) -> String {
        format!("{rounds} restarts")
    }
}
