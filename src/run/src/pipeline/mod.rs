//! Runs pipelines of commands, which are described in TOML files. A step runs only if something that it depends on
//! has changed.
//!
//! ```text
//! TOML ──document──► keys with their positions
//!                       │ parameters: {name} is substituted
//!                       ▼ draft: for_each is expanded, outputs get their names
//!                    graph: dependencies and order of the steps
//!                       │ plan: locations and command lines; decide: which steps must run and why
//!                       ▼
//!                    run: one process per step ──► outputs, run.json, steps.parquet
//! ```
//!
//! Vocabulary:
//!
//! - the *kind* of a step is the command that it runs;
//! - a *reference* is an input that names an output of another step;
//! - an *identity* is a hash of the content of a file or dataset;
//! - a *fingerprint* is a hash of the inputs of a step, its options and the version of the program;
//! - *resource options* affect how a step runs but not its outputs.

mod child;
mod decide;
mod document;
mod draft;
mod graph;
mod identity;
mod kinds;
mod letor_parts;
mod manifest;
mod names;
mod options;
mod paper;
mod parameters;
mod plan;
mod run;
mod settings;
mod shipped;
mod steps_table;

pub use child::{AS_STEP, StepUsage, usage_line};
pub use decide::StepDecision;
pub use decide::{IdentityCache, RunReason};
pub use graph::PipelineStep;
pub use graph::StepInput;
pub use manifest::{RunManifest, RunStatus, RunStep, StepStatus};
pub use options::Commands;
pub use paper::{Paper, PaperByPart, PaperDifference, PaperFinding, PaperPartRow, PaperRow, PaperTable};
pub use plan::{PipelinePlan, RunRequest};
pub use run::RunCounts;
pub use run::{RunBudget, RunObserver, run};
pub use shipped::{SHIPPED, ShippedPipeline};

#[cfg(test)]
mod tests;
