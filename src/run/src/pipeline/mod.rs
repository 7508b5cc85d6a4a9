//! Pipelines: steps written down once, run as often as needed, each step only when something that it
//! depends on has changed.
//!
//! ```text
//! TOML ──document──► keys with their places
//!                       │ parameters: {name} is replaced
//!                       ▼ draft: for_each is made into steps, outputs get their names
//!                    graph: what reads what, in an order
//!                       │ plan: places and command lines; decide: what must run and why
//!                       ▼
//!                    run: a process a step ──► outputs, run.json, steps.parquet
//! ```
//!
//! Vocabulary: a *kind* is a command as a step; a *reference* is an input that another step writes; an
//! *identity* is the content of a file or dataset; a step's *fingerprint* is its inputs' identities, its
//! options and the program's version in one; *means* are options that say how to run and not what.

mod child;
mod decide;
mod document;
mod draft;
mod graph;
mod identity;
mod kinds;
mod manifest;
mod names;
mod options;
mod parameters;
mod plan;
mod run;
mod steps_table;

pub use child::{AS_STEP, Figures, figures_line};
pub use decide::{Decision, Known, Why};
pub use graph::{Step, StepInput};
pub use manifest::{RunManifest, RunStatus, RunStep, STEPS_TABLE, StepStatus};
pub use options::Commands;
pub use plan::{Plan, RunRequest, public};
pub use run::{Budget, Ran, Watcher, run};
pub use steps_table::steps_schema;

#[cfg(test)]
mod tests;
