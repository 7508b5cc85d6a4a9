//! Runs cross-validations and parameter searches ([`cv`]), and pipelines of commands ([`pipeline`]).

pub mod cv;
pub mod pipeline;
