//! What every other crate of planetree builds on: errors, storage, random numbers, progress.

pub mod error;
pub mod progress;
pub mod random;
pub mod size;
pub mod storage;
pub mod suggest;
pub mod wire;
