//! Reads one fixed version of a file, for code that first verifies a file and uses it later. Such code then uses
//! exactly the bytes that it verified, even if the file is replaced in between.

use super::location::Location;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A file in the version that was opened. Reads return bytes of that version, or fail if that version no longer
/// exists.
pub struct PinnedFile {
    location: Location,
    size: u64,
    held: PinnedContent,
}

enum PinnedContent {
    /// The content of a small file.
    Memory(Bytes),
    /// An open local file, which remains readable if another file replaces it.
    File(File),
    /// The version (ETag) of an object, which every request must match.
    Object(Option<String>),
}

/// Maximum size in bytes of files that are read into memory when they are opened.
const SMALL: u64 = 8 << 20;

impl PinnedFile {
    /// Opens the current version of a file or object. Returns `None` if it does not exist.
    pub fn open(location: &Location) -> Result<Option<Self>> {
        let pinned = match location {
            Location::Local(path) => {
                if location.size()?.is_none() {
                    return Ok(None); // there is no regular file; opening a pipe would block
                }
                let failed = |error: io::Error| Error::io(location, "open", error);
                let file = File::open(path).map_err(failed)?;
                let size = file.metadata().map_err(failed)?.len();
                PinnedFile { location: location.clone(), size, held: PinnedContent::File(file) }
            }
            Location::Remote(remote) => {
                let Some(meta) = location.head(remote)? else { return Ok(None) };
                if meta.size > 0 && !location.knows_ranges(remote)? {
                    let failed = |error: io::Error| Error::io(location, "read", error);
                    let mut file = tempfile::tempfile().map_err(failed)?;
                    let size = io::copy(&mut location.stream(remote)?, &mut file).map_err(failed)?;
                    PinnedFile { location: location.clone(), size, held: PinnedContent::File(file) }
                } else {
                    let held = PinnedContent::Object(meta.e_tag);
                    PinnedFile { location: location.clone(), size: meta.size, held }
                }
            }
        };
        if pinned.size > SMALL {
            return Ok(Some(pinned));
        }
        let bytes = pinned.read_range(0, pinned.size)?;
        Ok(Some(PinnedFile { held: PinnedContent::Memory(bytes), ..pinned }))
    }

    /// Returns the location of the file.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the size of the opened version in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads `length` bytes from the offset `start` on. Fails if the file is too short or an object was replaced.
    pub fn read_range(&self, start: u64, length: u64) -> Result<Bytes> {
        let failed = |error: io::Error| Error::io(&self.location, "read", error);
        if start.checked_add(length).is_none_or(|end| end > self.size) {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        match &self.held {
            PinnedContent::Memory(bytes) => Ok(bytes.slice(start as usize..(start + length) as usize)),
            PinnedContent::File(file) => {
                let mut bytes = vec![0; length as usize];
                file.read_exact_at(&mut bytes, start).map_err(failed)?;
                Ok(bytes.into())
            }
            // Object stores reject requests for empty ranges.
            PinnedContent::Object(_) if length == 0 => Ok(Bytes::new()),
            PinnedContent::Object(version) => self.location.read_version(start, length, version.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;
    use std::io::Write;
    use std::sync::Arc;

    #[test]
    fn a_replaced_file_is_still_read_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        for size in [100, SMALL as usize + 100] {
            let location = Location::Local(root.path().join("file"));
            let write = |byte: u8| {
                let mut output = crate::storage::FileOutput::create(&location).unwrap();
                output.write_all(&vec![byte; size]).unwrap();
                output.commit().unwrap();
            };
            write(1);
            let pinned = PinnedFile::open(&location).unwrap().unwrap();
            write(2);
            assert_eq!(pinned.read_range(90, 5).unwrap()[..], [1; 5]);
            assert!(pinned.read_range(pinned.size() - 1, 2).is_err());
            assert!(pinned.read_range(u64::MAX, 2).is_err());
        }
    }

    #[test]
    fn a_replaced_object_is_an_error() {
        let store = Arc::new(InMemory::new());
        let location = Location::in_memory(&store, "file");
        assert!(PinnedFile::open(&location).unwrap().is_none());
        let write = |byte: u8| {
            let mut output = crate::storage::FileOutput::create(&location).unwrap();
            output.write_all(&vec![byte; SMALL as usize + 1]).unwrap();
            output.commit().unwrap();
        };
        write(1);
        let pinned = PinnedFile::open(&location).unwrap().unwrap();
        assert_eq!(pinned.read_range(90, 5).unwrap()[..], [1; 5]);
        write(2);
        assert!(
            pinned.read_range(90, 5).unwrap_err().to_string().contains("changed while it was being read")
        );
    }
}
