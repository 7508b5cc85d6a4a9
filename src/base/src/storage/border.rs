//! The only crossing between async I/O and synchronous code: the rest of the crate calls [`wait`],
//! and no future ever runs on a compute thread.

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
        .expect("starting the two I/O threads")
});

/// Runs a future to completion. For work that must not be interrupted, such as cleaning up.
pub fn wait<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// Runs a future to completion or until the user interrupts.
pub fn wait_or_interrupt<F: Future>(future: F) -> Result<F::Output> {
    RUNTIME.block_on(async {
        tokio::select! {
            output = future => Ok(output),
            () = interrupted() => Err(Error::Interrupted),
        }
    })
}

/// Starts a future in the background.
pub fn start<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    RUNTIME.spawn(future)
}

/// Retries a request after a network failure: broken connections, truncated bodies. The store itself
/// retries requests that the server refused, but not those that may have arrived; all our requests
/// are idempotent. Answers such as "not found" are final.
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
