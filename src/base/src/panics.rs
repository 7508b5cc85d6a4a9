//! Turns panics into errors. Decoders and engines of other libraries panic on some damaged files. Such panics are
//! caught, and the text that Rust prints for them is suppressed, because the caller reports the error.

use crate::error::Error;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// Number of guards around the code that this thread runs.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
    /// Where the last guarded panic of this thread happened.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Where the last guarded panic of any thread happened, which may be caught by the thread that waits for a pool.
static LAST: Mutex<String> = Mutex::new(String::new());

/// A panic that was caught.
#[derive(Debug)]
pub struct CaughtPanic {
    payload: Box<dyn Any + Send>,
    place: String,
}

impl CaughtPanic {
    /// Returns the message of the panic.
    pub fn message(&self) -> String {
        payload_text(&*self.payload)
    }

    /// Converts the panic to an error: a limit of the system if a thread could not be started or a file not opened, or
    /// else a bug.
    pub fn into_error(self, at: &str) -> Error {
        let message = self.message();
        let line = message.lines().next().unwrap_or_default();
        system_limit_error(&message).unwrap_or_else(|| match self.place.is_empty() {
            true => Error::bug(at, line),
            false => Error::bug(at, format_args!("{line} ({})", self.place)),
        })
    }
}

/// Suppresses Rust's text for guarded panics in this process. All other panics are printed as before.
pub fn print_only_unguarded() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if GUARDS.get() == 0 {
            return print(info);
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::debug!("caught a panic at {place}: {}", payload_text(info.payload()));
        LAST.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&place);
        PLACE.set(place);
    }));
}

/// Runs `work` and catches its panic.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    GUARDS.set(GUARDS.get() + 1);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    GUARDS.set(GUARDS.get() - 1);
    outcome.map_err(|payload| {
        let mut place = PLACE.take();
        if place.is_empty() {
            place = take_last_place();
        }
        CaughtPanic { payload, place }
    })
}

fn take_last_place() -> String {
    std::mem::take(&mut *LAST.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns whether the last guarded panic, which another thread reports, happened while a Parquet file was decoded: such a
/// file is damaged. The panic is forgotten.
pub fn was_in_decoder() -> bool {
    is_decoder(&take_last_place())
}

/// Returns whether a place is in a library that decodes Parquet, the schema of Arrow in it, or compressed pages.
fn is_decoder(place: &str) -> bool {
    let libraries = ["/parquet-", "/arrow-ipc-", "/snap-", "/lz4_flex-", "/brotli-", "/zstd-"];
    libraries.iter().any(|library| place.contains(library))
}

/// Declares that all panics of this thread are caught, for example by the runtime of an engine.
pub fn guard_thread() {
    GUARDS.set(GUARDS.get() + 1);
}

/// Returns the message of a panic.
pub fn payload_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("panic without a message").to_owned()
}

/// Returns the error for a panic because the system refused to start a thread or to open a file; `None` for any other
/// panic.
pub fn system_limit_error(message: &str) -> Option<Error> {
    let text = message.to_ascii_lowercase();
    if text.contains("too many open files") {
        return Some(Error::usage(
            "too many open files: the limit of this process is reached",
            "raise the limit, for example with: ulimit -n 1024",
        ));
    }
    let is_limit = text.contains("thread") && (text.contains("spawn") || text.contains("wouldblock"));
    is_limit.then(|| Error::threads(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_is_not_printed_twice() {
        print_only_unguarded();
        let caught = guarded(|| -> u8 { panic!("index {} out of range", 7) }).unwrap_err();
        assert_eq!(caught.message(), "index 7 out of range");
        let error = caught.into_error("reading");
        assert!(error.to_string().contains("panics.rs"), "{error}");
        assert_eq!(GUARDS.get(), 0);
        assert_eq!(guarded(|| 3).unwrap(), 3);
    }

    #[test]
    fn panics_in_decoders_are_told_from_others() {
        assert!(is_decoder("/registry/src/index.crates.io-1/parquet-59.3.2/src/file/metadata.rs:7:3"));
        assert!(!is_decoder("src/sql/src/engine.rs:7:3") && !is_decoder(""));
    }

    #[test]
    fn a_refused_thread_or_file_is_a_limit_of_the_system() {
        for message in [
            "OS can't spawn worker thread: Resource temporarily unavailable (os error 11)",
            "failed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }",
            "failed to create UnixStream: Os { code: 24, kind: Uncategorized, message: \"Too many open files\" }",
            "The global thread pool has not been initialized.: ThreadPoolBuildError { kind: IOError(Os { code: 11, kind: WouldBlock, message: \"\" }) }",
        ] {
            assert_eq!(system_limit_error(message).unwrap().exit_code(), 2, "{message}");
        }
        assert!(system_limit_error("index out of bounds").is_none());
    }
}
