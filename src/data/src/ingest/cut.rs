//! A stream of bytes to chunks of whole lines, with the number of the first line of each.

use std::io::{self, Read};

/// Some whole lines of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChunk {
    /// The lines; the last byte is a newline, even if the input has none there.
    pub text: Vec<u8>,
    /// Number of the first line, counted from 1.
    pub first_line: u64,
    /// How many bytes of the input these are, without a byte order mark.
    pub input_bytes: usize,
}

/// What can go wrong with a stream.
#[derive(Debug)]
pub enum CutError {
    /// It cannot be read on; so many lines were read before.
    Io(io::Error, u64),
    /// A line is longer than [`MAX_LINE`]; its number.
    LineTooLong(u64),
    /// The input ends within a quoted field; the number of its last line.
    QuoteOpen(u64),
}

/// The longest line that is read: room for 10,000 features and more, far below a memory limit.
pub const MAX_LINE: usize = 16 << 20;

/// Cuts one input into chunks.
pub struct Cutter<R> {
    reader: R,
    target: usize,
    /// The delimiter of a table, in which a newline within double quotes belongs to the line.
    quoted: Option<u8>,
    /// What was read but not handed out.
    carry: Vec<u8>,
    next_line: u64,
    at_end: bool,
    lacks_newline: bool,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

impl<R: Read> Cutter<R> {
    /// Cuts at about every `target` bytes.
    pub fn new(reader: R, target: usize) -> Self {
        Cutter {
            reader,
            target,
            quoted: None,
            carry: Vec::new(),
            next_line: 1,
            at_end: false,
            lacks_newline: false,
        }
    }

    /// Treats newlines in quoted fields as part of a line from here on, in a table so delimited.
    pub fn set_quoted(&mut self, delimiter: Option<u8>) {
        self.quoted = delimiter;
    }

    /// Cuts at about every `target` bytes from here on.
    pub fn set_target(&mut self, target: usize) {
        self.target = target;
    }

    /// Whether the input ended without a newline.
    pub fn lacks_newline(&self) -> bool {
        self.lacks_newline
    }

    /// Gives a chunk back, to be cut again by other rules.
    pub fn put_back(&mut self, chunk: TextChunk) {
        let mut text = chunk.text;
        if self.lacks_newline && self.carry.is_empty() && self.at_end {
            text.pop();
            self.lacks_newline = false;
        }
        text.extend_from_slice(&self.carry);
        self.carry = text;
        self.next_line = chunk.first_line;
    }

    /// The next chunk; `None` at the end.
    pub fn next_chunk(&mut self) -> Result<Option<TextChunk>, CutError> {
        let mut text = Vec::with_capacity(self.target + self.carry.len() + 1);
        text.append(&mut self.carry);
        let mut wanted = self.target.max(1);
        let end = loop {
            self.fill(&mut text, wanted)?;
            if text.is_empty() {
                return Ok(None);
            }
            let is_rest = self.at_end && text.len() <= wanted;
            // The last line is one like any other, with a newline or without.
            if is_rest && !text.ends_with(b"\n") && !self.ends_within_quotes(&text) {
                self.lacks_newline = true;
                text.push(b'\n');
                break text.len();
            }
            if let Some(end) = self.last_line_end(&text[..wanted.min(text.len())]) {
                break end;
            }
            if is_rest {
                return Err(CutError::QuoteOpen(self.next_line));
            }
            if text.len().min(wanted) >= MAX_LINE {
                return Err(CutError::LineTooLong(self.next_line));
            }
            wanted *= 2;
        };
        self.carry = text.split_off(end);
        let mut input_bytes = end - usize::from(self.lacks_newline);
        let first_line = self.next_line;
        self.next_line += memchr::memchr_iter(b'\n', &text).count() as u64;
        if first_line == 1 && text.starts_with(MARK) {
            text.drain(..MARK.len());
            input_bytes -= MARK.len();
        }
        // One line that fills a whole chunk and more may still be too long.
        if text.len() > MAX_LINE && text.len() > self.target && self.longest_line(&text) > MAX_LINE {
            return Err(CutError::LineTooLong(first_line));
        }
        Ok(Some(TextChunk { text, first_line, input_bytes }))
    }

    fn longest_line(&self, text: &[u8]) -> usize {
        text.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap_or(0)
    }

    /// Reads until there are `wanted` bytes or no more.
    fn fill(&mut self, text: &mut Vec<u8>, wanted: usize) -> Result<(), CutError> {
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
                Err(CutError::Io(error, lines))
            }
        }
    }

    /// One past the last newline that ends a line.
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

/// Whether a text that starts at a line's start ends within quotes, and one past its last newline
/// outside of them. Quotes count where a field starts and until it ends; elsewhere (`5" disk`)
/// they are text.
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
            // A doubled quote within a quoted field closes it and opens it again.
            inside = starts_field || closed_at.wrapping_add(1) == at;
        }
    }
    (inside, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hands out its bytes in small, uneven portions, as a pipe does.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1 * 31 % 17 + 1;
            let count = self.1.min(buffer.len()).min(self.0.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn cut(text: &[u8], target: usize, quoted: bool) -> Vec<TextChunk> {
        let mut cutter = Cutter::new(Drip(text, 3), target);
        cutter.set_quoted(quoted.then_some(b','));
        std::iter::from_fn(|| cutter.next_chunk().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn chunks_are_the_text_cut_at_line_ends(text in "[a,\"\n]{0,80}", target in 1usize..40) {
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
    fn quotes_count_only_around_fields() {
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
    fn an_input_that_fits_is_one_chunk_with_its_last_line() {
        for text in ["a\nb", "a\nb\n", "b", "a,\"x\ny\"\nb"] {
            for quoted in [false, true] {
                let chunks = cut(text.as_bytes(), 100, quoted);
                assert_eq!(chunks.len(), 1, "{text:?}");
                assert_eq!(chunks[0].text, format!("{}\n", text.trim_end()).as_bytes());
            }
        }
    }

    #[test]
    fn a_chunk_put_back_comes_again() {
        for text in [&b"a\nb\nc"[..], b"a\n", b"a"] {
            let mut cutter = Cutter::new(text, 2);
            let first = cutter.next_chunk().unwrap().unwrap();
            cutter.put_back(first.clone());
            assert_eq!(cutter.next_chunk().unwrap().unwrap(), first);
        }
    }

    #[test]
    fn a_byte_order_mark_and_a_missing_newline_are_seen_through() {
        let mut cutter = Cutter::new(&b"\xEF\xBB\xBFa"[..], 100);
        assert_eq!(cutter.next_chunk().unwrap().unwrap().text, b"a\n");
        assert!(cutter.lacks_newline());
    }

    #[test]
    fn a_line_without_end_is_refused_in_bounded_memory() {
        let mut cutter = Cutter::new(io::repeat(b'x'), 1 << 20);
        assert!(matches!(cutter.next_chunk(), Err(CutError::LineTooLong(1))));
    }
}
