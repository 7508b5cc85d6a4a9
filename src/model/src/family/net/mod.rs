//! Feed-forward nets of normalised features.
//!
//! ```text
//! first layer:  a = activation(bias + sum over the inputs of weight * normalised value of the feature)
//! later layers: a = activation(bias + sum over the units of the layer before of weight * a)
//! last layer:   value = bias + sum over the units of the layer before of weight * a
//! ```
//!
//! A net without a hidden layer is a linear function. `function.rs` implements the family and `rows.rs` its rows in model
//! files; `layer.rs` computes a layer, `activation.rs` has the functions of hidden units, and `scorer.rs` scores rows.

mod activation;
mod function;
mod layer;
mod rows;
mod scorer;
#[cfg(test)]
mod tests;

pub use activation::Activation;
pub(crate) use function::KIND;
pub use function::{NetFunction, NetInput};
pub use layer::{NetLayer, finish_layers};
