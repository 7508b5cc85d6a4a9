//! Tests that involve several files of this folder.

pub(crate) mod scorer;
pub(crate) mod stream;
mod words;
