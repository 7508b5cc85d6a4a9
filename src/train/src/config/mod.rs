//! Defines the training parameters with their names, aliases and presets, and validates their values.
//!
//! ```text
//! preset ──► config file ──► --set ──► settings ──check──► parameters
//!        later sources override earlier ones
//! ```
//!
//! `learners/` has a file per learner, `sections/` the parameters that several learners share, and `keys.rs` says what a
//! parameter is.

mod choice;
mod foreign;
mod help;
mod keys;
mod learners;
mod listing;
mod load;
mod parameters;
mod plan;
mod plan_keys;
mod presets;
mod raw;
mod sections;
mod settings;
mod source;
mod value;
mod words;

pub use choice::{Choice, ValueKind, kind_of};
pub use help::help_table;
pub use help::wrap;
pub use keys::{chooses_objective, is_parameter};
pub use learners::*;
pub use listing::{ListedKind, ListedParameter, listed_parameters};
pub use load::{load, load_with};
pub use parameters::Parameters;
pub(crate) use plan::{ClassScores, ClassWeights, OrdinalTarget};
pub use plan::{LeastSquaresData, StageStart, Target, TrainingPlan};
pub use presets::TrainPreset;
pub use presets::presets;
pub use sections::*;
pub use source::value_text;

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod tests;
