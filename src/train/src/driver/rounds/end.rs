//! The end of a stage and of a training run: rounds after the best one are removed, and the outcome is created.

use super::{Stage, StopReason, Training, rounds_in};
use crate::driver::best_models::{BestModel, keep_rounds};
use crate::driver::learner::LearnerOutputs;
use crate::driver::log::undefined_metrics;
use crate::driver::members::Members;
use crate::driver::{Observer, Outcome};
use planetree_base::error::{Error, Result};
use planetree_model::model::Part;

impl Training<'_> {
    /// Ends a stage. With early stopping, only the rounds up to the best one are kept.
    pub(super) fn end(
        &mut self,
        stop: &StopReason,
        stage: Stage<'_, '_>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<LearnerOutputs>> {
        let Stage { number, parameters, members, .. } = stage;
        let is_without_splits = self.size.trees > 0 && self.size.leaves == self.size.trees
            || matches!(stop, StopReason::NoSplit) && self.round == 0;
        if is_without_splits && number == 1 {
            return Err(members.first().no_split());
        }
        let (best, rounds) = (self.best_round(parameters), self.round);
        let of_stage =
            if self.request.plan.stages.len() > 1 { format!("stage {number}: ") } else { String::new() };
        let end_note = matches!(stop, StopReason::NoSplit).then(|| members.first().end_note(rounds));
        if let Some(note) = &end_note {
            observer.note(&format!("{of_stage}{note}"));
        }
        if matches!(stop, StopReason::Complete) && best.is_none() {
            let notes = members.learners().filter_map(|learner| learner.limit_note(rounds));
            notes.take(1).for_each(|note| observer.note(&format!("{of_stage}{note}")));
        }
        if let Some(best) = best.filter(|best| best.round < rounds) {
            let prefix = if matches!(stop, StopReason::Early) { "stopped early: " } else { "" };
            let start = match (number, &self.request.start) {
                (1, Some(_)) => "the start model",
                (1, None) => "the start scores",
                _ => "the earlier stages",
            };
            observer.note(&match best.round {
                0 if rounds == 1 => format!("{of_stage}{prefix}the first round is not better than {start}"),
                0 => format!("{of_stage}{prefix}none of {rounds} rounds is better than {start}"),
                round => format!("{of_stage}{prefix}the best round is {round} of {rounds}"),
            });
        }
        let last = best.map_or(rounds, |best| best.round);
        let notes = members.learners().filter_map(|learner| learner.unfinished_note(last));
        notes.take(1).for_each(|note| observer.note(&format!("{of_stage}{note}")));
        if number as usize == self.request.plan.stages.len() {
            self.best_models = self.best_models(members)?;
        }
        if best.is_some() {
            for (number, part) in self.model.parts[self.first_part..].iter_mut().enumerate() {
                members.rewind(number, &mut part.family, last);
            }
        }
        // Before its first round, a linear function or a net adds nothing to the scores that it starts from.
        let is_empty = |part: &Part| part.family.trees().is_none_or(|ensemble| ensemble.trees.is_empty());
        if self.first_part > 0
            && self.file.is_none()
            && (last == 0 || is_without_splits)
            && (is_without_splits || self.model.parts[self.first_part..].iter().all(is_empty))
        {
            self.model.parts.truncate(self.first_part); // the start alone is best
        }
        let spent = self.begun.elapsed().as_secs_f64();
        self.seconds.train += spent - self.writing;
        self.before += spent;
        self.best = best;
        let first = self.log.partition_point(|entry| entry.stage < number);
        let mut warnings: Vec<String> = members.learners().filter_map(|learner| learner.warning()).collect();
        warnings.dedup();
        warnings.retain(|warning| Some(warning) != end_note.as_ref());
        for warning in warnings.into_iter().chain(undefined_metrics(&self.log[first..])) {
            observer.note(&format!("warning: {warning}"));
        }
        let outputs = members.learners().map(|learner| learner.finish(last)).collect();
        (self.stage, self.round, self.first_part) = (number + 1, 0, self.model.parts.len());
        Ok(outputs)
    }

    /// Returns the models at the best rounds of the requested metrics.
    fn best_models(&self, members: &Members<'_>) -> Result<Vec<BestModel>> {
        if let (Some(metric), Some(_)) = (self.request.best_for.first(), members.best().next()) {
            return Err(Error::usage(
                format_args!(
                    "--model-for {metric}: every round replaces the model, and only the best one is kept"
                ),
                "remove --model-for, and list the metric first in the parameter metric",
            ));
        }
        let start_trees: Vec<usize> = members.parts().map(|part| rounds_in(&part.family) as usize).collect();
        let first = self.log.partition_point(|entry| entry.stage < self.stage);
        self.request.best_models(&self.log[first..], |last| {
            let mut model = self.model.clone();
            keep_rounds(&mut model, self.first_part, &start_trees, last);
            model
        })
    }

    /// Creates the outcome after the last stage.
    pub fn finish(mut self, outputs: LearnerOutputs) -> Result<Outcome> {
        let LearnerOutputs { out_of_bag, strength } = outputs;
        let written = match self.file.take() {
            None => None,
            Some(file) => {
                file.finish(&self.model, &[])?;
                Some(self.size)
            }
        };
        let Training { model, log, best, best_models, seconds, .. } = self;
        Ok(Outcome { model, written, log, best, out_of_bag, strength, best_models, seconds })
    }
}
