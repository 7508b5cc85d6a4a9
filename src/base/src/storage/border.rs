//! The one crossing between async I/O and everything else: the rest of the crate is plain code
//! that calls [`wait`], and no future ever runs on a compute thread.

use super::interrupt;
use crate::error::{Error, Result};
use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("planetree-io")
        .enable_all()
        .build()
        .expect("a process that cannot start two threads cannot do anything else either")
});

/// Runs a future to its end, however long that takes. For work that must not be cut short, such
/// as cleaning up.
pub fn wait<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// Runs a future to its end, or until the user interrupts.
pub fn wait_or_interrupt<F: Future>(future: F) -> Result<F::Output> {
    RUNTIME.block_on(async {
        tokio::select! {
            output = future => Ok(output),
            () = interrupted() => Err(Error::Interrupted),
        }
    })
}

/// Starts a future that runs while the caller goes on.
pub fn start<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    RUNTIME.spawn(future)
}

/// Repeats a request that failed on the way: connections that broke, bodies that were cut short.
/// The store repeats what the server refused, but not what may have arrived; all our requests may
/// arrive twice. Answers such as "not found" are final.
pub async fn retry<T, F, R>(mut request: R) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
    R: FnMut() -> F,
{
    const TRIES: u32 = 8;
    let mut tried = 0;
    loop {
        tried += 1;
        match request().await {
            Err(object_store::Error::Generic { .. }) if tried < TRIES => {
                tokio::time::sleep(Duration::from_millis(25 << tried)).await;
            }
            outcome => return outcome,
        }
    }
}

async fn interrupted() {
    while !interrupt::requested() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
