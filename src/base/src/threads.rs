//! Threads whose panics become errors of the command, without Rust's text for them.

use crate::error::{Error, Result};
use crate::panics;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Stack of a thread that does nothing, in bytes.
const SMALL_STACK: usize = 64 << 10;
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

/// Fails if the system does not let this process start `count` more threads. A runtime of tokio that can start only
/// some of its threads would wait for them forever.
pub fn require_threads(count: usize) -> Result<()> {
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
    if all { Ok(()) } else { Err(panics::too_many_threads()) }
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
        for _ in 0..200 {
            let entry = std::thread::spawn(kernel_entry).join().unwrap();
            let Some(entry) = entry else { return }; // not Linux
            wait_until_gone(&entry);
            assert!(!entry.exists());
        }
    }
}
