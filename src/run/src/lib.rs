//! Runs cross-validations and parameter searches ([`cv`]), blends models ([`blend`]), augments datasets ([`augment`]), measures quality against cost
//! ([`cost`]) and
//! runs pipelines of commands ([`pipeline`]).

pub mod augment;
pub mod blend;
pub mod cost;
pub mod cv;
pub mod pipeline;
