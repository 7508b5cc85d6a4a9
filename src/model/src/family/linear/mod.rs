//! Linear functions of normalised features.
//!
//! ```text
//! value = base score + sum over the features of weight * normalised value of the feature
//! ```
//!
//! `function.rs` implements the family, `normalise.rs` normalises features, and `scorer.rs` scores rows.

mod function;
mod normalise;
mod scorer;
#[cfg(test)]
mod tests;

pub(crate) use function::KIND;
pub use function::{LinearFunction, LinearTerm};
pub use normalise::{FeatureNormalisation, FeatureNormaliser, Scaling};
pub(crate) use scorer::PreparedTerm;
