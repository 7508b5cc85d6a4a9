//! Runs async I/O from synchronous code. The rest of this crate calls [`wait`] or [`wait_or_interrupt`]. Tasks that
//! are started in the background run on two I/O threads, not on the compute threads.

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

/// Blocks until a future completes, even if the user interrupts the command. It is meant for work that must not be
/// interrupted, such as cleaning up.
pub fn wait<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// Blocks until a future completes or the user interrupts the command.
pub fn wait_or_interrupt<F: Future>(future: F) -> Result<F::Output> {
    RUNTIME.block_on(async {
        tokio::select! {
            output = future => Ok(output),
            () = interrupted() => Err(Error::Interrupted),
        }
    })
}

/// Starts a future on the I/O threads and returns immediately.
pub fn start<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    RUNTIME.spawn(future)
}

/// Retries a request after a network failure, such as a broken connection or a truncated body. The `object_store`
/// crate retries requests that the server refused, but not requests that the server may already have processed.
/// Repeating such requests is safe here, because all requests of planetree are idempotent. Responses such as "not
/// found" are not retried.
pub(crate) async fn retry<T, F, R>(mut request: R) -> object_store::Result<T>
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
