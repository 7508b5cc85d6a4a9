//! Models: the table of nodes ([`model`]), scores ([`predict`]), Shapley values ([`explain`]) and the formats of other
//! programs ([`exchange`]).

pub mod exchange;
pub mod explain;
pub mod model;
pub mod predict;
