//! Writes a local output directory atomically. All files are first written to a staging directory next to the target,
//! so that one rename publishes them. The staging directory is locked while in use, so that later runs can
//! distinguish it from the leftovers of a killed run.

use super::{StagedFile, refuse_existing, refuse_foreign, run_id};
use crate::error::{Error, Result};
use crate::storage::held::HeldDirectory;
use crate::storage::location::Location;
use crate::threads::start_joinable;
use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// A local output directory that is not visible yet; see [`super::Staging`].
pub struct LocalStaging {
    target: PathBuf,
    shown: Location,
    marker: &'static str,
    overwrite: bool,
    directory: PathBuf,
    /// The open staging directory, which is locked until it is published.
    lock: File,
    created: usize,
    /// Parent directories that were created for the target, innermost first. They are removed again if the run fails.
    made: Vec<PathBuf>,
    /// Threads that are syncing finished files to disk.
    syncing: VecDeque<JoinHandle<io::Result<()>>>,
    done: bool,
}

impl LocalStaging {
    pub(super) fn begin(
        target: &Path,
        shown: &Location,
        marker: &'static str,
        overwrite: bool,
    ) -> Result<Self> {
        let name = match target.file_name() {
            Some(name) => name.to_string_lossy().into_owned(),
            None => {
                return Err(Error::usage(
                    format_args!("{shown}: the output path does not end in a name"),
                    "give the path of a directory to create, for example out/data",
                ));
            }
        };
        refuse_target(target, shown, marker, overwrite)?;
        let parent = parent_of(target);
        let made = make_directories(&parent).map_err(|error| Error::io(shown, "create the output", error))?;
        let prefix = format!(".{name}.planetree-");
        remove_leftovers(&parent, &prefix);
        let (directory, lock) = new_locked_directory(&parent, &prefix)
            .map_err(|error| Error::io(shown, "create the output", error))?;
        Ok(LocalStaging {
            target: target.to_owned(),
            shown: shown.clone(),
            marker,
            overwrite,
            directory,
            lock,
            created: 0,
            made,
            syncing: VecDeque::new(),
            done: false,
        })
    }

    pub(super) fn create(&mut self) -> Result<StagedFile> {
        self.created += 1;
        let path = self.directory.join(format!("open-{}", self.created));
        let file = File::create(&path).map_err(|error| self.io_error(error))?;
        Ok(StagedFile::Local { file, path })
    }

    pub(super) fn keep(&mut self, file: File, path: &Path, name: &str) -> Result<()> {
        fs::rename(path, self.directory.join(name)).map_err(|error| self.io_error(error))?;
        /// Maximum number of files that are synced concurrently.
        const AT_A_TIME: usize = 4;
        while self.syncing.len() >= AT_A_TIME {
            self.sync_one().map_err(|error| self.io_error(error))?;
        }
        self.syncing.push_back(start_joinable("planetree-sync", move || file.sync_all())?);
        Ok(())
    }

    pub(super) fn reopen(&self, name: &str) -> Result<File> {
        File::open(self.directory.join(name)).map_err(|error| self.io_error(error))
    }

    pub(super) fn discard(&self, name: &str) -> Result<()> {
        fs::remove_file(self.directory.join(name)).map_err(|error| self.io_error(error))
    }

    pub(super) fn commit(mut self, marker: &[u8]) -> Result<()> {
        self.write_marker(marker).map_err(|error| self.io_error(error))?;
        // The rename fails atomically if the target has appeared since the start of the run.
        loop {
            match fs::rename(&self.directory, &self.target) {
                Ok(()) => break,
                Err(error) if is_occupied(&error) => {
                    refuse_target(&self.target, &self.shown, self.marker, self.overwrite)?;
                    match self.exchange() {
                        Ok(()) => break,
                        // The target has disappeared in the meantime, so try the rename again.
                        Err(error) if error.kind() == io::ErrorKind::NotFound && self.directory.exists() => {}
                        Err(error) => return Err(self.io_error(error)),
                    }
                }
                Err(error) => return Err(self.io_error(error)),
            }
        }
        self.done = true;
        if let Some(parent) = self.directory.parent() {
            // Readers see the output after the rename even if syncing the parent directory fails.
            let _ = File::open(parent).and_then(|parent| parent.sync_all());
        }
        Ok(())
    }

    fn write_marker(&mut self, marker: &[u8]) -> io::Result<()> {
        let mut file = File::create(self.directory.join(self.marker))?;
        file.write_all(marker)?;
        file.sync_all()?;
        while !self.syncing.is_empty() {
            self.sync_one()?;
        }
        File::open(&self.directory)?.sync_all()
    }

    fn sync_one(&mut self) -> io::Result<()> {
        match self.syncing.pop_front() {
            Some(syncing) => syncing.join().map_err(|_| io::Error::other("a syncing thread panicked"))?,
            None => Ok(()),
        }
    }

    /// Replaces the old output with the new one in one step. Then removes the old output, unless a reader has locked
    /// it.
    fn exchange(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            match renameat_with(CWD, &self.directory, CWD, &self.target, RenameFlags::EXCHANGE) {
                Ok(()) => {
                    let _ = self.lock.unlock(); // readers wait until the directory is unlocked
                    remove_unless_held(&self.directory);
                    return Ok(());
                }
                Err(rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL | rustix::io::Errno::NOTSUP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // The file system cannot exchange two directories, so the target is missing between the two renames.
        let aside = PathBuf::from(format!("{}-old", self.directory.display()));
        fs::rename(&self.target, &aside)?;
        if let Err(error) = fs::rename(&self.directory, &self.target) {
            fs::rename(&aside, &self.target)?;
            return Err(error);
        }
        let _ = self.lock.unlock();
        remove_unless_held(&aside);
        Ok(())
    }

    fn io_error(&self, error: io::Error) -> Error {
        Error::io(&self.shown, "write", error)
    }
}

impl Drop for LocalStaging {
    fn drop(&mut self) {
        if !self.done {
            for syncing in self.syncing.drain(..) {
                let _ = syncing.join();
            }
            // Errors are ignored, because the next run removes leftovers.
            let _ = fs::remove_dir_all(&self.directory);
            for made in &self.made {
                let _ = fs::remove_dir(made); // fails if the directory is not empty
            }
        }
    }
}

/// Fails if the target must not be written. An existing directory may be replaced only if it contains nothing but its
/// marker file and the files that the marker lists.
fn refuse_target(target: &Path, shown: &Location, marker: &str, overwrite: bool) -> Result<()> {
    match fs::symlink_metadata(target) {
        Err(_) => return Ok(()),
        Ok(metadata) if metadata.is_symlink() => {
            return Err(Error::place(
                shown,
                "the output is a symbolic link",
                "give the path that the link points to",
            ));
        }
        Ok(_) => {}
    }
    // The names and the marker must come from the same directory, because another run may be replacing it.
    let held = HeldDirectory::open(shown, marker)?;
    let listed = held.as_ref().map(|(_, listed)| String::from_utf8_lossy(listed));
    let names: Option<Vec<String>> = match &held {
        Some((held, _)) => held.names().ok(),
        None => fs::read_dir(target).ok().map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        }),
    };
    let is_empty = names.as_ref().is_some_and(Vec::is_empty);
    let stranger = match (&names, &listed) {
        (Some(names), Some(listed)) => {
            names.iter().find(|name| *name != marker && !listed.contains(name.as_str()))
        }
        _ => None,
    };
    match (is_empty, listed.is_some(), overwrite) {
        (true, _, _) => Ok(()),
        (_, false, _) => Err(refuse_foreign(shown, marker)),
        (_, true, false) => Err(refuse_existing(shown)),
        (_, true, true) => match stranger {
            None => Ok(()),
            Some(name) => Err(Error::place(
                target.join(name).display(),
                "refusing to overwrite: not created by planetree",
                "move it elsewhere, or choose another --output",
            )),
        },
    }
}

fn is_occupied(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory
    )
}

/// Returns the parent directory of a path, or `.` if the path has only one component.
pub(super) fn parent_of(target: &Path) -> PathBuf {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Creates a directory and its missing parents. Returns the created directories, innermost first.
pub(super) fn make_directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let made = path
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .map(Path::to_owned)
        .collect();
    fs::create_dir_all(path)?;
    Ok(made)
}

/// Creates a directory and locks it, so that other runs do not mistake it for a leftover.
fn new_locked_directory(parent: &Path, prefix: &str) -> io::Result<(PathBuf, File)> {
    loop {
        let directory = parent.join(format!("{prefix}{}", run_id()));
        fs::create_dir(&directory)?;
        // Another run may remove the directory before it is locked. In that case, create another one.
        match File::open(&directory) {
            Ok(lock) => {
                // Some network file systems cannot lock directories. On those, leftovers are not removed either.
                let _ = lock.lock();
                if directory.exists() {
                    return Ok((directory, lock));
                }
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
    }
}

/// Removes hidden files and directories next to the target that killed runs left behind, or that were replaced while
/// they were being read. Those that are still locked are kept.
pub(super) fn remove_leftovers(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            remove_unless_held(&entry.path());
        }
    }
}

/// Removes a directory or file unless it is locked. Errors are ignored, because the next run tries again.
fn remove_unless_held(path: &Path) {
    let Ok(leftover) = File::open(path) else { return };
    if matches!(leftover.try_lock(), Err(TryLockError::WouldBlock)) {
        return; // another process is writing or reading the file or directory
    }
    // `leftover` stays locked until the removal is complete, so that no reader opens it.
    tracing::debug!(path = %path.display(), "removing a leftover");
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::staging::Staging;

    fn stage(target: &Path, overwrite: bool) -> Result<Staging> {
        Staging::begin(&Location::Local(target.to_owned()), "_marker", overwrite)
    }

    fn write(target: &Path, text: &str, overwrite: bool) -> Result<()> {
        let mut staging = stage(target, overwrite)?;
        let mut file = staging.create()?;
        file.write_all(text.as_bytes()).unwrap();
        staging.keep(file, "data")?;
        staging.commit(b"data")
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_output_appears_whole_and_is_replaced_only_on_request() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("deep/out");
        write(&target, "one", false).unwrap();
        assert_eq!(names(&target), ["_marker", "data"]);
        let error = write(&target, "two", false).unwrap_err();
        assert!(error.to_string().ends_with("output already exists"), "{error}");
        write(&target, "two", true).unwrap();
        assert_eq!(fs::read(target.join("data")).unwrap(), b"two");
        assert_eq!(names(target.parent().unwrap()), ["out"]);
    }

    #[test]
    fn a_dropped_staging_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("out");
        for target in [target, root.path().join("new/deep/out")] {
            let mut staging = stage(&target, false).unwrap();
            let file = staging.create().unwrap();
            staging.keep(file, "data").unwrap();
            drop(staging);
            assert_eq!(names(root.path()), Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_not_ours_is_never_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("home");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("thesis.tex"), "x").unwrap();
        assert!(write(&target, "one", true).unwrap_err().to_string().contains("not created by planetree"));
        assert_eq!(names(&target), ["thesis.tex"]);
        fs::write(target.join("_marker"), "{}").unwrap();
        assert!(
            write(&target, "one", true)
                .unwrap_err()
                .to_string()
                .contains("thesis.tex: refusing to overwrite")
        );
        assert_eq!(names(&target), ["_marker", "thesis.tex"]);
    }

    #[test]
    fn leftovers_of_the_dead_are_removed_and_of_the_living_kept() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("out");
        fs::create_dir(root.path().join(".out.planetree-dead")).unwrap();
        let living = stage(&target, false).unwrap();
        let second = stage(&target, false).unwrap();
        assert_eq!(names(root.path()).len(), 2);
        drop((living, second));
    }
}
