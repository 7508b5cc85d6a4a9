//! Where a table's checksum is. It is the last value of the footer's metadata: the hash of the whole
//! file with the digits themselves taken as zeros. It must be found before anything is decoded, so it
//! is looked for as the bytes that Thrift's compact protocol makes of its key and the length 32.

use super::bytes::{FileStretch, guarded};
use bytes::Bytes;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use planetree_base::error::Result;
use planetree_base::storage::{Digest, PinnedFile, RunningDigest, interrupt};
use std::ops::Range;

/// The metadata key of what a table is.
pub const TABLE: &str = "planetree.table";
/// The metadata key of who wrote it.
pub const WRITER: &str = "planetree.writer";
/// The metadata key of the checksum.
pub const CHECKSUM: &str = "planetree.xxh3";
/// What the checksum is while it is not known.
pub const UNKNOWN: [u8; DIGITS] = [b'0'; DIGITS];

const DIGITS: usize = 32;
const MAGIC: &[u8] = b"PAR1";
/// Behind the key: "the next field is a string", "it has 32 bytes".
const BEFORE_DIGITS: [u8; 2] = [0x18, DIGITS as u8];

/// Where the checksum's digits are within a footer.
pub fn digits_within(footer: &[u8]) -> Option<Range<usize>> {
    let pattern = [CHECKSUM.as_bytes(), &BEFORE_DIGITS].concat();
    let start = memchr::memmem::rfind(footer, &pattern)? + pattern.len();
    (start + DIGITS <= footer.len()).then_some(start..start + DIGITS)
}

/// The end of a file, as far as it can be told without decoding.
pub enum Footer {
    /// It is no Parquet file.
    Unknown,
    /// It is another Parquet file.
    Foreign(ForeignFooter),
    /// It is a part of a dataset, whose checksums are elsewhere.
    DatasetPart,
    /// It was a Parquet file, perhaps one of ours.
    Broken(&'static str),
    /// It has a checksum of ours.
    Ours(OurFooter),
}

/// The end of a file of somebody else's.
pub struct ForeignFooter {
    offset: u64,
    bytes: Bytes,
}

impl ForeignFooter {
    /// What the footer says.
    pub fn decode(&self, file: &PinnedFile) -> parquet::errors::Result<ParquetMetaData> {
        decode(self.bytes.clone(), self.offset, file.size())
    }
}

/// The end of a file of ours.
pub struct OurFooter {
    offset: u64,
    bytes: Bytes,
    digits: Range<usize>,
}

impl Footer {
    /// Reads the end of a file.
    pub fn read(file: &PinnedFile) -> Result<Self> {
        const TAIL: u64 = 8; // the length of the metadata, and the magic
        let size = file.size();
        let starts_well = size >= 4 && file.read_range(0, 4)? == MAGIC;
        let tail = file.read_range(size - TAIL.min(size), TAIL.min(size))?;
        if !tail.ends_with(MAGIC) {
            let cut = Footer::Broken("its end is missing");
            return Ok(if starts_well { cut } else { Footer::Unknown });
        }
        let length = match tail[..] {
            [a, b, c, d, ..] if size >= 4 + TAIL => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => return Ok(Footer::Broken("it is too short")),
        };
        let Some(offset) = (size - TAIL).checked_sub(length).filter(|offset| *offset >= 4) else {
            return Ok(Footer::Broken("its footer does not fit into it"));
        };
        let bytes = file.read_range(offset, size - offset)?;
        Ok(match digits_within(&bytes) {
            Some(digits) => Footer::Ours(OurFooter { offset, bytes, digits }),
            None if memchr::memmem::find(&bytes, TABLE.as_bytes()).is_none() => {
                Footer::Foreign(ForeignFooter { offset, bytes })
            }
            None if is_dataset_part(&bytes, offset, size) => Footer::DatasetPart,
            None => Footer::Broken("its checksum is missing"),
        })
    }
}

/// Whether the file belongs to a dataset, whose checksums are in its manifest.
fn is_dataset_part(footer: &Bytes, offset: u64, size: u64) -> bool {
    let metadata = decode(footer.clone(), offset, size);
    metadata.is_ok_and(|metadata| value(&metadata, TABLE).is_some_and(|name| name == "dataset"))
}

impl OurFooter {
    /// Whether every byte of the file is what it was.
    pub fn matches(&self, file: &PinnedFile) -> Result<bool> {
        /// Bytes read at a time.
        const STEP: u64 = 8 << 20;
        let mut digest = RunningDigest::new();
        let mut start = 0;
        while start < self.offset {
            interrupt::check()?;
            let length = STEP.min(self.offset - start);
            digest.update(&file.read_range(start, length)?);
            start += length;
        }
        Ok(self.bytes[self.digits.clone()] == *self.expected(digest).to_string().as_bytes())
    }

    /// The file's checksum, given the hash of all that is before the footer.
    fn expected(&self, digest: RunningDigest) -> Digest {
        checksum(digest, &self.bytes, &self.digits)
    }

    /// What the footer says. Only a footer that [`OurFooter::matches`] can be relied on.
    pub fn decode(&self, file: &PinnedFile) -> parquet::errors::Result<ParquetMetaData> {
        decode(self.bytes.clone(), self.offset, file.size())
    }
}

/// The checksum of a file, given the hash of all that is before the footer.
pub fn checksum(mut before: RunningDigest, footer: &[u8], digits: &Range<usize>) -> Digest {
    before.update(&footer[..digits.start]);
    before.update(&UNKNOWN);
    before.update(&footer[digits.end..]);
    before.digest()
}

fn decode(bytes: Bytes, offset: u64, file_bytes: u64) -> parquet::errors::Result<ParquetMetaData> {
    guarded(|| ParquetMetaDataReader::new().parse_and_finish(&FileStretch { file_bytes, offset, bytes }))
}

/// A value of the footer's metadata.
pub fn value<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}
