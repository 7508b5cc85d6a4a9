//! Encodes and decodes the messages between the processes of a cluster in a compact binary form, with variable-length
//! integers and length-prefixed lists.

use crate::error::{Error, Result};

/// Encodes values into a byte buffer.
#[derive(Debug, Default)]
pub struct WireWriter {
    bytes: Vec<u8>,
}

impl WireWriter {
    /// Returns the encoded bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes an unsigned integer in LEB128 encoding: seven bits per byte, least significant bits first.
    #[inline]
    pub fn count(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Writes a signed integer in zigzag encoding, in which numbers near zero take few bytes.
    #[inline]
    pub fn signed(&mut self, value: i64) {
        self.count((value << 1 ^ value >> 63) as u64);
    }

    /// Writes an `f64` as eight little-endian bytes.
    pub fn float(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    /// Writes one byte.
    pub fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Writes an `f32` as four little-endian bytes.
    pub fn single(&mut self, value: f32) {
        self.bytes.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    /// Writes the number of bytes, followed by the bytes.
    pub fn list(&mut self, bytes: &[u8]) {
        self.count(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes the length of a string in bytes, followed by its UTF-8 bytes.
    pub fn text(&mut self, text: &str) {
        self.list(text.as_bytes());
    }
}

/// Decodes bytes that [`WireWriter`] encoded. Values must be read in the order in which they were written.
#[derive(Debug)]
pub struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    /// Creates a decoder that starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        WireReader { rest: bytes }
    }

    /// Checks whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the number of bytes that have not been read yet.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads an integer written by [`WireWriter::count`].
    #[inline]
    pub fn count(&mut self) -> Result<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let (byte, rest) = self.rest.split_first().ok_or_else(malformed)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7F).checked_shl(shift).ok_or_else(malformed)?;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// Reads the number of items in a list. Fails if the remaining bytes are too few for that many items of at least
    /// `least_bytes` bytes each, so that a malformed length cannot cause a huge allocation.
    pub fn length(&mut self, least_bytes: usize) -> Result<usize> {
        let length = usize::try_from(self.count()?).map_err(|_| malformed())?;
        match length.checked_mul(least_bytes) {
            Some(bytes) if bytes <= self.rest.len() => Ok(length),
            _ => Err(malformed()),
        }
    }

    /// Reads an integer written by [`WireWriter::signed`].
    #[inline]
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.count()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a number written by [`WireWriter::float`].
    pub fn float(&mut self) -> Result<f64> {
        let bytes = self.take(8)?.try_into().map_err(|_| malformed())?;
        Ok(f64::from_bits(u64::from_le_bytes(bytes)))
    }

    /// Reads a byte written by [`WireWriter::byte`].
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Reads a number written by [`WireWriter::single`].
    pub fn single(&mut self) -> Result<f32> {
        let bytes = self.take(4)?.try_into().map_err(|_| malformed())?;
        Ok(f32::from_bits(u32::from_le_bytes(bytes)))
    }

    /// Reads bytes written by [`WireWriter::list`].
    pub fn list(&mut self) -> Result<&'a [u8]> {
        let length = self.length(1)?;
        self.take(length)
    }

    /// Reads a string written by [`WireWriter::text`].
    pub fn text(&mut self) -> Result<String> {
        String::from_utf8(self.list()?.to_vec()).map_err(|_| malformed())
    }
}

/// Returns the error for a cluster response that cannot be decoded.
pub fn malformed() -> Error {
    Error::usage(
        "a response from a cluster worker is truncated or malformed",
        "run the same build of planetree on all machines",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(
            counts in prop::collection::vec(any::<u64>(), 0..50), signed in prop::collection::vec(any::<i64>(), 0..50),
            floats in prop::collection::vec(any::<f32>(), 0..50),
            cut in 0usize..400,
        ) {
            let mut writer = WireWriter::default();
            counts.iter().for_each(|value| writer.count(*value));
            signed.iter().for_each(|value| writer.signed(*value));
            floats.iter().for_each(|value| writer.single(*value));
            writer.text("fünf");
            let bytes = writer.into_bytes();
            let mut reader = WireReader::new(&bytes);
            for value in &counts {
                prop_assert_eq!(reader.count().unwrap(), *value);
            }
            for value in &signed {
                prop_assert_eq!(reader.signed().unwrap(), *value);
            }
            for value in &floats {
                prop_assert_eq!(reader.single().unwrap().to_bits(), value.to_bits());
            }
            prop_assert_eq!(reader.text().unwrap(), "fünf");
            prop_assert!(reader.is_empty());
            // Reading a truncated buffer must return an error, not panic.
            let mut reader = WireReader::new(&bytes[..cut.min(bytes.len())]);
            while reader.list().is_ok() {}
        }
    }
}
