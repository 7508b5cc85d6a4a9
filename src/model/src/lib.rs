//! Models: trees and their table ([`model`]), prediction ([`predict`]), Shapley values ([`explain`]), and import and
//! export for other programs ([`exchange`]).

pub mod exchange;
pub mod explain;
pub mod model;
pub mod predict;
