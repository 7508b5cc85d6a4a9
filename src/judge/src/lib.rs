//! Evaluates rankings ([`evaluate`]) and tests whether they differ significantly ([`compare`]).

pub mod compare;
pub mod evaluate;
mod plan;
