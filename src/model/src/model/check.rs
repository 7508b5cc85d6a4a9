//! Validates models. Every model is validated when it is read or written, so prediction needs no checks of its own
//! and always terminates.

use super::{Model, ModelFeature};
use std::collections::HashSet;

impl Model {
    /// Returns a description of the first problem in the model, or `None` if the model is valid.
    pub(crate) fn fault(&self) -> Option<String> {
        if !self.intercept.is_finite() {
            return Some(format!("the intercept is {}, but it must be finite", self.intercept));
        }
        if self.parts.is_empty() {
            return Some("the model has no parts".to_owned());
        }
        let mut names = HashSet::new();
        for ModelFeature { name, fill, words } in &self.features {
            if !names.insert(name) {
                return Some(format!("duplicate feature name {name}"));
            }
            if fill.is_some_and(|fill| !fill.is_finite()) {
                return Some(format!("the fill value of feature {name} is not finite"));
            }
            let mut seen = HashSet::new();
            if let Some(word) = words.iter().find(|word| !seen.insert(*word)) {
                return Some(format!("category {word:?} of feature {name} has two codes"));
            }
        }
        let of_parts = (0..self.parts.len()).find_map(|part| {
            self.part_fault(part).map(|problem| format!("{}: {problem}", self.part_label(part)))
        });
        of_parts.or_else(|| self.group_fault())
    }

    fn part_fault(&self, part: usize) -> Option<String> {
        let part = &self.parts[part];
        if !part.weight.is_finite() {
            return Some(format!("the weight is {}, but it must be finite", part.weight));
        }
        part.family.fault(self.features.len())
    }
}
