//! LightGBM's text: `key=value` lines for the model and then for every tree, numbers side by side.
//!
//! Values are 64-bit numbers that go left when they are at most the threshold, as ours do, and so scores
//! are the same to the bit. A split says of missing values (NaN) that they are zeros, or that they go
//! left or right.

mod read;
mod write;

pub use read::{import, is_likely};
pub use write::{export, is_ours};

/// A split's kind is a number made of bits: whether missing values go left ...
const MISSING_LEFT: u8 = 2;
/// ... whether it is about words instead of numbers ...
const CATEGORICAL: u8 = 1;
/// The key of the features, by place, whose words are the lists of `pandas_categorical`. LightGBM passes it over: to it
/// they are the columns of type `category`, in their order.
const WORDS: &str = "planetree_words";
/// How the last line begins.
const PANDAS: &str = "pandas_categorical:";
/// ... and, from this bit on, what counts as missing: nothing, zero, or NaN.
const MISSING_KIND: u32 = 2;
/// NaN is taken for zero.
const NOTHING: u8 = 0;
/// Zero and NaN are missing.
const ZERO: u8 = 1;
/// NaN is missing.
const NAN: u8 = 2;
