//! Keeps threads awake between the short steps of a round. A thread without work goes to sleep at once, and waking it takes as
//! long as a level of a small dataset does; so threads look for work a little longer before they sleep.

use rayon::Yield;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread looks for work when there is none.
const PATIENCE: Duration = Duration::from_millis(1);

/// How long it goes on in all: something that waited when it began to look goes on only when it ends.
const LONGEST: Duration = Duration::from_millis(20);

/// Trainings of this process: threads that several share have enough to do, and must not wait for one of them.
static TRAININGS: AtomicUsize = AtomicUsize::new(0);

/// The threads of a training, awake until it is dropped.
pub struct Awake {
    shared: Arc<Shared>,
}

struct Shared {
    ended: AtomicBool,
    /// Of each thread, whether it looks for work.
    looks: Vec<AtomicBool>,
}

impl Awake {
    /// Of the threads around; none is awake yet.
    pub fn new() -> Self {
        TRAININGS.fetch_add(1, Ordering::Relaxed);
        let looks = (0..rayon::current_num_threads()).map(|_| AtomicBool::new(false)).collect();
        Awake { shared: Arc::new(Shared { ended: AtomicBool::new(false), looks }) }
    }

    /// Wakes all threads but the one that asks.
    pub fn wake(&self) {
        let Some(asks) = rayon::current_thread_index() else { return };
        let sleeps = |(thread, looks): (usize, &AtomicBool)| thread != asks && !looks.load(Ordering::Relaxed);
        if is_shared() || !self.shared.looks.iter().enumerate().any(sleeps) {
            return;
        }
        let shared = self.shared.clone();
        rayon::spawn_broadcast(move |thread| {
            let looks = &shared.looks[thread.index()];
            if thread.index() != asks && !looks.swap(true, Ordering::Relaxed) {
                shared.look_for_work();
                looks.store(false, Ordering::Relaxed);
            }
        });
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        TRAININGS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_shared() -> bool {
    TRAININGS.load(Ordering::Relaxed) > 1
}

impl Shared {
    /// Does what there is to do, until there has been nothing for a while.
    fn look_for_work(&self) {
        let begun = Instant::now();
        let mut last_work = begun;
        while !self.ended.load(Ordering::Relaxed) && !is_shared() && begun.elapsed() < LONGEST {
            match rayon::yield_now() {
                Some(Yield::Executed) => last_work = Instant::now(),
                _ if last_work.elapsed() > PATIENCE => break,
                _ => std::thread::yield_now(), // somebody else may need the processor
            }
        }
    }
}
