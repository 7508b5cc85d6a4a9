//! Runs cross-validations and parameter searches ([`cv`]), blends models ([`blend`]), augments datasets ([`augment`]),
//! measures quality against cost ([`cost`]),
//! selects rows that resemble another dataset ([`select`]), fills missing values ([`impute`]), runs pipelines of commands
//! ([`pipeline`]) and reads start scores ([`read_start_scores`]).

#![warn(unreachable_pub)]

pub mod augment;
pub mod blend;
pub mod cost;
pub mod cv;
mod forest;
pub mod impute;
pub mod pipeline;
mod row_match;
pub mod select;
mod start_scores;

pub use start_scores::read_start_scores;
