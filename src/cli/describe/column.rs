//! Columns of tables as numbers or text, as all descriptions take them.

pub use crate::table::{numbers, texts};
