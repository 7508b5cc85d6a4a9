//! Runs async I/O from synchronous code. The rest of this crate calls [`wait`] or [`wait_or_interrupt`]. Tasks that
//! are started in the background run on two I/O threads, not on the compute threads.

use super::interrupt;
use crate::error::{Error, Result};
use crate::threads::start_runtime;
use object_store::GetResult;
use std::future::Future;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
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
    let last: Arc<AtomicU16> = Arc::default();
    retried(|tried| {
        let answer = within(deadline(), &last, request());
        let (receive, last) = (&receive, &last);
        async move {
            if tried > 1 && Instant::now() > end {
                return Err(deadline_error(deadline(), last));
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
    within(deadline(), &Arc::default(), future).await
}

tokio::task_local! {
    /// The status of the last answer to the requests of this task if the server was overloaded or failed, otherwise 0.
    static LAST_FAILURE: Arc<AtomicU16>;
}

/// Waits for a future at most as long as `limit`. Keeps the status of the last failure of the server in `last`.
async fn within<F: Future>(
    limit: Duration,
    last: &Arc<AtomicU16>,
    future: F,
) -> object_store::Result<F::Output> {
    let requests = LAST_FAILURE.scope(Arc::clone(last), future);
    tokio::time::timeout(limit, requests).await.map_err(|_| deadline_error(limit, last))
}

/// Notes the status of an answer. The status of a failure is named if the request is given up at the deadline.
#[cfg(any(feature = "cloud", test))]
pub(super) fn note_status(status: u16) {
    // The `object_store` crate repeats requests after these statuses.
    let failure = if status >= 500 || matches!(status, 408 | 429) { status } else { 0 };
    // This fails only for requests without a deadline of their own.
    let _ = LAST_FAILURE.try_with(|last| last.store(failure, Ordering::Relaxed));
}

fn deadline_error(limit: Duration, last: &AtomicU16) -> object_store::Error {
    let text = match last.load(Ordering::Relaxed) {
        0 => deadline_passed(limit),
        status => format!("{DEADLINE_FAILURE} {status} until the deadline of {} s", limit.as_secs_f64()),
    };
    object_store::Error::Generic { store: "deadline", source: text.into() }
}

/// Returns the message of a request that was given up at the deadline.
pub(super) fn deadline_passed(deadline: Duration) -> String {
    format!("{DEADLINE_PASSED} within {} s", deadline.as_secs_f64())
}

/// Part of the message of a request that was given up at the deadline.
pub(super) const DEADLINE_PASSED: &str = "no answer from the server";

/// Start of the message of a request that the server answered with a failure until the deadline.
pub(super) const DEADLINE_FAILURE: &str = "the server answered";

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

#[cfg(test)]
mod tests {
    use super::*;

    fn given_up_after(statuses: &'static [u16]) -> String {
        let last = Arc::default();
        let request = async {
            statuses.iter().for_each(|status| note_status(*status));
            std::future::pending::<()>().await;
        };
        wait(within(Duration::from_millis(20), &last, request)).unwrap_err().to_string()
    }

    #[test]
    fn the_last_failure_of_the_server_is_named_at_the_deadline() {
        let cases: [(&[u16], &str); 4] = [
            (&[], "no answer from the server within 0.02 s"),
            (&[503], "the server answered 503 until the deadline of 0.02 s"),
            (&[500, 429], "the server answered 429 until the deadline of 0.02 s"),
            (&[503, 200], "no answer from the server within 0.02 s"),
        ];
        for (statuses, expected) in cases {
            let text = given_up_after(statuses);
            assert!(text.contains(expected), "{text}");
        }
    }
}
