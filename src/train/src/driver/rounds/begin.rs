//! The beginning of a stage: its parts join the model, or those of a checkpoint are continued.

use super::{Stage, Training, rounds_in};
use crate::driver::{ModelSize, Observer};
use planetree_base::error::Result;
use planetree_model::model::PartFamily;
use std::time::Instant;

impl Training<'_> {
    /// Adds the parts of a stage to the model, or continues those of a checkpoint. Returns whether it continues.
    pub(super) fn begin(&mut self, stage: &mut Stage<'_, '_>, observer: &mut dyn Observer) -> Result<bool> {
        self.size = ModelSize::default();
        let resumed = self.resumed.take().filter(|state| !state.is_between_stages(&self.model));
        let Some(state) = resumed else {
            (self.stage, self.round, self.first_part) = (stage.number, 0, self.model.parts.len());
            self.model.parts.extend(stage.members.parts().cloned());
            self.file = self.model_file(stage)?;
            return Ok(false);
        };
        let kept = self.model.parts.split_off(self.first_part + stage.members.count());
        for (number, part) in state.best.iter().zip(kept) {
            stage.members.restore_best(*number, part.family);
        }
        let parts = &mut self.model.parts[self.first_part..];
        for (number, (part, start)) in parts.iter().zip(stage.members.parts()).enumerate() {
            if !state.best.contains(&number) && !continues(&part.family, &start.family) {
                return Err(state.started_otherwise(self.request, number));
            }
        }
        for (part, start) in parts.iter_mut().zip(stage.members.parts()) {
            // The number of trees may have been raised since the checkpoint.
            part.configuration.clone_from(&start.configuration);
        }
        let begun = Instant::now();
        let count: u64 = parts.iter().map(|part| rounds_in(&part.family)).sum();
        if self.round > 0 {
            let meter = observer.begin("replaying trees", count, "trees");
            for (learner, part) in stage.members.learners().zip(&*parts) {
                learner.replay(&part.family, &*meter)?;
            }
            for (learner, saved) in stage.members.learners().zip(&state.states) {
                saved.iter().try_for_each(|saved| learner.restore(saved))?;
            }
        }
        for (number, part) in parts.iter_mut().enumerate() {
            let start = stage.members.parts().nth(number).map_or(0, |start| rounds_in(&start.family));
            if let Some(ensemble) = part.family.trees() {
                ensemble.trees[start as usize..].iter().for_each(|tree| self.size.add(tree));
                let is_behind = (ensemble.trees.len() as u64) < start + u64::from(self.round);
                let is_ended = is_behind && stage.members.best().all(|(best, _)| best != number);
                if is_ended {
                    stage.members.end(number);
                }
            }
        }
        self.seconds.load += begun.elapsed().as_secs_f64();
        Ok(true)
    }
}

/// Returns whether the content of a part may come from rounds that began with `start`.
fn continues(content: &PartFamily, start: &PartFamily) -> bool {
    match (content.trees(), start.trees()) {
        (Some(content), Some(start)) => {
            content.combine == start.combine
                && content.base_feature == start.base_feature
                && content.base_score == start.base_score
                && content.normalisation == start.normalisation
                && content.trees.get(..start.trees.len()) == Some(&start.trees[..])
        }
        _ => content.kind() == start.kind(),
    }
}
