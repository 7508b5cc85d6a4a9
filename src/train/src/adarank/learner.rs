//! Connects AdaRank to the training driver.

use super::boosting::{Ensemble, round, start};
use crate::config::{AdaRankOptions, AdaRankSettings, LearnerParameters, MetricRanker};
use crate::driver::TrainRequest;
use crate::linear::{LinearAlgorithm, MetricAlgorithm, RankingProblem, undefined};
use planetree_base::error::{Error, Result};
use planetree_metric::Mean;
use planetree_model::model::LinearFunction;
use std::borrow::Cow;

/// AdaRank, round by round.
pub(crate) struct AdaRank<'a> {
    request: &'a TrainRequest,
    settings: &'a AdaRankSettings,
    problem: RankingProblem<'a>,
    /// The function of a checkpoint.
    resumed: Option<LinearFunction>,
    /// The ensemble after the last round. `None` before the learner starts.
    current: Option<Ensemble>,
}

impl MetricAlgorithm for AdaRankOptions {
    type Algorithm<'a> = AdaRank<'a>;

    fn parameters(settings: MetricRanker<Self>) -> LearnerParameters {
        LearnerParameters::AdaRank(settings)
    }

    fn algorithm<'a>(
        settings: &'a AdaRankSettings,
        request: &'a TrainRequest,
        problem: RankingProblem<'a>,
    ) -> AdaRank<'a> {
        AdaRank { request, settings, problem, resumed: None, current: None }
    }
}

impl LinearAlgorithm for AdaRank<'_> {
    fn resume(&mut self, function: &LinearFunction) {
        self.resumed = Some(function.clone());
    }

    /// Repeats the rounds of a checkpoint: which features may be selected next depends on the last selections, which the
    /// weights do not tell.
    fn start(&mut self, first: u32) -> Result<()> {
        let mut ensemble = start(&self.problem)?;
        if ensemble.counted == 0 {
            return Err(undefined(&self.problem.target, self.request.place()));
        }
        for _ in 1..first {
            let Some(next) = round(&self.problem, &self.settings.learner, &ensemble)? else { break };
            ensemble = next;
        }
        self.current = Some(ensemble);
        match &self.resumed {
            Some(function) if *function != *self.function() => {
                Err(Error::usage("the checkpoint does not fit the data", "start over without --resume"))
            }
            _ => Ok(()),
        }
    }

    fn round(&mut self, _round: u32) -> Result<bool> {
        let Some(current) = &self.current else {
            return Err(Error::bug("adarank", "the learner was not started"));
        };
        let next = round(&self.problem, &self.settings.learner, current)?;
        let is_improved = next.is_some();
        self.current = next.or_else(|| self.current.take());
        Ok(is_improved)
    }

    fn function(&self) -> Cow<'_, LinearFunction> {
        let zero = vec![0.0; self.problem.features()];
        let weights = self.current.as_ref().map_or(&zero, |ensemble| &ensemble.weights);
        Cow::Owned(self.problem.function(weights))
    }

    fn means(&self) -> &[Mean] {
        self.current.as_ref().map_or(&[], |ensemble| &ensemble.means)
    }

    fn end_note(&self, rounds: u32) -> String {
        format!("stopped after {rounds} rounds: another round would lower {}", self.problem.target.metric)
    }
}
