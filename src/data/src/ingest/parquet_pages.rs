//! Walks the pages of a Parquet file before they are decoded: verifies checksums where the writer added them, and finds
//! the largest page, because a page is decompressed as a whole. The decoder would allocate whatever size a page claims.

use flate2::Crc;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes that are read for the header of a page. A header contains statistics, which are usually short.
const HEADER_BYTES: usize = 1 << 12;
/// Maximum bytes of the header of a page.
const MAX_HEADER_BYTES: usize = 16 << 20;
/// Bytes that are read at a time to compute a checksum.
const STEP: usize = 1 << 20;
/// Maximum nesting of values that are skipped.
const MAX_DEPTH: usize = 16;

/// What a walk found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PageWalk {
    /// All pages were found. Contains the bytes of the largest one when it is decompressed.
    Largest(u64),
    /// A page does not match its checksum. Contains the offset of the page in the file.
    Damaged(u64),
    /// The pages cannot be found, because a header is not understood.
    Unknown,
}

/// The header of a page.
#[derive(Debug, PartialEq, Eq)]
struct PageHeader {
    /// Bytes of the header itself.
    length: usize,
    uncompressed: u64,
    compressed: u64,
    crc: Option<u32>,
}

/// Walks the pages in a range of bytes, which is a column chunk.
pub(super) fn walk_pages(file: &File, chunk: Range<u64>) -> io::Result<PageWalk> {
    let (mut at, mut largest) = (chunk.start, 0);
    while at < chunk.end {
        let Some(header) = read_header(file, at..chunk.end)? else { return Ok(PageWalk::Unknown) };
        let start = at + header.length as u64;
        let Some(end) = start.checked_add(header.compressed).filter(|end| *end <= chunk.end) else {
            return Ok(PageWalk::Unknown);
        };
        if let Some(crc) = header.crc
            && checksum(file, start..end)? != crc
        {
            return Ok(PageWalk::Damaged(at));
        }
        largest = largest.max(header.uncompressed);
        at = end;
    }
    Ok(PageWalk::Largest(largest))
}

fn read_header(file: &File, chunk: Range<u64>) -> io::Result<Option<PageHeader>> {
    let mut wanted = HEADER_BYTES;
    loop {
        let length = wanted.min(usize::try_from(chunk.end - chunk.start).unwrap_or(usize::MAX));
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, chunk.start)?;
        match parse_header(&bytes) {
            None if length == wanted && wanted < MAX_HEADER_BYTES => wanted *= 8,
            header => return Ok(header),
        }
    }
}

fn checksum(file: &File, range: Range<u64>) -> io::Result<u32> {
    let mut crc = Crc::new();
    let mut buffer = vec![0; STEP.min(usize::try_from(range.end - range.start).unwrap_or(STEP))];
    let mut at = range.start;
    while at < range.end {
        let count = buffer.len().min(usize::try_from(range.end - at).unwrap_or(STEP));
        file.read_exact_at(&mut buffer[..count], at)?;
        crc.update(&buffer[..count]);
        at += count as u64;
    }
    Ok(crc.sum())
}

/// Parses a page header, a struct in Thrift's compact protocol. Returns `None` if it is malformed or not complete.
fn parse_header(bytes: &[u8]) -> Option<PageHeader> {
    let mut reader = ThriftReader { bytes, at: 0 };
    let (mut uncompressed, mut compressed, mut crc) = (None, None, None);
    let mut field = 0;
    loop {
        let (delta, kind) = reader.field_head()?;
        if kind == STOP {
            break;
        }
        field = if delta == 0 { reader.signed()? } else { field + i64::from(delta) };
        match (field, kind) {
            (2, I32) => uncompressed = u64::try_from(reader.signed()?).ok(),
            (3, I32) => compressed = u64::try_from(reader.signed()?).ok(),
            (4, I32) => crc = Some(reader.signed()? as u32), // the bits of a signed number
            _ => reader.skip(kind, 0)?,
        }
    }
    Some(PageHeader { length: reader.at, uncompressed: uncompressed?, compressed: compressed?, crc })
}

const STOP: u8 = 0;
const I32: u8 = 5;

/// Reads Thrift's compact protocol.
struct ThriftReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl ThriftReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads the difference of field numbers and the type of a field.
    fn field_head(&mut self) -> Option<(u8, u8)> {
        let head = self.byte()?;
        Some((head >> 4, head & 0x0F))
    }

    fn skip_bytes(&mut self, count: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(count).ok()?)?;
        self.at = end;
        (end <= self.bytes.len()).then_some(())
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match kind {
            1 | 2 => Some(()), // a Boolean is its own type
            3 => self.skip_bytes(1),
            4..=6 => self.unsigned().map(drop),
            7 => self.skip_bytes(8),
            8 => {
                let length = self.unsigned()?;
                self.skip_bytes(length)
            }
            9 | 10 => {
                let (short, element) = self.field_head()?;
                let count = if short == 15 { self.unsigned()? } else { u64::from(short) };
                // In a list, a Boolean takes a byte.
                let element = if element <= 2 { 3 } else { element };
                (0..count).try_for_each(|_| self.skip(element, depth + 1))
            }
            12 => loop {
                let (delta, kind) = self.field_head()?;
                if kind == STOP {
                    return Some(());
                }
                if delta == 0 {
                    self.signed()?;
                }
                self.skip(kind, depth + 1)?;
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with type 0, the two sizes, an optional checksum, and a struct with a list and a text.
    fn header(uncompressed: u8, compressed: u8, crc: Option<u32>) -> Vec<u8> {
        let mut bytes = vec![0x15, 0, 0x15, 2 * uncompressed, 0x15, 2 * compressed];
        if let Some(crc) = crc {
            bytes.push(0x15);
            let signed = i64::from(crc as i32);
            let mut zigzag = ((signed << 1) ^ (signed >> 63)) as u64;
            while zigzag >= 0x80 {
                bytes.push(zigzag as u8 | 0x80);
                zigzag >>= 7;
            }
            bytes.push(zigzag as u8);
        }
        let delta = if crc.is_some() { 0x1C } else { 0x2C };
        bytes.extend([delta, 0x19, 0x25, 4, 6, 0x18, 2, b'a', b'b', 0x11, 0, 0]);
        bytes
    }

    #[test]
    fn headers_are_parsed_and_truncated_ones_are_not() {
        for crc in [None, Some(7), Some(0xDEAD_BEEF)] {
            let bytes = header(50, 9, crc);
            let parsed = parse_header(&bytes).unwrap();
            assert_eq!(parsed, PageHeader { length: bytes.len(), uncompressed: 50, compressed: 9, crc });
            for length in 0..bytes.len() {
                assert_eq!(parse_header(&bytes[..length]), None, "{length}");
            }
        }
        assert_eq!(parse_header(&[0x1C; 100]), None, "nested without end");
    }

    #[test]
    fn a_walk_finds_the_largest_page_and_a_wrong_checksum() {
        let mut crc = Crc::new();
        crc.update(b"123456789");
        assert_eq!(crc.sum(), 0xCBF4_3926, "the checksum of the Parquet format");
        let page = |crc: Option<u32>, size: u8| [header(size, 9, crc), b"123456789".to_vec()].concat();
        let walk = |bytes: &[u8]| {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(bytes, 0).unwrap();
            walk_pages(&file, 0..bytes.len() as u64).unwrap()
        };
        let good = [page(Some(0xCBF4_3926), 20), page(None, 60)].concat();
        assert_eq!(walk(&good), PageWalk::Largest(60));
        let first = page(None, 20);
        let bad = [first.clone(), page(Some(1), 60)].concat();
        assert_eq!(walk(&bad), PageWalk::Damaged(first.len() as u64));
        assert_eq!(walk(&good[..good.len() - 1]), PageWalk::Unknown);
    }
}
