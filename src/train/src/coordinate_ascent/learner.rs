//! Connects Coordinate Ascent to the training driver. A round is a restart, and the part has the weights of the best one so
//! far.

use super::search::{EvaluatedWeights, equal_weights, evaluate, restart};
use crate::config::{CoordinateAscentParameters, CoordinateAscentSettings, LearnerParameters};
use crate::driver::{Learner, MemberInput, Observer, PartSettings, StageContext, TrainRequest};
use crate::linear::{
    LinearAlgorithm, LinearLearner, RANKING_BYTES_PER_ROW, RankerKind, RankingProblem, problem, undefined,
};
use planetree_base::error::Result;
use planetree_metric::Mean;
use planetree_model::model::{LinearFunction, PartFamily};
use std::borrow::Cow;

/// Coordinate Ascent, restart by restart.
struct CoordinateAscent<'a> {
    request: &'a TrainRequest,
    settings: &'a CoordinateAscentSettings,
    problem: RankingProblem<'a>,
    /// The weights before the first round of this run.
    start: Vec<f64>,
    /// The best weights so far. `None` before the learner starts.
    best: Option<EvaluatedWeights>,
}

impl PartSettings for CoordinateAscentSettings {
    fn learner<'a>(
        &'a self,
        context: &StageContext<'a>,
        input: &'a MemberInput,
        observer: &mut dyn Observer,
    ) -> Result<(PartFamily, Box<dyn Learner + 'a>)> {
        let CoordinateAscentParameters { metric, normalisation, .. } = self.learner;
        let kind = RankerKind { name: "Coordinate Ascent", metric, normalisation };
        let parameters = LearnerParameters::CoordinateAscent(self.learner.clone());
        let (problem, validation) = problem(&kind, context, self, parameters, input, observer)?;
        let start = equal_weights(problem.features());
        let algorithm =
            CoordinateAscent { request: context.request, settings: self, problem, start, best: None };
        let part = PartFamily::Linear(algorithm.function().into_owned());
        Ok((part, Box::new(LinearLearner { algorithm, validation })))
    }

    fn bytes_per_row(&self, _request: &TrainRequest, members: u64) -> u64 {
        members * RANKING_BYTES_PER_ROW
    }

    fn logs_error(&self, _request: &TrainRequest) -> bool {
        false
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
