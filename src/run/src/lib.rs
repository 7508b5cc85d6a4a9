//! Runs cross-validations and parameter searches ([`cv`]), and pipelines of commands ([`pipeline`]).

#![warn(unreachable_pub)]

pub mod cv;
pub mod pipeline;
