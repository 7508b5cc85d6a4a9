//! Reads objects of object stores and web servers as byte streams.

use super::border;
use super::location::Location;
use crate::error::Result;
use crate::threads::start_joinable;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::io::{self, Read};
use std::thread::JoinHandle;

/// Reads an object from start to end in ranges and prefetches the next range in the background. All ranges come from
/// the same version of the object. If the object is replaced while it is being read, reading fails.
pub(super) struct RangeReader {
    location: Location,
    version: Option<String>,
    size: u64,
    next: u64,
    current: Bytes,
    ahead: Option<JoinHandle<Result<Bytes>>>,
}

impl RangeReader {
    const RANGE: u64 = 8 << 20;

    /// Creates a reader for the first `size` bytes of the given version.
    pub(super) fn new(location: Location, size: u64, version: Option<String>) -> Result<Self> {
        let mut reader = RangeReader { location, version, size, next: 0, current: Bytes::new(), ahead: None };
        reader.fetch_ahead()?;
        Ok(reader)
    }

    fn fetch_ahead(&mut self) -> Result<()> {
        let length = Self::RANGE.min(self.size - self.next);
        if length == 0 {
            return Ok(());
        }
        let (location, start, version) = (self.location.clone(), self.next, self.version.clone());
        self.next += length;
        let read = move || location.read_version(start, length, version);
        self.ahead = Some(start_joinable("planetree-read", read)?);
        Ok(())
    }
}

impl Read for RangeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.current.is_empty() {
            let Some(ahead) = self.ahead.take() else { return Ok(0) };
            self.current = ahead
                .join()
                .map_err(|_| io::Error::other("the reading thread panicked"))?
                .map_err(io::Error::other)?;
            self.fetch_ahead().map_err(io::Error::other)?;
        }
        Ok(take(&mut self.current, buffer))
    }
}

/// Reads an object as one stream, from a server that does not support range requests.
pub(super) struct StreamReader {
    /// Location of the object, for error messages.
    pub location: Location,
    /// The chunks that have not been received yet.
    pub chunks: BoxStream<'static, object_store::Result<Bytes>>,
    /// The received bytes that have not been consumed yet.
    pub current: Bytes,
}

impl Read for StreamReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            let chunk = border::until_deadline(self.chunks.next());
            let chunk = border::wait_or_interrupt(chunk).map_err(io::Error::other)?;
            match chunk.unwrap_or_else(|error| Some(Err(error))) {
                Some(Ok(chunk)) => self.current = chunk,
                Some(Err(error)) => return Err(io::Error::other(self.location.store_error("read", &error))),
                None => return Ok(0),
            }
        }
        Ok(take(&mut self.current, buffer))
    }
}

fn take(current: &mut Bytes, buffer: &mut [u8]) -> usize {
    let count = buffer.len().min(current.len());
    buffer[..count].copy_from_slice(&current.split_to(count));
    count
}
