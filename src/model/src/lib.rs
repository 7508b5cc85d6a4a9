//! Models: parts and their families ([`family`]), the model and its table ([`model`]), prediction ([`predict`]), Shapley
//! values ([`explain`]), and import and export for other programs ([`exchange`]).

pub mod exchange;
pub mod explain;
pub mod family;
pub mod model;
pub mod predict;
