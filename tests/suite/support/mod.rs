//! Helpers shared by the tests: running the program, making data, reading outputs, and starting the servers and
//! tools that some tests need. Test files import from here, never from each other.

#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(feature = "cluster")]
pub mod hostile;
pub mod object_stores;
pub mod pipelines;
pub mod reports;
pub mod sql;

mod datasets;
mod files;
mod learners;
mod manual;
mod metrics;
mod processes;
mod program;
mod tables;
mod tools;
mod training;

pub use datasets::*;
pub use files::*;
pub use learners::*;
pub use manual::*;
pub use metrics::*;
pub use processes::*;
pub use program::*;
pub use tables::*;
pub use tools::*;
pub use training::*;
