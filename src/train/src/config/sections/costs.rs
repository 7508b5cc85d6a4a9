//! Parameters of training with costs of features (Mohan 2010, chapter 6). The costs themselves are no parameters: they
//! are read from a file.

use super::super::keys::{Key, KeyKind, NOT_NEGATIVE};
use super::super::learners::BOOST;
use super::super::raw::RawParameters;
use super::super::settings::TrainSettings;
use super::Section;
use planetree_base::error::Result;

/// How much the costs of features count. A value is `None` unless it is set.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CostParameters {
    /// Factor of the costs, in units of gain per unit of cost.
    pub lambda: Option<f64>,
    /// Forests: number of trees per batch. Features that a batch uses are free from the next batch on.
    pub batch: Option<u32>,
}

impl CostParameters {
    /// Returns the factor of the costs. 0 ignores costs.
    pub fn lambda(&self) -> f64 {
        self.lambda.unwrap_or(1.0)
    }

    /// Returns the number of trees per batch of a forest. Boosted trees know all earlier trees.
    pub fn batch(&self) -> u32 {
        self.batch.unwrap_or(8)
    }
}

/// Parameters of training with costs of features.
pub(crate) static COSTS: Section = Section { keys: KEYS, check, ..Section::PLAIN };

/// The value of a parameter that is not set.
const AUTO: &str = "auto";

static KEYS: &[Key] = &[
    Key {
        name: "cost_lambda",
        kind: KeyKind::Custom {
            expected: |_| "auto or a number from 0",
            set: |raw, written| {
                let number = written.text.parse::<f64>().ok().filter(|value| NOT_NEGATIVE.contains(*value));
                raw.tree.costs.lambda = if written.text == AUTO { None } else { Some(number.ok_or(None)?) };
                Ok(())
            },
            get: |raw| raw.tree.costs.lambda.map_or_else(auto, |value| format!("{value:?}")),
        },
        default: AUTO,
        omits_default: true,
        help: "With --costs: factor of the costs of features, in units of gain; the split with the highest gain minus \
               cost_lambda times the cost of its feature is chosen. 0 ignores costs; auto is 1",
        ..Key::PLAIN
    },
    Key {
        name: "cost_batch",
        kind: KeyKind::Custom {
            expected: |_| "auto or a whole number from 1",
            set: |raw, written| {
                let number = written.text.parse::<u32>().ok().filter(|trees| *trees > 0);
                raw.tree.costs.batch = if written.text == AUTO { None } else { Some(number.ok_or(None)?) };
                Ok(())
            },
            get: |raw| raw.tree.costs.batch.map_or_else(auto, |trees| trees.to_string()),
        },
        default: AUTO,
        omits_default: true,
        help: "Forests with --costs: trees per batch; features that a batch uses are free from the next batch on; \
               independent of the number of threads. auto is 8",
        ..Key::PLAIN
    },
];

fn auto() -> String {
    format!("\"{AUTO}\"")
}

/// Rejects batches of boosted trees.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    if raw.learner != &BOOST || raw.tree.costs.batch.is_none() {
        return Ok(());
    }
    if settings.is_chosen("cost_batch") {
        return Err(settings.fault(
            "cost_batch",
            "boosted trees know all earlier trees, so they have no batches",
            "remove it, or set ensemble=bag",
        ));
    }
    raw.tree.costs.batch = None;
    Ok(())
}
