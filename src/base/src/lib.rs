//! Foundations of the other planetree crates: errors, storage, random numbers, progress, jobs.

pub mod compact;
pub mod error;
pub mod job;
pub mod progress;
pub mod random;
pub mod size;
pub mod storage;
pub mod suggest;
pub mod wire;
