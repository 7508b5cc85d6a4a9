//! LightGBM's text format: `key=value` lines for the model and then for every tree, with lists separated by spaces.
//!
//! Values are 64-bit floats, and go left if they are at most the threshold, as in planetree. So scores are the same to
//! the bit. For each split, missing values (NaN) count as zero, or go left or right.

mod read;
mod write;

pub use read::{import, is_likely};
pub use write::{export, is_ours};

/// Key of the indices of the features whose categories are the lists of `pandas_categorical`. LightGBM ignores it: for
/// LightGBM, these are the columns of type `category`, in their order.
const WORDS: &str = "planetree_words";
/// Start of the last line.
const PANDAS: &str = "pandas_categorical:";

/// Bit of `decision_type`: the split is on categories.
const CATEGORICAL: u8 = 1;
/// Bit of `decision_type`: missing values go left.
const MISSING_LEFT: u8 = 2;
/// First of two bits of `decision_type` that say what counts as missing: [`NOTHING`], [`ZERO`] or [`NAN`].
const MISSING_KIND: u32 = 2;
/// Nothing is missing: NaN counts as zero.
const NOTHING: u8 = 0;
/// Zero and NaN are missing.
const ZERO: u8 = 1;
/// NaN is missing.
const NAN: u8 = 2;
