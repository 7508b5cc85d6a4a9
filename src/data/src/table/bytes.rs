//! Bytes of Parquet files: a stretch that was read and checked, decoders that may panic, errors of writers.

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use planetree_base::error::Error;
use planetree_base::storage::Location;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a Parquet decoder, which panics on some damaged or hostile files.
pub fn guarded<T>(decode: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(outcome) => outcome,
        Err(_) => Err(ParquetError::General("the decoder gave up on it".to_owned())),
    }
}

/// What went wrong when a Parquet file was written, as the user should hear it.
pub fn write_failure(target: &Location, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => Error::io(target, "write", &error),
            Err(source) => Error::place(target, source, "run the command again"),
        },
        // The footer's last flush hands on the system's error as text only.
        error if error.to_string().contains("No space left on device") => {
            Error::io(target, "write", &std::io::ErrorKind::StorageFull.into())
        }
        error => Error::place(target, error, "run the command again"),
    }
}

/// Some bytes of a file, in the place they have there.
#[derive(Clone)]
pub struct FileStretch {
    /// The size of the whole file.
    pub file_bytes: u64,
    /// Where the bytes start.
    pub offset: u64,
    /// The bytes.
    pub bytes: Bytes,
}

impl Length for FileStretch {
    fn len(&self) -> u64 {
        self.file_bytes
    }
}

impl ChunkReader for FileStretch {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let within = start.checked_sub(self.offset).filter(|within| *within <= self.bytes.len() as u64);
        match within {
            Some(within) => Ok(self.bytes.slice(within as usize..).reader()),
            None => Err(ParquetError::EOF(format!("byte {start} is outside of what was read"))),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let within = start.checked_sub(self.offset).map(|within| within as usize);
        match within {
            Some(within) if within.checked_add(length).is_some_and(|end| end <= self.bytes.len()) => {
                Ok(self.bytes.slice(within..within + length))
            }
            _ => Err(ParquetError::EOF(format!("byte {start} is outside of what was read"))),
        }
    }
}
