//! Runs cross-validations and parameter searches ([`cv`]), blends models ([`blend`]), augments datasets ([`augment`]),
//! runs pipelines of commands ([`pipeline`]) and reads start scores ([`read_start_scores`]).

pub mod augment;
pub mod blend;
pub mod cv;
pub mod pipeline;
mod row_match;
mod start_scores;

pub use start_scores::read_start_scores;
