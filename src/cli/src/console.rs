//! Lets another program run commands in its own process: it receives what a command would print.

use std::cell::RefCell;
use std::sync::Arc;

/// Receives the output of a command that runs inside another program.
pub trait Console: Send + Sync {
    /// A result, which the program would print on standard output.
    fn result(&self, text: &str);
    /// A note or a warning, which the program would print on standard error.
    fn message(&self, text: &str);
    /// A step of a training begins.
    fn phase(&self, name: &str);
    /// A round of a training is complete. `values` are the metrics after it.
    fn round(&self, round: u32, rounds: u32, values: &str);
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Console>>> = const { RefCell::new(None) };
}

/// Returns the console of the command that this thread runs; `None` in the program itself.
pub(crate) fn current() -> Option<Arc<dyn Console>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work` with a console on this thread.
pub(crate) fn with<T>(console: Arc<dyn Console>, work: impl FnOnce() -> T) -> T {
    /// Restores the previous console, even after a panic.
    struct Restore(Option<Arc<dyn Console>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(Some(console)));
    work()
}
