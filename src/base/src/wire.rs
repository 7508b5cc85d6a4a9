//! Compact binary encoding of the responses of cluster workers, with variable-length integers and length-prefixed
//! lists.

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

    /// Writes a signed integer in zigzag encoding.
    #[inline]
    pub fn signed(&mut self, value: i64) {
        self.count((value << 1 ^ value >> 63) as u64);
    }

    /// Writes an `f64` as eight little-endian bytes.
    pub fn float(&mut self, value: f64) {
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

    /// Writes the number of values, followed by each value as four little-endian bytes.
    pub fn floats(&mut self, values: &[f32]) {
        self.count(values.len() as u64);
        values.iter().for_each(|value| self.bytes.extend_from_slice(&value.to_bits().to_le_bytes()));
    }

    /// Writes the number of values, followed by the difference of each value from the previous one. The values must
    /// be in ascending order, which keeps the differences short.
    pub fn ascending(&mut self, values: impl ExactSizeIterator<Item = u32>) {
        self.count(values.len() as u64);
        let mut before = 0;
        for value in values {
            self.count(u64::from(value.wrapping_sub(before)));
            before = value;
        }
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

    /// Reads bytes written by [`WireWriter::list`].
    pub fn list(&mut self) -> Result<&'a [u8]> {
        let length = self.length(1)?;
        self.take(length)
    }

    /// Reads a string written by [`WireWriter::text`].
    pub fn text(&mut self) -> Result<String> {
        String::from_utf8(self.list()?.to_vec()).map_err(|_| malformed())
    }

    /// Reads numbers written by [`WireWriter::floats`].
    pub fn floats(&mut self) -> Result<Vec<f32>> {
        let length = self.length(4)?;
        let words = self.take(4 * length)?.as_chunks::<4>().0;
        Ok(words.iter().map(|word| f32::from_bits(u32::from_le_bytes(*word))).collect())
    }

    /// Reads numbers written by [`WireWriter::ascending`].
    pub fn ascending(&mut self) -> Result<Vec<u32>> {
        let length = self.length(1)?;
        let mut before = 0u32;
        let mut values = Vec::with_capacity(length);
        for _ in 0..length {
            before = before.wrapping_add(self.count()? as u32);
            values.push(before);
        }
        Ok(values)
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
            floats in prop::collection::vec(any::<f32>(), 0..50), mut ascending in prop::collection::vec(any::<u32>(), 0..50),
            cut in 0usize..400,
        ) {
            ascending.sort_unstable();
            let mut writer = WireWriter::default();
            counts.iter().for_each(|value| writer.count(*value));
            signed.iter().for_each(|value| writer.signed(*value));
            writer.floats(&floats);
            writer.ascending(ascending.iter().copied());
            writer.text("fünf");
            let bytes = writer.into_bytes();
            let mut reader = WireReader::new(&bytes);
            for value in &counts {
                prop_assert_eq!(reader.count().unwrap(), *value);
            }
            for value in &signed {
                prop_assert_eq!(reader.signed().unwrap(), *value);
            }
            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&reader.floats().unwrap()), bits(&floats));
            prop_assert_eq!(reader.ascending().unwrap(), ascending);
            prop_assert_eq!(reader.text().unwrap(), "fünf");
            prop_assert!(reader.is_empty());
            // Reading a truncated buffer must return an error, not panic.
            let mut reader = WireReader::new(&bytes[..cut.min(bytes.len())]);
            while reader.list().is_ok() {}
        }
    }
}
