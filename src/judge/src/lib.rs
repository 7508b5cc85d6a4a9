//! Evaluation of rankings ([`evaluate`]) and significance tests between them ([`compare`]).

pub mod compare;
pub mod evaluate;
mod plan;
