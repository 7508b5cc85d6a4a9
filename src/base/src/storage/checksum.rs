//! Computes checksums of the files that planetree writes. Parquet readers do not detect damage by themselves: a
//! flipped bit simply reads back as another value. Every byte range is therefore hashed when it is written and
//! verified when it is read.

use std::fmt;
use std::io::{self, Write};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// A 128-bit XXH3 hash, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub u128);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let lower = text.len() == 32 && !text.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'+');
        match u128::from_str_radix(&text, 16) {
            Ok(value) if lower => Ok(Digest(value)),
            _ => Err(serde::de::Error::custom("expected 32 lower-case hexadecimal digits")),
        }
    }
}

/// Returns the hash of `bytes`.
pub fn digest_of(bytes: &[u8]) -> Digest {
    Digest(xxh3_128(bytes))
}

/// A hash that is computed incrementally.
#[derive(Default)]
pub struct RunningDigest(Box<Xxh3>);

impl RunningDigest {
    /// Creates a hasher that has not read any bytes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends bytes to the hashed sequence.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash of all bytes added so far.
    pub fn digest(&self) -> Digest {
        Digest(self.0.digest128())
    }
}

/// A writer that hashes the bytes written to it. The bytes can be divided into consecutive ranges with separate
/// hashes.
pub struct HashingWriter<W> {
    inner: W,
    hasher: Box<Xxh3>,
    written: u64,
}

impl<W: Write> HashingWriter<W> {
    /// Wraps a writer.
    pub fn new(inner: W) -> Self {
        HashingWriter { inner, hasher: Box::new(Xxh3::new()), written: 0 }
    }

    /// Ends the current range and returns its hash. The range contains all bytes written since the previous call, or
    /// since the start.
    pub fn end_stretch(&mut self) -> Digest {
        let digest = Digest(self.hasher.digest128());
        self.hasher.reset();
        digest
    }

    /// Returns the number of bytes written so far in all ranges.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the inner writer.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_hashed_apart() {
        let mut writer = HashingWriter::new(Vec::new());
        writer.write_all(b"ab").unwrap();
        writer.write_all(b"cd").unwrap();
        assert_eq!(writer.end_stretch(), digest_of(b"abcd"));
        writer.write_all(b"ef").unwrap();
        assert_eq!(writer.end_stretch(), digest_of(b"ef"));
        assert_eq!((writer.written(), writer.into_inner()), (6, b"abcdef".to_vec()));
    }

    #[test]
    fn only_the_written_form_reads_back() {
        let digest = digest_of(b"x");
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>(&json.to_uppercase()).is_err());
        assert!(serde_json::from_str::<Digest>("\"12\"").is_err());
    }
}
