//! Splits a stream of bytes into chunks of whole lines and keeps track of the line numbers.

use super::encoding::{encoding_of, has_only_carriage_returns};
use std::io::{self, Read};

/// A chunk of whole lines of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextChunk {
    /// The lines. The last byte is always a newline, even if the input does not end with one.
    pub text: Vec<u8>,
    /// Number of the chunk's first line in the input, counted from 1.
    pub first_line: u64,
    /// Number of bytes of the chunk in the input. Excludes a byte order mark and a final newline that was added.
    pub input_bytes: usize,
}

/// Errors that can occur while a stream is split.
#[derive(Debug)]
pub(super) enum ChunkError {
    /// The stream cannot be read. Contains the system error and the number of lines read before it.
    Io(io::Error, u64),
    /// A line is longer than [`MAX_LINE`]. Contains the line number.
    LineTooLong(u64),
    /// The input ends within a quoted field. Contains the number of the line where the record starts.
    QuoteOpen(u64),
    /// The lines end in carriage returns only.
    CarriageReturns,
    /// The text has this encoding instead of UTF-8.
    Encoding(&'static str),
}

/// Maximum length of a line in bytes. It is enough for more than 10,000 features and far below any memory limit.
pub(super) const MAX_LINE: usize = 16 << 20;

/// Splits one input into chunks.
pub(super) struct LineChunker<R> {
    reader: R,
    target: usize,
    /// The delimiter if the input is a table; `None` otherwise. In a table, newlines within double quotes do not end
    /// a line.
    quoted: Option<u8>,
    /// Bytes that have been read, but are not part of a returned chunk yet.
    carry: Vec<u8>,
    next_line: u64,
    at_end: bool,
    lacks_newline: bool,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl<R: Read> LineChunker<R> {
    /// Creates a chunker whose chunks have about `target` bytes.
    pub(super) fn new(reader: R, target: usize) -> Self {
        LineChunker {
            reader,
            target,
            quoted: None,
            carry: Vec::new(),
            next_line: 1,
            at_end: false,
            lacks_newline: false,
        }
    }

    /// Sets the delimiter if the input is a table. From now on, newlines in quoted fields of the table do not end a
    /// line.
    pub(crate) fn set_quoted(&mut self, delimiter: Option<u8>) {
        self.quoted = delimiter;
    }

    /// Sets the approximate size in bytes of the following chunks.
    pub(crate) fn set_target(&mut self, target: usize) {
        self.target = target;
    }

    /// Checks whether the input ended without a newline.
    pub(crate) fn lacks_newline(&self) -> bool {
        self.lacks_newline
    }

    /// Takes back the chunk that was returned last, so that it is split again with different settings.
    pub(crate) fn put_back(&mut self, chunk: TextChunk) {
        let mut text = chunk.text;
        if self.lacks_newline && self.carry.is_empty() && self.at_end {
            text.pop();
            self.lacks_newline = false;
        }
        text.extend_from_slice(&self.carry);
        self.carry = text;
        self.next_line = chunk.first_line;
    }

    /// Returns the next chunk, or `None` at the end of the input.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<TextChunk>, ChunkError> {
        let mut text = Vec::with_capacity(self.target + self.carry.len() + 1);
        text.append(&mut self.carry);
        let mut wanted = self.target.max(1);
        let end = loop {
            self.fill(&mut text, wanted)?;
            if text.is_empty() {
                return Ok(None);
            }
            if self.next_line == 1
                && let Some(encoding) = encoding_of(&text)
            {
                return Err(ChunkError::Encoding(encoding));
            }
            let is_rest = self.at_end && text.len() <= wanted;
            if self.next_line == 1 && (is_rest || text.len() >= MAX_LINE) && has_only_carriage_returns(&text)
            {
                return Err(ChunkError::CarriageReturns);
            }
            // The last line of the input is complete even without a newline.
            if is_rest && !text.ends_with(b"\n") && !self.ends_within_quotes(&text) {
                self.lacks_newline = true;
                text.push(b'\n');
                break text.len();
            }
            if let Some(end) = self.last_line_end(&text[..wanted.min(text.len())]) {
                break end;
            }
            if is_rest {
                return Err(ChunkError::QuoteOpen(self.next_line));
            }
            if text.len().min(wanted) >= MAX_LINE {
                return Err(ChunkError::LineTooLong(self.next_line));
            }
            wanted *= 2;
        };
        self.carry = text.split_off(end);
        let mut input_bytes = end - usize::from(self.lacks_newline);
        let first_line = self.next_line;
        self.next_line += memchr::memchr_iter(b'\n', &text).count() as u64;
        if first_line == 1 && text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
            input_bytes -= BYTE_ORDER_MARK.len();
        }
        // A chunk that grew beyond its target may contain a line that is too long.
        if text.len() > MAX_LINE && text.len() > self.target && self.longest_line(&text) > MAX_LINE {
            return Err(ChunkError::LineTooLong(first_line));
        }
        Ok(Some(TextChunk { text, first_line, input_bytes }))
    }

    fn longest_line(&self, text: &[u8]) -> usize {
        text.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap_or(0)
    }

    /// Reads until `text` has `wanted` bytes or the input ends.
    fn fill(&mut self, text: &mut Vec<u8>, wanted: usize) -> Result<(), ChunkError> {
        let missing = wanted.saturating_sub(text.len());
        if missing == 0 || self.at_end {
            return Ok(());
        }
        match (&mut self.reader).take(missing as u64).read_to_end(text) {
            Ok(count) => {
                self.at_end = count < missing;
                Ok(())
            }
            Err(error) => {
                let lines = self.next_line - 1 + memchr::memchr_iter(b'\n', text).count() as u64;
                Err(ChunkError::Io(error, lines))
            }
        }
    }

    /// Returns the offset after the last newline that ends a line.
    fn last_line_end(&self, text: &[u8]) -> Option<usize> {
        match self.quoted {
            Some(delimiter) if memchr::memchr(b'"', text).is_some() => scan_quotes(text, delimiter).1,
            _ => memchr::memrchr(b'\n', text).map(|at| at + 1),
        }
    }

    fn ends_within_quotes(&self, text: &[u8]) -> bool {
        self.quoted.is_some_and(|delimiter| scan_quotes(text, delimiter).0)
    }
}

/// Scans text that starts at the beginning of a line. Returns whether the text ends within quotes, and the offset
/// after the last newline outside quotes. Only quotes around a whole field count. Elsewhere, as in `5" disk`, they
/// are ordinary characters.
fn scan_quotes(text: &[u8], delimiter: u8) -> (bool, Option<usize>) {
    let (mut inside, mut end, mut closed_at) = (false, None, usize::MAX);
    for at in memchr::memchr2_iter(b'"', b'\n', text) {
        if text[at] == b'\n' {
            if !inside {
                end = Some(at + 1);
            }
        } else if inside {
            inside = false;
            closed_at = at;
        } else {
            let starts_field = at == 0 || text[at - 1] == delimiter || text[at - 1] == b'\n';
            // A doubled quote within a quoted field closes and reopens it.
            inside = starts_field || closed_at.wrapping_add(1) == at;
        }
    }
    (inside, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reader that returns its bytes in small, uneven portions, like a pipe.
    struct SlowReader<'a>(&'a [u8], usize);

    impl Read for SlowReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1 * 31 % 17 + 1;
            let count = self.1.min(buffer.len()).min(self.0.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn cut(text: &[u8], target: usize, quoted: bool) -> Vec<TextChunk> {
        let mut chunker = LineChunker::new(SlowReader(text, 3), target);
        chunker.set_quoted(quoted.then_some(b','));
        std::iter::from_fn(|| chunker.next_chunk().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn chunks_are_the_text_split_at_line_ends(text in "[a,\"\n]{0,80}", target in 1usize..40) {
            for quoted in [false, true] {
                if quoted && scan_quotes(text.as_bytes(), b',').0 {
                    continue;
                }
                let chunks = cut(text.as_bytes(), target, quoted);
                let mut joined: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.text.clone()).collect();
                let mut line = 1;
                for chunk in &chunks {
                    prop_assert_eq!(chunk.first_line, line);
                    line += chunk.text.iter().filter(|byte| **byte == b'\n').count() as u64;
                    prop_assert!(!quoted || !scan_quotes(&chunk.text, b',').0);
                }
                prop_assert_eq!(chunks.iter().map(|chunk| chunk.input_bytes).sum::<usize>(), text.len());
                if joined.len() > text.len() {
                    prop_assert_eq!(joined.pop(), Some(b'\n'));
                }
                prop_assert_eq!(joined, text.as_bytes());
            }
        }
    }

    #[test]
    fn quotes_only_count_around_fields() {
        for (text, expected) in [
            ("a,5\" disk\n", (false, Some(10))),
            ("a,\"x\ny\"\n", (false, Some(8))),
            ("a,\"say \"\"x\n", (true, None)),
            ("a\n\"b", (true, Some(2))),
            ("\"a\"\n", (false, Some(4))),
        ] {
            assert_eq!(scan_quotes(text.as_bytes(), b','), expected, "{text:?}");
        }
    }

    #[test]
    fn a_small_input_is_one_chunk() {
        for text in ["a\nb", "a\nb\n", "b", "a,\"x\ny\"\nb"] {
            for quoted in [false, true] {
                let chunks = cut(text.as_bytes(), 100, quoted);
                assert_eq!(chunks.len(), 1, "{text:?}");
                assert_eq!(chunks[0].text, format!("{}\n", text.trim_end()).as_bytes());
            }
        }
    }

    #[test]
    fn a_chunk_put_back_is_returned_again() {
        for text in [&b"a\nb\nc"[..], b"a\n", b"a"] {
            let mut chunker = LineChunker::new(text, 2);
            let first = chunker.next_chunk().unwrap().unwrap();
            chunker.put_back(first.clone());
            assert_eq!(chunker.next_chunk().unwrap().unwrap(), first);
        }
    }

    #[test]
    fn a_byte_order_mark_and_a_missing_newline_are_handled() {
        let mut chunker = LineChunker::new(&b"\xEF\xBB\xBFa"[..], 100);
        assert_eq!(chunker.next_chunk().unwrap().unwrap().text, b"a\n");
        assert!(chunker.lacks_newline());
    }

    #[test]
    fn an_endless_line_is_rejected_in_bounded_memory() {
        let mut chunker = LineChunker::new(io::repeat(b'x'), 1 << 20);
        assert!(matches!(chunker.next_chunk(), Err(ChunkError::LineTooLong(1))));
    }
}
