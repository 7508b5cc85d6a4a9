//! A directory or prefix as it was when it was opened, for readers that go from a file that names
//! others to those others: a replacement in between must not take them away.
//!
//! On this machine a writer exchanges whole directories. A reader opens the directory, locks it with
//! others that read it, and finds all files relative to it, so it stays in the one it opened; a writer
//! removes an old directory only when no reader holds it. In an object store the writer leaves what it
//! replaced for a while (`staging/bucket.rs`).

use super::location::Location;
use crate::error::{Error, Result};
use bytes::Bytes;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// An open directory or prefix.
#[derive(Debug)]
pub struct HeldDirectory {
    location: Location,
    /// Locked against removal; `None` in an object store.
    directory: Option<File>,
}

impl HeldDirectory {
    /// Opens a directory and reads the file in it that names the others; `None` if it has no such
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
                // A directory that can be entered but not opened is read by its path.
                Err(Errno::ACCESS) => {
                    let held = HeldDirectory { location: location.clone(), directory: None };
                    return Ok(location.join(marker).read_all()?.map(|bytes| (held, bytes)));
                }
                Err(error) => return Err(Error::io(location, "open", error.into())),
            };
            // Waits at most until an old directory is gone. Some network file systems lock none.
            let _ = directory.lock_shared();
            let held = HeldDirectory { location: location.clone(), directory: Some(directory) };
            match held.read_whole(marker) {
                Ok(bytes) => return Ok(Some((held, bytes.into()))),
                Err(error) if !is_absent(&error) => {
                    return Err(Error::io(location.join(marker), "read", error));
                }
                // It was replaced and removed before we had the lock: there is another by now.
                Err(_) if held.is_replaced(path) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The names in it; only on this machine.
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

    /// Opens a file in it, on this machine; `None` in an object store.
    pub fn open_file(&self, name: &str) -> Option<io::Result<File>> {
        let directory = self.directory.as_ref()?;
        let opened = openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        Some(opened.map(File::from).map_err(io::Error::from))
    }

    /// How many bytes a file in it has; `None` if there is none.
    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        let failed = |error: io::Error| Error::io(self.location.join(name), "read", error);
        match self.open_file(name) {
            None => self.location.join(name).size(),
            Some(Ok(file)) => Ok(Some(file.metadata().map_err(failed)?.len())),
            Some(Err(error)) if is_absent(&error) => Ok(None),
            Some(Err(error)) => Err(failed(error)),
        }
    }

    /// Reads a stretch of a file in it; shorter than asked for is an error.
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

    /// Whether another directory is at the path by now.
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
        assert_eq!(entries(), 2, "what is being read is put aside, what is not is gone");
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
