//! Tests of more than one file of this folder.

pub(crate) mod scorer;
pub(crate) mod stream;
mod words;
