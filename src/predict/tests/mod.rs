//! Tests of more than one file of this folder.

mod scorer;
pub(crate) mod stream;
