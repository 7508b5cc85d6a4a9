//! Tests that involve several files of this folder.

mod parts;
pub(crate) mod scorer;
pub(crate) mod stream;
mod version_1;
mod words;
