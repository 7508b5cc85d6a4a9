//! Provides helpers for reading and writing Parquet files: slices of a file, protection against panics of the
//! decoder, and the conversion of write errors.

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use planetree_base::error::Error;
use planetree_base::panics;
use planetree_base::storage::Location;

/// Runs a Parquet decoder and converts panics to errors, because the decoder panics on some damaged or malicious
/// files.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    panics::guarded(decode)
        .unwrap_or_else(|_| Err(ParquetError::General("the decoder stopped unexpectedly".to_owned())))
}

/// Converts an error of the Parquet writer to a user error.
pub(crate) fn write_failure(target: &Location, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => Error::io(target, "write", *error),
            Err(source) => Error::place(target, &source, "run the command again").caused_by(source),
        },
        // When the footer is written, the Parquet crate passes on only the message of the system error.
        error if error.to_string().contains("No space left on device") => {
            Error::io(target, "write", std::io::ErrorKind::StorageFull.into())
        }
        error => Error::place(target, &error, "run the command again").caused_by(error),
    }
}

/// A slice of a file's bytes that can be read with offsets relative to the whole file.
#[derive(Clone)]
pub(crate) struct FileSlice {
    /// Size of the whole file in bytes.
    pub file_bytes: u64,
    /// Offset of the slice in the file.
    pub offset: u64,
    /// The bytes of the slice.
    pub bytes: Bytes,
}

impl Length for FileSlice {
    fn len(&self) -> u64 {
        self.file_bytes
    }
}

impl ChunkReader for FileSlice {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let within = start.checked_sub(self.offset).filter(|within| *within <= self.bytes.len() as u64);
        match within {
            Some(within) => Ok(self.bytes.slice(within as usize..).reader()),
            None => Err(ParquetError::EOF(format!("byte {start} is out of range"))),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let within = start.checked_sub(self.offset).map(|within| within as usize);
        match within {
            Some(within) if within.checked_add(length).is_some_and(|end| end <= self.bytes.len()) => {
                Ok(self.bytes.slice(within..within + length))
            }
            _ => Err(ParquetError::EOF(format!("byte {start} is out of range"))),
        }
    }
}
