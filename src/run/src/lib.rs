//! Many trainings: cross-validation ([`cv`]) and pipelines of commands ([`pipeline`]).

pub mod cv;
pub mod pipeline;
