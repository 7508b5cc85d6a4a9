//! Runs async I/O from synchronous code. The rest of this crate calls [`wait`] or [`wait_or_interrupt`]. Tasks that
//! are started in the background run on two I/O threads, not on the compute threads.

use super::interrupt;
use crate::error::{Error, Result};
use crate::threads::start_runtime;
use object_store::GetResult;
use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Number of threads for I/O in the background.
const IO_THREADS: usize = 2;

/// The runtimes of this process and of the processes that it was forked from.
static FIRST: OnceLock<Box<ProcessRuntime>> = OnceLock::new();

/// The runtime of a process.
struct ProcessRuntime {
    process: u32,
    runtime: Runtime,
    /// The runtime that a forked process starts, because it has none of the threads of its parent.
    of_child: OnceLock<Box<ProcessRuntime>>,
}

/// Returns the runtime of this process.
fn runtime() -> &'static Runtime {
    let process = std::process::id();
    let mut place = &FIRST;
    loop {
        let found = place.get_or_init(|| Box::new(ProcessRuntime::start(process)));
        if found.process == process {
            return &found.runtime;
        }
        place = &found.of_child;
    }
}

impl ProcessRuntime {
    fn start(process: u32) -> Self {
        let started = start_runtime(
            "planetree-io",
            IO_THREADS,
            || (),
            |builder| {
                builder.enable_all();
            },
        );
        // The program reports this panic as a limit of the system.
        let runtime = started.expect("spawning the I/O threads");
        ProcessRuntime { process, runtime, of_child: OnceLock::new() }
    }
}

/// Default of [`set_deadline`].
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

static DEADLINE_MILLISECONDS: AtomicU64 = AtomicU64::new(DEFAULT_DEADLINE.as_millis() as u64);

/// Sets the maximum time of a request to an object store or web server, with all its retries. It applies to this
/// process, from the next request on.
pub fn set_deadline(deadline: Duration) {
    let milliseconds = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    DEADLINE_MILLISECONDS.store(milliseconds, Ordering::Relaxed);
}

/// Returns the maximum time of a request with all its retries.
pub(super) fn deadline() -> Duration {
    Duration::from_millis(DEADLINE_MILLISECONDS.load(Ordering::Relaxed))
}

/// Blocks until a future completes, even if the user interrupts the command. It is meant for work that must not be
/// interrupted, such as cleaning up.
pub fn wait<F: Future>(future: F) -> F::Output {
    runtime().block_on(future)
}

/// Blocks until a future completes or the user interrupts the command.
pub fn wait_or_interrupt<F: Future>(future: F) -> Result<F::Output> {
    runtime().block_on(async {
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
    runtime().spawn(future)
}

/// Maximum number of tries of a request.
const TRIES: u32 = 8;

/// Retries a request after a network failure, such as a broken connection or a truncated body, until the deadline. The
/// `object_store` crate retries requests that the server refused, but not requests that the server may already have
/// processed. Repeating such requests is safe here, because all requests of planetree are idempotent. Responses such as
/// "not found" are not retried, and neither are failures that a retry cannot mend.
pub(crate) async fn retry<T, F, R>(mut request: R) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
    R: FnMut() -> F,
{
    until_deadline(retried(|_| request())).await.unwrap_or_else(Err)
}

/// Retries a download like [`retry`]. The deadline is for the answer to begin and for tries after failures. The contents
/// may take longer, because the client ends connections that have become too slow.
pub(crate) async fn retry_download<T, G, F, R>(
    mut request: impl FnMut() -> G,
    receive: R,
) -> object_store::Result<T>
where
    G: Future<Output = object_store::Result<GetResult>>,
    F: Future<Output = object_store::Result<T>>,
    R: Fn(GetResult) -> F,
{
    let end = Instant::now() + deadline();
    retried(|tried| {
        let answer = until_deadline(request());
        let receive = &receive;
        async move {
            if tried > 1 && Instant::now() > end {
                return Err(deadline_error());
            }
            receive(answer.await.unwrap_or_else(Err)?).await
        }
    })
    .await
}

/// Sends a request until it succeeds, or fails for good. The number of the try is passed to `request`, from 1 on.
async fn retried<T, F>(mut request: impl FnMut(u32) -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let mut tried = 0;
    loop {
        tried += 1;
        match request(tried).await {
            Err(error @ object_store::Error::Generic { .. }) if tried < TRIES && !is_final(&error) => {
                tokio::time::sleep(Duration::from_millis(25 << tried)).await;
            }
            outcome => return outcome,
        }
    }
}

/// Waits for a future until the deadline.
pub(super) async fn until_deadline<F: Future>(future: F) -> object_store::Result<F::Output> {
    tokio::time::timeout(deadline(), future).await.map_err(|_| deadline_error())
}

fn deadline_error() -> object_store::Error {
    object_store::Error::Generic { store: "deadline", source: deadline_passed(deadline()).into() }
}

/// Returns the message of a request that was given up at the deadline.
pub(super) fn deadline_passed(deadline: Duration) -> String {
    format!("{DEADLINE_PASSED} within {} s", deadline.as_secs_f64())
}

/// Part of the message of a request that was given up at the deadline.
pub(super) const DEADLINE_PASSED: &str = "no answer from the server";

/// Returns whether a retry cannot mend a failure.
#[cfg(feature = "cloud")]
fn is_final(error: &object_store::Error) -> bool {
    super::refusal::refusal_in(&error.to_string()).is_some()
}

/// Returns whether a retry cannot mend a failure.
#[cfg(not(feature = "cloud"))]
fn is_final(_: &object_store::Error) -> bool {
    false
}

async fn interrupted() {
    while !interrupt::requested() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
