//! Runs cross-validations and parameter searches ([`cv`]), blends models ([`blend`]), augments datasets ([`augment`]),
//! measures quality against cost ([`cost`]),
//! selects rows that resemble another dataset ([`select`]), fills missing values ([`impute`]) and runs pipelines of
//! commands ([`pipeline`]).

pub mod augment;
pub mod blend;
pub mod cost;
pub mod cv;
mod forest;
pub mod impute;
pub mod pipeline;
pub mod select;
