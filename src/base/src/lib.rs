//! Shared foundations of the planetree crates: errors, storage, random numbers, progress, jobs and binary encoding.

#![warn(unreachable_pub)]

pub mod compact;
pub mod error;
pub mod job;
pub mod progress;
pub mod random;
pub mod size;
pub mod storage;
pub mod suggest;
pub mod wire;
