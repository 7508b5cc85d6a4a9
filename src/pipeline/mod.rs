//! Pipelines: steps written down once, run as often as needed, each step only when something that it
//! depends on has changed.

mod manifest;

pub use manifest::{RUN_MANIFEST, RunManifest, RunStatus, RunStep, STEPS_TABLE, StepStatus};
