//! Columns of tables as numbers or text, as all descriptions take them.

pub use planetree_data::table::{numbers, texts};
