//! Decodes text in the formats of LETOR, SVMlight, Yahoo and LightGBM: `label qid:ID index:value ... #docid = ID
//! ...`.
//!
//! An ordinary line is read in one pass without allocation. Unusual tokens, such as exponents and `NULL`, are read by
//! slower code.

use super::super::number::{Number, any_number, index_and_colon, short_decimal};
use super::{Decoder, Lines, UNLABELLED, checked_label, is_blank};
use crate::rows::BlockBuilder;
use crate::rows::fault::{Fault, FaultKind, quoted_token};

/// A decoder for LETOR text.
#[derive(Debug, Clone)]
pub struct LetorDecoder {
    /// Index of the first feature: 0 or 1.
    pub index_base: u32,
    /// Maximum number of features.
    pub max_features: u32,
    /// Whether to repair or skip faulty lines instead of stopping at the first fault.
    pub lenient: bool,
    /// Whether lines have query ids (`qid:`). If not, a side file has the query sizes.
    pub query_in_line: bool,
    /// Whether lines begin with the query id, without a label.
    pub unlabelled: bool,
}

impl Decoder for LetorDecoder {
    fn decode(&self, lines: Lines<'_>, builder: &mut BlockBuilder) -> Result<(), Fault> {
        builder.reserve(lines.text.len());
        let mut reader = LineReader {
            text: lines.text,
            at: 0,
            line_start: 0,
            line: lines.first_line,
            decoder: self,
            builder,
        };
        while reader.at < reader.text.len() {
            reader.line_start = reader.at;
            if let Err(fault) = reader.read_line() {
                if !self.lenient {
                    *reader.builder = BlockBuilder::default();
                    return Err(fault);
                }
                reader.builder.skip_row(fault.kind);
            }
            reader.skip_line();
        }
        Ok(())
    }
}

struct LineReader<'a, 'b> {
    text: &'a [u8],
    at: usize,
    line_start: usize,
    line: u64,
    decoder: &'a LetorDecoder,
    builder: &'b mut BlockBuilder,
}

impl<'a> LineReader<'a, '_> {
    /// Reads the row of the current line, unless the line is blank or a comment. Leaves the position within the line
    /// or at its end.
    fn read_line(&mut self) -> Result<(), Fault> {
        self.skip_blanks();
        let start = self.at;
        if matches!(self.text[start], b'\n' | b'#') {
            return Ok(());
        }
        let label = self.label()?;
        if self.decoder.query_in_line {
            self.query()?;
        }
        self.entries()?;
        let document = self.document()?;
        let label = match checked_label(label) {
            Ok(label) => label,
            Err(kind) => self.repaired(kind, start, f32::NAN)?,
        };
        self.builder.finish_row(label, document);
        Ok(())
    }

    fn label(&mut self) -> Result<f32, Fault> {
        let start = self.at;
        if let Some((label, end)) = short_decimal(self.text, start)
            && ends_token(self.text[end])
        {
            self.at = end;
            return Ok(label);
        }
        // Files that are only to be scored may lack labels; a single line without one is a fault.
        if self.decoder.unlabelled && self.text[start..].starts_with(b"qid:") {
            return Ok(UNLABELLED);
        }
        let token = self.token();
        match any_number(token) {
            Number::Value(label) => Ok(label),
            Number::Malformed => Err(self.fault(text_or(FaultKind::LabelMalformed, token), start)),
            _ => Err(self.fault(FaultKind::LabelNotFinite, start)),
        }
    }

    fn query(&mut self) -> Result<(), Fault> {
        self.skip_blanks();
        let start = self.at;
        if !self.text[start..].starts_with(b"qid:") {
            let token = self.token();
            return Err(self.fault(text_or(FaultKind::QueryMissing, token), start));
        }
        // A query id may contain `#` and ends only at a blank or at the end of the line.
        let rest = &self.text[start..];
        let length = rest.iter().position(|byte| is_blank(*byte) || *byte == b'\n').unwrap_or(rest.len());
        self.at += length;
        let name = &rest[4..length];
        if name.is_empty() {
            return Err(self.fault(FaultKind::QueryEmpty, start));
        }
        if std::str::from_utf8(name).is_err() {
            return Err(self.fault(FaultKind::NotText, start));
        }
        self.builder.query(name, self.line);
        self.skip_blanks();
        Ok(())
    }

    /// Reads the features of the current line. Leaves the position at its newline or comment.
    #[inline(always)]
    fn entries(&mut self) -> Result<(), Fault> {
        let mut min_ascending = 0; // the smallest next index with which the indices remain in ascending order
        let mut ascending = true;
        loop {
            self.fast_entries(&mut min_ascending, &mut ascending);
            if is_blank(self.text[self.at]) {
                self.skip_blanks();
            } else if matches!(self.text[self.at], b'\n' | b'#') {
                break;
            } else {
                let index = self.slow_entry()?;
                ascending &= index >= min_ascending;
                min_ascending = index + 1;
            }
        }
        if ascending { Ok(()) } else { self.check_repeats() }
    }

    /// Reads as many plain entries such as `12:0.345` as possible. This is the fast path, which stops at the first
    /// token that is different.
    #[inline(always)]
    fn fast_entries(&mut self, min_ascending: &mut u32, ascending: &mut bool) {
        let (text, base, most) = (self.text, self.decoder.index_base, self.decoder.max_features);
        let (mut at, mut least, mut in_order) = (self.at, *min_ascending, true);
        let mut entries = self.builder.take_entries();
        while let Some((written, value_at)) = index_and_colon(text, at)
            && let Some((value, end)) = short_decimal(text, value_at)
            && ends_token(text[end])
            && written.wrapping_sub(base) < most
        {
            let index = written - base;
            entries.push((index, value));
            at = end + usize::from(is_blank(text[end]));
            in_order &= index >= least;
            least = index + 1;
        }
        self.builder.restore_entries(entries);
        self.at = at;
        *min_ascending = least;
        *ascending &= in_order;
    }

    /// Reads one entry in any notation and returns its feature index, counted from 0. This is the slow path.
    #[cold]
    fn slow_entry(&mut self) -> Result<u32, Fault> {
        let start = self.at;
        let token = self.token();
        let Some(colon) = memchr::memchr(b':', token) else {
            return Err(self.fault(text_or(FaultKind::ColonMissing, token), start));
        };
        let (digits, value) = (&token[..colon], &token[colon + 1..]);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(self.fault(text_or(FaultKind::IndexMalformed, token), start));
        }
        // The index consists of digits, so parsing fails only if it does not fit in 64 bits.
        let written = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<u64>().ok());
        let base = u64::from(self.decoder.index_base);
        let index = match written {
            Some(index) if index < base => return Err(self.fault(FaultKind::IndexZero, start)),
            Some(index) if index - base < u64::from(self.decoder.max_features) => (index - base) as u32,
            _ => return Err(self.fault(FaultKind::IndexTooLarge, start)),
        };
        let value_at = start + colon + 1;
        let value = match any_number(value) {
            Number::Value(value) => value,
            Number::Missing => f32::NAN,
            Number::Infinite => {
                self.builder.repaired(FaultKind::ValueInfinite);
                f32::NAN
            }
            Number::TooLarge => self.repaired(FaultKind::ValueTooLarge, value_at, f32::NAN)?,
            Number::Malformed if value.is_empty() => self.repaired(FaultKind::ValueEmpty, start, f32::NAN)?,
            Number::Malformed => self.repaired(FaultKind::ValueMalformed, value_at, f32::NAN)?,
        };
        if value.is_nan() {
            self.builder.push_missing(index);
        } else {
            self.builder.push_entry(index, value);
        }
        Ok(index)
    }

    /// Checks that no feature index occurs twice in a line whose indices are not in ascending order. If lenient,
    /// keeps the last value of each repeated index.
    #[cold]
    fn check_repeats(&mut self) -> Result<(), Fault> {
        let mut entries = self.builder.open_row().to_vec();
        // The sort is stable, so entries with the same index stay in the order of the line.
        entries.sort_by_key(|(index, _)| *index);
        let Some(repeat) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) else {
            return Ok(());
        };
        let place = self.second_occurrence(repeat[0].0 + self.decoder.index_base);
        self.repaired(FaultKind::IndexRepeated, place, ())?;
        let last_of_each = entries
            .iter()
            .enumerate()
            .filter(|(place, (index, _))| entries.get(place + 1).is_none_or(|next| next.0 != *index));
        self.builder.replace_open_row(last_of_each.map(|(_, entry)| *entry));
        Ok(())
    }

    /// Returns the offset of the second occurrence of a feature index in the current line.
    fn second_occurrence(&self, index: u32) -> usize {
        let line = &self.text[self.line_start..self.at];
        let mut token_start = self.line_start;
        let mut seen = 0;
        for token in line.split(|byte| is_blank(*byte)) {
            let digits = memchr::memchr(b':', token).map_or(&token[..0], |colon| &token[..colon]);
            seen += usize::from(std::str::from_utf8(digits).is_ok_and(|text| text.parse() == Ok(index)));
            if seen == 2 {
                break;
            }
            token_start += token.len() + 1;
        }
        token_start
    }

    /// Reads the document id from the comment of the current line, which is `#docid = ID ...` or a single word.
    fn document(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        if self.text[self.at] != b'#' {
            return Ok(None);
        }
        let start = self.at;
        let comment = &self.text[start + 1..];
        let length = memchr::memchr(b'\n', comment).unwrap_or(comment.len());
        let comment = comment[..length].trim_ascii();
        self.at += 1 + length;
        let named =
            comment.strip_prefix(b"docid").and_then(|rest| rest.trim_ascii_start().strip_prefix(b"="));
        let id = match named {
            Some(id) => {
                let id = id.trim_ascii_start();
                Some(&id[..id.iter().position(|byte| is_blank(*byte)).unwrap_or(id.len())])
            }
            None => Some(comment).filter(|word| !word.iter().any(|byte| is_blank(*byte))),
        };
        match id.filter(|id| !id.is_empty()) {
            Some(id) if std::str::from_utf8(id).is_err() => {
                self.at = start;
                Err(self.fault(FaultKind::NotText, start))
            }
            id => Ok(id),
        }
    }

    /// Reads the token at the current position and moves to its end.
    fn token(&mut self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| ends_token(*byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Counts the fault and returns `value` if the decoder is lenient. Otherwise fails.
    fn repaired<T>(&mut self, kind: FaultKind, place: usize, value: T) -> Result<T, Fault> {
        if self.decoder.lenient {
            self.builder.repaired(kind);
            return Ok(value);
        }
        Err(self.fault(kind, place))
    }

    #[cold]
    fn fault(&self, kind: FaultKind, place: usize) -> Fault {
        let rest = &self.text[place..];
        let length = rest.iter().position(|byte| ends_token(*byte)).unwrap_or(rest.len());
        Fault {
            kind,
            line: self.line,
            column: (place - self.line_start + 1) as u64,
            found: quoted_token(&rest[..length]),
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
        self.line += 1;
    }

    #[inline(always)]
    fn skip_blanks(&mut self) {
        while is_blank(self.text[self.at]) {
            self.at += 1;
        }
    }
}

/// Checks whether a byte ends a token.
#[inline(always)]
fn ends_token(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b'\n' | b'#')
}

/// Returns [`FaultKind::NotText`] if the token contains control characters or is not UTF-8, and otherwise `kind`.
fn text_or(kind: FaultKind, token: &[u8]) -> FaultKind {
    let control = token.iter().any(|byte| *byte < 0x20 || *byte == 0x7F);
    if control || std::str::from_utf8(token).is_err() { FaultKind::NotText } else { kind }
}

#[cfg(test)]
mod tests;
