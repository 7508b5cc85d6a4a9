//! Keeps the files of an opened directory or object-store prefix readable, even if another run replaces the
//! directory. It is meant for readers that first read a list of files and then the listed files, which must not
//! disappear in between.
//!
//! On a local file system, a writer replaces whole directories. A reader opens the directory, takes a shared lock on
//! it, and opens all files relative to the open directory, so it always reads the version that it opened. A writer
//! removes an old directory only when no reader has locked it. In an object store, a writer keeps replaced files for
//! a while (see `staging/bucket.rs`).

use super::location::Location;
use crate::error::{Error, Result};
use bytes::Bytes;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// An open directory or prefix whose files stay readable even if the directory or prefix is replaced.
#[derive(Debug)]
pub struct HeldDirectory {
    location: Location,
    /// The open directory, which is locked against removal; `None` in an object store.
    directory: Option<File>,
}

/// What changes if a local file is replaced or written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    inode: u64,
    size: u64,
    /// Time of the last modification, in seconds and nanoseconds.
    modified: (i64, i64),
}

impl HeldDirectory {
    /// Opens a directory and reads the file `marker`, which lists the other files. Returns `None` if there is no such
    /// file.
    pub fn open(location: &Location, marker: &str) -> Result<Option<(Self, Bytes)>> {
        let Location::Local(path) = location else {
            let held = HeldDirectory { location: location.clone(), directory: None };
            return Ok(location.join(marker).read_all()?.map(|bytes| (held, bytes)));
        };
        loop {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = match open(path, flags, Mode::empty()).map(File::from) {
                Ok(directory) => directory,
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                // Without permission to read the directory itself, its files may still be readable by their paths.
                Err(Errno::ACCESS) => {
                    let held = HeldDirectory { location: location.clone(), directory: None };
                    return Ok(location.join(marker).read_all()?.map(|bytes| (held, bytes)));
                }
                Err(error) => return Err(Error::io(location, "open", error.into())),
            };
            // This waits at most until a writer has removed an old directory. Errors are ignored because some network
            // file systems cannot lock directories.
            let _ = directory.lock_shared();
            let held = HeldDirectory { location: location.clone(), directory: Some(directory) };
            match held.read_whole(marker) {
                Ok(bytes) => return Ok(Some((held, bytes.into()))),
                Err(error) if !is_absent(&error) => {
                    return Err(Error::io(location.join(marker), "read", error));
                }
                // The directory was replaced and removed before it was locked, so open the new one.
                Err(_) if held.is_replaced(path) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Returns the location of the directory or prefix.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the names of all files and directories in a local directory. The list is empty for an object store.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let Some(directory) = &self.directory else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Opens a file in a local directory. Returns `None` for an object store.
    pub fn open_file(&self, name: &str) -> Option<io::Result<File>> {
        let directory = self.directory.as_ref()?;
        let opened = openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        Some(opened.map(File::from).map_err(io::Error::from))
    }

    /// Returns the size of a file in bytes, or `None` if the file does not exist.
    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        let failed = |error: io::Error| Error::io(self.location.join(name), "read", error);
        match self.open_file(name) {
            None => self.location.join(name).size(),
            Some(Ok(file)) => Ok(Some(file.metadata().map_err(failed)?.len())),
            Some(Err(error)) if is_absent(&error) => Ok(None),
            Some(Err(error)) => Err(failed(error)),
        }
    }

    /// Returns the version of a file, or `None` for an object store, where files are never changed in place.
    pub fn version(&self, name: &str) -> Result<Option<FileVersion>> {
        let place = self.location.join(name);
        let metadata = match (self.open_file(name), &place) {
            (Some(opened), _) => opened.and_then(|file| file.metadata()),
            (None, Location::Local(path)) => std::fs::metadata(path),
            (None, Location::Remote(_)) => return Ok(None),
        };
        let metadata = metadata.map_err(|error| Error::io(&place, "read", error))?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Ok(Some(FileVersion { inode: metadata.ino(), size: metadata.size(), modified }))
    }

    /// Reads `length` bytes of a file, from the offset `start` on. Fails if the file is too short.
    pub fn read_range(&self, name: &str, start: u64, length: u64) -> Result<Bytes> {
        let failed = |error: io::Error| Error::io(self.location.join(name), "read", error);
        let Some(opened) = self.open_file(name) else {
            return self.location.join(name).read_range(start, length);
        };
        let length = usize::try_from(length).map_err(|_| failed(io::ErrorKind::FileTooLarge.into()))?;
        let mut bytes = vec![0; length];
        opened.and_then(|file| file.read_exact_at(&mut bytes, start)).map_err(failed)?;
        Ok(bytes.into())
    }

    fn read_whole(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self.open_file(name) {
            Some(file) => file?.read_to_end(&mut bytes).map(|_| bytes),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Checks whether another directory has taken the path since this one was opened.
    fn is_replaced(&self, path: &Path) -> bool {
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let held = self.directory.as_ref().and_then(|directory| directory.metadata().ok()).map(identity);
        std::fs::metadata(path).ok().map(identity) != held
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Staging;
    use std::io::Write;

    fn write(target: &Location, text: &str) {
        let mut staging = Staging::begin(target, "_marker", true).unwrap();
        let mut file = staging.create().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        staging.keep(file, "data").unwrap();
        staging.commit(format!("data {text}").as_bytes()).unwrap();
    }

    #[test]
    fn a_reader_stays_in_the_directory_it_opened_until_it_lets_go() {
        let root = tempfile::tempdir().unwrap();
        let target = Location::Local(root.path().join("out"));
        assert!(HeldDirectory::open(&target, "_marker").unwrap().is_none());
        write(&target, "one");
        let (held, marker) = HeldDirectory::open(&target, "_marker").unwrap().unwrap();
        assert_eq!(&marker[..], b"data one");
        write(&target, "two");
        write(&target, "three");
        let entries = || std::fs::read_dir(root.path()).unwrap().count();
        assert_eq!(entries(), 2, "the version that is being read is kept, the one after it is deleted");
        assert_eq!(
            (held.size("data").unwrap(), &held.read_range("data", 0, 3).unwrap()[..]),
            (Some(3), &b"one"[..])
        );
        drop(held);
        write(&target, "four");
        assert_eq!(entries(), 1, "the next writer removes it");
        let (held, marker) = HeldDirectory::open(&target, "_marker").unwrap().unwrap();
        assert_eq!((&marker[..], held.size("none").unwrap()), (&b"data four"[..], None));
    }
}
