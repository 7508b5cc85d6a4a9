//! Keeps idle threads spinning between the short steps of a round. Rayon puts an idle thread to sleep immediately, and
//! waking it up takes as long as processing one tree level of a small dataset.

use rayon::Yield;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread spins without finding work before it sleeps.
const PATIENCE: Duration = Duration::from_millis(1);

/// Maximum time that a thread spins. It is limited because a job that was suspended below the spin loop on the thread's
/// stack resumes only when the loop ends.
const LONGEST: Duration = Duration::from_millis(20);

/// Number of training runs in this process. If several runs share the threads, no thread may spin, because it would
/// take time from the other runs.
static TRAININGS: AtomicUsize = AtomicUsize::new(0);

/// Lets the idle threads of a training run spin until the guard is dropped.
pub(super) struct SpinGuard {
    shared: Arc<Shared>,
}

struct Shared {
    ended: AtomicBool,
    /// Whether each thread is spinning.
    spins: Vec<AtomicBool>,
}

impl SpinGuard {
    /// Creates a guard for the threads of the current pool. No thread is spinning yet.
    pub(super) fn new() -> Self {
        TRAININGS.fetch_add(1, Ordering::Relaxed);
        let spins = (0..rayon::current_num_threads()).map(|_| AtomicBool::new(false)).collect();
        SpinGuard { shared: Arc::new(Shared { ended: AtomicBool::new(false), spins }) }
    }

    /// Makes all sleeping threads except the caller spin.
    pub(super) fn wake(&self) {
        let Some(caller) = rayon::current_thread_index() else { return };
        let sleeps =
            |(thread, spins): (usize, &AtomicBool)| thread != caller && !spins.load(Ordering::Relaxed);
        if is_shared() || !self.shared.spins.iter().enumerate().any(sleeps) {
            return;
        }
        let shared = self.shared.clone();
        rayon::spawn_broadcast(move |thread| {
            let spins = &shared.spins[thread.index()];
            if thread.index() != caller && !spins.swap(true, Ordering::Relaxed) {
                shared.spin();
                spins.store(false, Ordering::Relaxed);
            }
        });
    }
}

impl Drop for SpinGuard {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        TRAININGS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_shared() -> bool {
    TRAININGS.load(Ordering::Relaxed) > 1
}

impl Shared {
    /// Executes pending jobs until no job has been found for a while.
    fn spin(&self) {
        let begun = Instant::now();
        let mut last_work = begun;
        while !self.ended.load(Ordering::Relaxed) && !is_shared() && begun.elapsed() < LONGEST {
            match rayon::yield_now() {
                Some(Yield::Executed) => last_work = Instant::now(),
                _ if last_work.elapsed() > PATIENCE => break,
                _ => std::thread::yield_now(), // another process may need the core
            }
        }
    }
}
