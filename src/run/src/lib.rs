//! Cross-validation and parameter search ([`cv`]), and pipelines of commands ([`pipeline`]).

pub mod cv;
pub mod pipeline;
