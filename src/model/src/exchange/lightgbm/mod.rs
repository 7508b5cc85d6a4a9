//! Defines constants of LightGBM's text format, which `read.rs` and `write.rs` share. The format has `key=value`
//! lines for the model and then for every tree, with lists separated by spaces.
//!
//! Numbers are 64-bit floats, and values go left if they are at most the threshold, as in planetree. So scores are
//! bit-identical. Each split defines whether missing values (NaN) count as zero, go left or go right.

mod read;
mod serve;
mod write;

pub(super) use read::{import, is_likely};
pub(super) use serve::served;
pub(super) use write::{export, is_ours};

/// Key for a list of feature indices, one for each list of categories in `pandas_categorical`. LightGBM ignores this
/// key, because it assigns the lists to the DataFrame columns of type `category`, in order.
const WORDS: &str = "planetree_words";
/// Start of the last line of a file, which contains lists of categories as JSON.
const PANDAS: &str = "pandas_categorical:";

/// Values that are at most this far from 0 are read as 0.
const TINY: f32 = 1e-35;

/// Bit of `decision_type` that is set if the split is categorical.
const CATEGORICAL: u8 = 1;
/// Bit of `decision_type` that is set if missing values go left.
const MISSING_LEFT: u8 = 2;
/// Position of the first of two bits of `decision_type` that define which values are missing: [`NOTHING`], [`ZERO`] or
/// [`NAN`].
const MISSING_KIND: u32 = 2;
/// No value is missing, and NaN counts as zero.
const NOTHING: u8 = 0;
/// Zero and NaN are missing.
const ZERO: u8 = 1;
/// Only NaN is missing.
const NAN: u8 = 2;
