//! Trained models. The score of a model is a sum of parts, and each part belongs to a family, such as decision trees
//! ([`family`]). The other modules contain the model and its file format ([`model`]), prediction ([`predict`]), costs
//! ([`cost`]),
//! Shapley values ([`explain`]), and import and export for other programs ([`exchange`]).

#![warn(unreachable_pub)]

pub mod cost;
pub mod exchange;
pub mod explain;
pub mod family;
pub mod model;
pub mod predict;
