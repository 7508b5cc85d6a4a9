//! Reads the footer of a table and verifies the checksum in it. The checksum is the last value in the metadata of the
//! footer. It is the hash of the whole file, computed with zeros in place of the digits of the checksum. The file
//! must be verified before anything is decoded. The digits are therefore found by a search for the bytes that
//! Thrift's compact protocol produces for the checksum's key and the length 32.

use super::bytes::{FileSlice, guarded};
use bytes::Bytes;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use planetree_base::error::Result;
use planetree_base::storage::{Digest, PinnedFile, RunningDigest, interrupt};
use std::ops::Range;

/// Metadata key under which the kind of table is stored.
pub(super) const TABLE: &str = "planetree.table";
/// Metadata key under which the name and version of the program that wrote the table are stored.
pub(super) const WRITER: &str = "planetree.writer";
/// Metadata key under which the checksum is stored.
pub(crate) const CHECKSUM: &str = "planetree.xxh3";
/// Placeholder for the checksum before it is known.
pub(super) const UNKNOWN: [u8; DIGITS] = [b'0'; DIGITS];

const DIGITS: usize = 32;
const MAGIC: &[u8] = b"PAR1";
/// The two bytes between the key and the digits. In Thrift, they mean that a string of 32 bytes follows.
const BEFORE_DIGITS: [u8; 2] = [0x18, DIGITS as u8];

/// Returns the range of bytes in a footer that contains the digits of the checksum, or `None` if there is no
/// checksum.
pub(crate) fn digits_within(footer: &[u8]) -> Option<Range<usize>> {
    let pattern = [CHECKSUM.as_bytes(), &BEFORE_DIGITS].concat();
    let start = memchr::memmem::rfind(footer, &pattern)? + pattern.len();
    (start + DIGITS <= footer.len()).then_some(start..start + DIGITS)
}

/// The footer of a file, classified by who wrote the file. The footer is decoded only if necessary.
pub(super) enum Footer {
    /// The file is not a Parquet file.
    Unknown,
    /// The file is a Parquet file that planetree did not write as a table.
    Foreign(ForeignFooter),
    /// The file is a part of a dataset. Its checksums are in the manifest.
    DatasetPart,
    /// The file is a damaged Parquet file, possibly a table of planetree. Contains the reason.
    Broken(&'static str),
    /// The file is a table of planetree and has a checksum.
    Table(TableFooter),
}

/// The footer of a Parquet file that another program wrote.
pub(super) struct ForeignFooter {
    offset: u64,
    bytes: Bytes,
}

impl ForeignFooter {
    /// Decodes the footer.
    pub(super) fn decode(&self, file: &PinnedFile) -> parquet::errors::Result<ParquetMetaData> {
        decode(self.bytes.clone(), self.offset, file.size())
    }
}

/// The footer of a table of planetree.
pub(super) struct TableFooter {
    offset: u64,
    bytes: Bytes,
    digits: Range<usize>,
}

impl Footer {
    /// Reads and classifies the footer of a file.
    pub(super) fn read(file: &PinnedFile) -> Result<Self> {
        const TAIL: u64 = 8; // four bytes for the length of the metadata, and four magic bytes
        let size = file.size();
        let has_magic = size >= 4 && file.read_range(0, 4)? == MAGIC;
        let tail = file.read_range(size - TAIL.min(size), TAIL.min(size))?;
        if !tail.ends_with(MAGIC) {
            let truncated = Footer::Broken("truncated file");
            return Ok(if has_magic { truncated } else { Footer::Unknown });
        }
        let length = match tail[..] {
            [a, b, c, d, ..] if size >= 4 + TAIL => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => return Ok(Footer::Broken("the file is too short")),
        };
        let Some(offset) = (size - TAIL).checked_sub(length).filter(|offset| *offset >= 4) else {
            return Ok(Footer::Broken("invalid footer length"));
        };
        let bytes = file.read_range(offset, size - offset)?;
        Ok(match digits_within(&bytes) {
            Some(digits) => Footer::Table(TableFooter { offset, bytes, digits }),
            None if memchr::memmem::find(&bytes, TABLE.as_bytes()).is_none() => {
                Footer::Foreign(ForeignFooter { offset, bytes })
            }
            None if is_dataset_part(&bytes, offset, size) => Footer::DatasetPart,
            None => Footer::Broken("no checksum"),
        })
    }
}

/// Checks whether the file is a part of a dataset.
fn is_dataset_part(footer: &Bytes, offset: u64, size: u64) -> bool {
    let metadata = decode(footer.clone(), offset, size);
    metadata.is_ok_and(|metadata| value(&metadata, TABLE).is_some_and(|name| name == "dataset"))
}

impl TableFooter {
    /// Checks whether all bytes of the file match the checksum.
    pub(super) fn matches(&self, file: &PinnedFile) -> Result<bool> {
        /// Number of bytes that are read at a time.
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

    /// Computes the checksum of the file, given the hash of all bytes before the footer.
    fn expected(&self, digest: RunningDigest) -> Digest {
        checksum(digest, &self.bytes, &self.digits)
    }

    /// Decodes the footer. The result is reliable only if [`TableFooter::matches`] returned true.
    pub(super) fn decode(&self, file: &PinnedFile) -> parquet::errors::Result<ParquetMetaData> {
        decode(self.bytes.clone(), self.offset, file.size())
    }
}

/// Computes the checksum of a file, given the hash of all bytes before the footer and the range of the digits in the
/// footer.
pub(super) fn checksum(mut before: RunningDigest, footer: &[u8], digits: &Range<usize>) -> Digest {
    before.update(&footer[..digits.start]);
    before.update(&UNKNOWN);
    before.update(&footer[digits.end..]);
    before.digest()
}

fn decode(bytes: Bytes, offset: u64, file_bytes: u64) -> parquet::errors::Result<ParquetMetaData> {
    guarded(|| ParquetMetaDataReader::new().parse_and_finish(&FileSlice { file_bytes, offset, bytes }))
}

/// Returns the metadata value with the given key.
pub(super) fn value<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}
