//! Threads whose panics become errors of the command, without Rust's text for them.

use crate::error::{Error, Result};
use crate::panics;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::{self, Runtime};

/// Stack of a thread that does nothing, in bytes.
const SMALL_STACK: usize = 64 << 10;
/// Stack of other threads, in bytes. Memory is used only as far as calls reach.
const LARGE_STACK: usize = 8 << 20;
/// The longest that the threads of a runtime may take to start.
const LONGEST_START: Duration = Duration::from_secs(30);
/// The longest that a thread may take from its last instruction until it is no longer counted.
const LONGEST_EXIT: Duration = Duration::from_secs(1);

/// Starts a pool of `threads` threads, or of as many as there are cores if `threads` is 0. The code that waits for a
/// result of the pool reports its panic.
pub fn thread_pool(threads: usize) -> Result<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|number| format!("planetree-{number}"))
        .start_handler(|_| panics::guard_thread())
        .panic_handler(drop)
        .build()
        .map_err(Error::threads)
}

/// Starts a thread that may wait for other threads.
pub fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    start_joinable(name, work).map(drop)
}

/// Starts a thread that will be joined. The code that joins it reports its panic.
pub(crate) fn start_joinable<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let guarded = move || {
        panics::guard_thread();
        work()
    };
    let thread = Builder::new().name(name.to_owned()).stack_size(LARGE_STACK).spawn(guarded);
    thread.map_err(Error::threads)
}

/// Starts a runtime of tokio with `threads` threads. `on_start` runs on each of them.
///
/// A runtime that can start only some of its threads would wait for the others forever. That is why it is built on a
/// thread that can be left behind, and its threads are counted.
pub fn start_runtime(
    name: &'static str,
    threads: usize,
    on_start: fn(),
    configure: impl FnOnce(&mut runtime::Builder) + Send + 'static,
) -> Result<Runtime> {
    require_threads(threads + 1)?;
    let (counted, starts) = channel();
    let (built, runtimes) = channel();
    let build = move || {
        let mut builder = runtime::Builder::new_multi_thread();
        let started = move || {
            on_start();
            let _ = counted.send(()); // fails only for threads that are started later, which are not counted
        };
        builder.worker_threads(threads).thread_name(name).on_thread_start(started);
        configure(&mut builder);
        let runtime = match panics::guarded(|| builder.build()) {
            Ok(runtime) => runtime.map_err(|error| error.to_string()),
            Err(panic) => Err(panic.message()),
        };
        let _ = built.send(runtime); // fails only if the caller no longer waits
    };
    start_thread(name, build)?;
    let end = Instant::now() + LONGEST_START;
    let left = || end.saturating_duration_since(Instant::now());
    let built = runtimes.recv_timeout(left()).unwrap_or_else(|_| Err("no runtime in time".to_owned()));
    let runtime = built
        .map_err(|problem| panics::system_limit_error(&problem).unwrap_or_else(|| Error::threads(problem)))?;
    if (0..threads).any(|_| starts.recv_timeout(left()).is_err()) {
        std::mem::forget(runtime); // dropping it would wait for the threads that cannot start
        return Err(Error::threads("a runtime has too few of them"));
    }
    Ok(runtime)
}

/// Fails if the system does not let this process start `count` more threads.
fn require_threads(count: usize) -> Result<()> {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock(); // so that all threads exist at the same time
    let start = |_| {
        let gate = Arc::clone(&gate);
        let work = move || {
            let entry = kernel_entry();
            drop(gate.lock());
            entry
        };
        Builder::new().stack_size(SMALL_STACK).spawn(work).ok()
    };
    let started: Vec<_> = (0..count).map_while(start).collect();
    drop(closed);
    let all = started.len() == count;
    for thread in started {
        if let Ok(Some(entry)) = thread.join() {
            wait_until_gone(&entry);
        }
    }
    if all { Ok(()) } else { Err(Error::threads(format_args!("{count} are needed"))) }
}

/// Returns where Linux lists the current thread.
fn kernel_entry() -> Option<PathBuf> {
    let entry = std::fs::read_link("/proc/thread-self").ok()?;
    Some(Path::new("/proc").join(entry))
}

/// Waits until Linux no longer counts a thread that has ended, which may be shortly after it was joined. Until then the
/// thread would take the place of one that the caller starts.
fn wait_until_gone(entry: &Path) {
    let start = Instant::now();
    while entry.exists() && start.elapsed() < LONGEST_EXIT {
        std::thread::sleep(Duration::from_micros(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_pool_is_an_error_that_names_its_place_and_is_not_printed() {
        panics::print_only_unguarded();
        let pool = thread_pool(2).unwrap();
        let caught = panics::guarded(|| pool.install(|| -> u8 { panic!("index {} out of range", 7) }));
        let error = caught.unwrap_err().into_error("reading").to_string();
        // The place is known only of panics that are not printed.
        assert!(error.contains("index 7 out of range (") && error.contains(".rs:"), "{error}");
        assert_eq!(pool.install(|| 3), 3, "the pool survives");
    }

    #[test]
    fn threads_can_be_started() {
        assert!(require_threads(0).is_ok() && require_threads(8).is_ok());
    }

    #[test]
    fn a_thread_that_was_waited_for_is_no_longer_counted() {
        let entry = std::thread::spawn(kernel_entry).join().unwrap();
        let Some(entry) = entry else { return }; // not Linux
        wait_until_gone(&entry);
        assert!(!entry.exists(), "{entry:?}");
    }

    #[test]
    fn a_thread_returns_its_result() {
        let name = || std::thread::current().name().map(str::to_owned);
        let thread = start_joinable("planetree-test", name).unwrap();
        assert_eq!(thread.join().unwrap().as_deref(), Some("planetree-test"));
    }

    #[test]
    fn a_runtime_has_all_its_threads() {
        let runtime = start_runtime("planetree-test", 3, panics::guard_thread, |_| ()).unwrap();
        assert_eq!(runtime.metrics().num_workers(), 3);
        assert_eq!(runtime.block_on(async { 7 }), 7);
    }
}
