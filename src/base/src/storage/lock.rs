//! Locks a directory or object-store prefix exclusively for one run, which is one execution of planetree. The lock is
//! released when it is dropped or when the process that holds it dies.
//!
//! On a local file system, two hidden files are locked. The lock on the first file ends with the process. The lock on
//! the second file is inherited by child processes, so that after a run was killed, the next run waits until all
//! child processes of the killed run have ended.
//!
//! Object stores have no locks. Instead, a run creates a lease object on condition that none exists, and rewrites it
//! every few seconds. If a lease object stops changing, the run that created it is dead.

use super::border::{retry, wait};
use super::location::{Location, Remote};
use super::{digest_of, interrupt};
use crate::error::{Error, Result};
use crate::threads::start_joinable;
use object_store::{ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Name of the lease object.
const LEASE: &str = "run.lock";
/// Interval between renewals of the lease.
const BEAT: Duration = Duration::from_secs(5);
/// Time without renewal after which the holder is presumed dead.
const DEAD: Duration = Duration::from_secs(20);

/// An exclusive lock on a location.
pub struct PlaceLock {
    _files: FileLocks,
    lease: Option<Lease>,
}

impl PlaceLock {
    /// Acquires the lock. Fails if another run holds the lock. Calls `waiting` with a message for the user if this
    /// function has to wait, either for child processes of a killed run or to find out whether another run is still
    /// alive.
    pub fn take(place: &Location, waiting: &mut dyn FnMut(&str)) -> Result<Self> {
        interrupt::be_orderly();
        match place {
            Location::Local(path) => {
                std::fs::create_dir_all(path).map_err(|error| Error::io(place, "create", error))?;
                Ok(PlaceLock { _files: FileLocks::take(path, "", place, waiting)?, lease: None })
            }
            Location::Remote(remote) => {
                let directory = std::env::temp_dir().join("planetree-locks");
                let failed = |error: std::io::Error| Error::io(directory.display(), "create", error);
                std::fs::create_dir_all(&directory).map_err(failed)?;
                let name = digest_of(place.to_string().as_bytes()).to_string();
                let files = FileLocks::take(&directory, &name, place, waiting)?;
                let lease = Lease::take(place, remote, &files.id, waiting)?;
                Ok(PlaceLock { _files: files, lease: Some(lease) })
            }
        }
    }

    /// Fails if another run has taken over the lock, which can happen if this run could not renew its lease in time.
    pub fn check(&self) -> Result<()> {
        match &self.lease {
            Some(lease) if lease.lost.load(Ordering::Relaxed) => Err(taken(&lease.place)),
            _ => Ok(()),
        }
    }
}

fn taken(place: &Location) -> Error {
    Error::place(
        place,
        "run directory is in use by another run",
        "wait for it to end, or choose another --output",
    )
}

/// The two locked files, which are unlocked when they are closed.
struct FileLocks {
    /// Identifies the lock files of this machine. All runs that lock the same files read the same id.
    id: String,
    _holder: File,
    _processes: File,
}

impl FileLocks {
    fn take(directory: &Path, name: &str, shown: &Location, waiting: &mut dyn FnMut(&str)) -> Result<Self> {
        let open = |suffix: &str| -> Result<(PathBuf, File)> {
            let path = directory.join(format!("{name}.{suffix}"));
            let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            options.map(|file| (path, file)).map_err(|error| Error::io(shown, "lock", error))
        };
        let (path, mut holder) = open("run-lock")?;
        match holder.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(taken(shown)),
            // Some network file systems do not support locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let (_, processes) = open("steps-lock")?;
        let mut told = false;
        while matches!(processes.try_lock(), Err(TryLockError::WouldBlock)) {
            if !std::mem::replace(&mut told, true) {
                waiting("waiting for a step of an earlier run to end");
            }
            interrupt::check()?;
            std::thread::sleep(Duration::from_millis(50));
        }
        // Without the close-on-exec flag, child processes inherit the lock.
        let _ = rustix::io::fcntl_setfd(&processes, rustix::io::FdFlags::empty());
        let failed = |error: std::io::Error| Error::io(path.display(), "write", error);
        let mut id = String::new();
        holder.read_to_string(&mut id).map_err(failed)?;
        if id.is_empty() {
            id = super::staging::run_id();
            holder.write_all(id.as_bytes()).map_err(failed)?;
        }
        Ok(FileLocks { id, _holder: holder, _processes: processes })
    }
}

/// A lease that this run holds and that a background thread renews.
struct Lease {
    place: Location,
    lost: Arc<AtomicBool>,
    stop: Option<Sender<()>>,
    beats: Option<JoinHandle<()>>,
}

/// State of the thread that renews the lease.
struct Beating {
    object: Location,
    remote: Remote,
    /// Text that identifies this run. Its first word identifies the machine, so that the next run on the same machine
    /// need not wait until the lease of a dead run expires.
    owner: String,
}

impl Lease {
    fn take(place: &Location, remote: &Remote, machine: &str, waiting: &mut dyn FnMut(&str)) -> Result<Self> {
        let object = place.join(LEASE);
        let Location::Remote(at) = &object else { return Err(taken(place)) };
        if remote.uploads.is_none() {
            return Err(Error::place(
                place,
                "http(s) URLs can be read but not written",
                "write to a local path or to s3://, gs:// or az://",
            ));
        }
        let beating = Arc::new(Beating {
            object: object.clone(),
            remote: at.clone(),
            owner: format!("{machine} {}", super::staging::run_id()),
        });
        let mut seen: Option<(Vec<u8>, Instant)> = None;
        loop {
            interrupt::check()?;
            if beating.put(0, PutMode::Create)? {
                break;
            }
            let Some(there) = object.read_all()? else { continue };
            let (first, since) = seen.get_or_insert_with(|| (there.to_vec(), Instant::now()));
            if *first != there[..] {
                return Err(taken(place)); // the lease changed, so the run that holds it is alive
            }
            // A lease of this machine belongs to a dead run, because this run now holds the machine's lock files.
            if there.starts_with(machine.as_bytes()) || since.elapsed() > DEAD {
                beating.put(0, PutMode::Overwrite)?;
                break;
            }
            if since.elapsed() < BEAT / 10 {
                waiting("found the lock of another run; checking whether that run is still alive");
            }
            std::thread::sleep(BEAT / 10);
        }
        let lost = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = channel();
        let (told, renewed) = (lost.clone(), Arc::clone(&beating));
        let renew = move || {
            let mut beat = 0;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(BEAT) {
                beat += 1;
                // The lease is lost only if another run has overwritten the object, not if the store is unreachable.
                match renewed.object.read_all() {
                    Ok(Some(there)) if !there.starts_with(renewed.owner.as_bytes()) => {
                        told.store(true, Ordering::Relaxed);
                        return;
                    }
                    _ => drop(renewed.put(beat, PutMode::Overwrite)),
                }
            }
            renewed.remove();
        };
        let beats = start_joinable("planetree-lease", renew).inspect_err(|_| beating.remove())?;
        Ok(Lease { place: place.clone(), lost, stop: Some(stop), beats: Some(beats) })
    }
}

impl Beating {
    /// Writes the lease object. Returns false if `mode` requires that no object exists, but another run has created
    /// one.
    fn put(&self, beat: u64, mode: PutMode) -> Result<bool> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let text = format!("{} {beat}\n", self.owner);
        let payload = PutPayload::from(text.clone().into_bytes());
        match wait(retry(|| self.remote.store.put_opts(&self.remote.path, payload.clone(), options.clone())))
        {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                // If the response to an earlier attempt was lost, the existing object is the one that this run wrote.
                Ok(self.object.read_all()?.is_some_and(|there| there[..] == *text.as_bytes()))
            }
            Err(error) => Err(self.object.store_error("write", &error)),
        }
    }

    /// Removes the lease object if it belongs to this run.
    fn remove(&self) {
        let ours = |there: &bytes::Bytes| there.starts_with(self.owner.as_bytes());
        if self.object.read_all().is_ok_and(|there| there.as_ref().is_some_and(ours)) {
            let _ = wait(retry(|| self.remote.store.delete(&self.remote.path)));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(beats) = self.beats.take() {
            let _ = beats.join(); // before it ends, the thread removes the lease object of this run
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    fn take(place: &Location) -> Result<PlaceLock> {
        PlaceLock::take(place, &mut |_| {})
    }

    #[test]
    fn one_holder_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let place = Location::Local(root.path().join("run"));
        let held = take(&place).unwrap();
        let error = take(&place).err().unwrap();
        assert!(error.to_string().contains("in use by another run"), "{error}");
        held.check().unwrap();
        drop(held);
        take(&place).unwrap();
    }

    #[test]
    fn only_the_lease_of_this_run_is_removed() {
        let store = Arc::new(InMemory::new());
        let object = Location::in_memory(&store, &format!("{}/run.lock", super::super::staging::run_id()));
        let Location::Remote(remote) = &object else { panic!("a local place") };
        let beating =
            |owner: &str| Beating { object: object.clone(), remote: remote.clone(), owner: owner.to_owned() };
        assert!(beating("here a").put(0, PutMode::Create).unwrap());
        beating("here b").remove();
        assert!(object.read_all().unwrap().is_some());
        beating("here a").remove();
        assert!(object.read_all().unwrap().is_none());
    }

    #[test]
    fn a_bucket_has_one_holder_too() {
        let store = Arc::new(InMemory::new());
        let place = Location::in_memory(&store, &format!("{}/run", super::super::staging::run_id()));
        let held = take(&place).unwrap();
        assert!(take(&place).is_err());
        drop(held);
        assert!(place.join(LEASE).read_all().unwrap().is_none(), "it is gone with its holder");
        // A lease of a dead run is taken over at once if that run was on this machine, and otherwise only after a
        // wait.
        let put = |text: &str| {
            let mut output = super::super::FileOutput::create(&place.join(LEASE)).unwrap();
            output.write_all(text.as_bytes()).unwrap();
            output.commit().unwrap();
        };
        let held = take(&place).unwrap();
        let ours = place.join(LEASE).read_all().unwrap().unwrap();
        drop(held);
        put(std::str::from_utf8(&ours).unwrap());
        drop(take(&place).unwrap());
        put("elsewhere run 0\n");
        let begun = Instant::now();
        let alive = std::thread::spawn({
            let place = place.clone();
            move || {
                std::thread::sleep(Duration::from_millis(200));
                let mut output = super::super::FileOutput::create(&place.join(LEASE)).unwrap();
                output.write_all(b"elsewhere run 1\n").unwrap();
                output.commit().unwrap();
            }
        });
        let error = take(&place).err().unwrap();
        assert!(error.to_string().contains("in use by another run"), "{error}");
        assert!(begun.elapsed() < DEAD);
        alive.join().unwrap();
    }
}
