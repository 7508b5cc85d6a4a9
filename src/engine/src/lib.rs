//! What the plans of DataFusion in this workspace share: the memory of their operators (`pool.rs`), and readers that
//! run on threads of their own (`reader.rs`).

mod pool;
mod reader;

pub use pool::ReservingPool;
pub use reader::{BatchSender, read_on_thread};
