//! One version of a file, for readers that verify it first and use it later: they use what they
//! verified, even if the file is replaced meanwhile.

use super::location::Location;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A file as it was when it was opened. Reads see that version, or fail.
pub struct PinnedFile {
    location: Location,
    size: u64,
    held: PinnedContent,
}

enum PinnedContent {
    /// Content of a small file.
    Memory(Bytes),
    /// An open file, which keeps its content when another file takes its name.
    File(File),
    /// The object's version, which is part of every request.
    Object(Option<String>),
}

/// Maximum size of files that are read at once.
const SMALL: u64 = 8 << 20;

impl PinnedFile {
    /// Pins a file or object; `None` if there is none.
    pub fn open(location: &Location) -> Result<Option<Self>> {
        let pinned = match location {
            Location::Local(path) => {
                if location.size()?.is_none() {
                    return Ok(None); // opening a pipe would block
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

    /// Its location.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads a byte range; a shorter file is an error.
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
            // Stores reject empty ranges.
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
        assert!(pinned.read_range(90, 5).unwrap_err().to_string().contains("changed while it was read"));
    }
}
