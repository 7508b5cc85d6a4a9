//! Shared foundations of the planetree crates: errors, panics, storage, random numbers, progress, jobs, least
//! squares and binary encoding.

#![warn(unreachable_pub)]

pub mod compact;
pub mod error;
pub mod job;
pub mod least_squares;
pub mod panics;
pub mod process_memory;
pub mod program;
pub mod progress;
pub mod random;
pub mod size;
pub mod storage;
pub mod suggest;
pub mod symmetric;
pub mod terminal;
pub mod threads;
pub mod wire;
