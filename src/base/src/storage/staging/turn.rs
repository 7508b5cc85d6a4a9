//! Manages the *turn*: the right of one run at a time to publish files below a prefix of an object store and to clean
//! up there. To take the turn, a run creates an object on condition that none exists, and then rewrites the object
//! every few seconds. If the object stops changing, the run that created it is dead. Another run may then overwrite
//! the object, on condition that the object is still unchanged.
//!
//! A store without conditional requests (`AWS_CONDITIONAL_PUT=disabled`) has no turns. There, the last writer wins,
//! and nothing is cleaned up.

use crate::error::{Error, Result};
use crate::storage::border::{retry, wait};
use crate::storage::interrupt;
use crate::storage::location::Location;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval after which the object is rewritten.
const BEAT: Duration = Duration::from_secs(5);
/// Time without a change of the object after which the run that holds the turn is presumed dead.
const DEAD: Duration = Duration::from_secs(20);

/// The right to publish below a prefix. Dropping this value gives up the right.
pub(super) struct Turn {
    store: Arc<dyn ObjectStore>,
    path: Path,
    run_id: String,
    beats: u64,
    state: State,
}

enum State {
    Held {
        version: UpdateVersion,
        since: Instant,
    },
    Lost,
    /// The store does not support conditional requests, so there is no turn to hold.
    Unguarded,
}

impl Turn {
    /// Waits for the turn. Fails if the wait is longer than `patience`. If `patience` is `None`, waits until the turn
    /// is free or the user interrupts. `shown` is the location for messages.
    pub(super) fn take(
        store: &Arc<dyn ObjectStore>,
        path: Path,
        run_id: &str,
        shown: &Location,
        patience: Option<Duration>,
    ) -> Result<Self> {
        let mut turn =
            Turn { store: store.clone(), path, run_id: run_id.to_owned(), beats: 0, state: State::Lost };
        let begun = Instant::now();
        let mut seen: Option<(Bytes, Instant)> = None;
        let mut pause = Duration::from_millis(10);
        let failed = |error: object_store::Error| shown.store_error("write", &error);
        while !turn.put(PutMode::Create).map_err(failed)? {
            match turn.read().map_err(failed)? {
                None => continue, // another run has just given up the turn
                // This run created the object, but the response to the request was lost.
                Some((there, version)) if there == turn.text() => {
                    turn.state = State::Held { version, since: Instant::now() };
                    break;
                }
                Some((there, version)) => match &seen {
                    Some((before, since)) if *before == there && since.elapsed() > DEAD => {
                        if turn.put(PutMode::Update(version)).map_err(failed)? {
                            break;
                        }
                    }
                    Some((before, _)) if *before == there => {}
                    _ => seen = Some((there, Instant::now())),
                },
            }
            match patience {
                None => interrupt::check()?,
                Some(patience) if begun.elapsed() > patience => {
                    return Err(Error::place(
                        shown,
                        "another run is writing to this location",
                        "run the command again when that run has ended",
                    ));
                }
                Some(_) => {}
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(200));
        }
        Ok(turn)
    }

    /// Rewrites the object if necessary, and returns whether this run still holds the turn.
    pub(super) fn hold(&mut self) -> bool {
        if let State::Held { version, since } = &self.state
            && since.elapsed() > BEAT
        {
            let version = version.clone();
            self.beats += 1;
            if !matches!(self.put(PutMode::Update(version)), Ok(true)) {
                self.state = match self.read() {
                    // The object was rewritten, but the response was lost.
                    Ok(Some((there, version))) if there == self.text() => {
                        State::Held { version, since: Instant::now() }
                    }
                    _ => State::Lost,
                };
            }
        }
        matches!(self.state, State::Held { .. })
    }

    fn text(&self) -> Bytes {
        Bytes::from(format!("{} {}\n", self.run_id, self.beats))
    }

    /// Writes the object on the condition given by `mode`. Returns false if the condition is not met.
    fn put(&mut self, mode: PutMode) -> object_store::Result<bool> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let payload = PutPayload::from(self.text());
        match wait(retry(|| self.store.put_opts(&self.path, payload.clone(), options.clone()))) {
            Ok(put) => {
                self.state = State::Held { version: put.into(), since: Instant::now() };
                Ok(true)
            }
            Err(object_store::Error::NotImplemented { .. }) => {
                self.state = State::Unguarded;
                Ok(true)
            }
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn read(&self) -> object_store::Result<Option<(Bytes, UpdateVersion)>> {
        read_version(&self.store, &self.path)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Errors are ignored, because other runs treat an object that no longer changes as that of a dead run.
        if matches!(self.state, State::Held { .. })
            && matches!(self.read(), Ok(Some((there, _))) if there == self.text())
        {
            let _ = wait(retry(|| self.store.delete(&self.path)));
        }
    }
}

/// Reads the content and the version of an object. Returns `None` if it does not exist.
pub(super) fn read_version(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
) -> object_store::Result<Option<(Bytes, UpdateVersion)>> {
    let got = wait(retry(|| async {
        let got = store.get(path).await?;
        let version = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
        Ok((got.bytes().await?, version))
    }));
    match got {
        Ok(got) => Ok(Some(got)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn one_run_has_the_turn_and_gives_it_back() {
        let memory = Arc::new(InMemory::new());
        let store: Arc<dyn ObjectStore> = memory.clone();
        let shown = Location::in_memory(&memory, "out");
        let take = |run: &str, patience| Turn::take(&store, Path::from("out/turn"), run, &shown, patience);
        let mut first = take("one", None).unwrap();
        assert!(first.hold());
        let problem = take("two", Some(Duration::from_millis(50))).err().unwrap().to_string();
        assert!(problem.contains("another run is writing to this location"), "{problem}");
        let second = std::thread::scope(|scope| {
            let second = scope.spawn(|| take("two", None).unwrap());
            std::thread::sleep(Duration::from_millis(50));
            drop(first);
            second.join().unwrap()
        });
        drop(second);
        assert!(read_version(&store, &Path::from("out/turn")).unwrap().is_none());
    }

    #[test]
    fn a_turn_that_was_taken_over_is_lost_and_not_given_back() {
        let memory = Arc::new(InMemory::new());
        let store: Arc<dyn ObjectStore> = memory.clone();
        let shown = Location::in_memory(&memory, "out");
        let path = Path::from("out/turn");
        let mut turn = Turn::take(&store, path.clone(), "one", &shown, None).unwrap();
        wait(store.put(&path, PutPayload::from("two 0\n"))).unwrap();
        if let State::Held { since, .. } = &mut turn.state {
            *since -= BEAT * 2;
        }
        assert!(!turn.hold());
        drop(turn);
        assert_eq!(&read_version(&store, &path).unwrap().unwrap().0[..], b"two 0\n");
    }
}
