//! Detects the format of text inputs from their first lines.

use super::decode::delimited::for_each_record;
use super::decode::{Lines, is_blank};

/// Supported input formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// Text in the formats of LETOR, SVMlight, Yahoo or LightGBM.
    Letor,
    /// Text with columns that are separated by commas, tabs or other characters.
    Csv,
    /// Parquet files.
    Parquet,
}

impl InputFormat {
    /// Returns the name of the format in manifests and messages.
    pub fn name(self) -> &'static str {
        match self {
            InputFormat::Letor => "letor",
            InputFormat::Csv => "csv",
            InputFormat::Parquet => "parquet",
        }
    }

    /// Detects the format from the first line that is neither blank nor a comment. In LETOR text, the second token
    /// starts with `qid:`, or with a feature index and a colon. Other text that contains delimiters is a table.
    pub fn of_text(text: &[u8]) -> InputFormat {
        let Some(line) = first_line(text) else { return InputFormat::Letor };
        let mut tokens = line.split(|byte| is_blank(*byte)).filter(|token| !token.is_empty());
        let second = tokens.nth(1).unwrap_or_default();
        let index = memchr::memchr(b':', second).map_or(&second[..0], |colon| &second[..colon]);
        let is_letor = index == b"qid" || (!index.is_empty() && index.iter().all(u8::is_ascii_digit));
        let printable = line.iter().all(|byte| *byte >= b' ' || *byte == b'\t' || *byte == b'\r');
        if is_letor || delimiter_of(line).is_none() || !printable {
            InputFormat::Letor
        } else {
            InputFormat::Csv
        }
    }
}

/// Returns the first line that is neither blank nor a comment.
fn first_line(text: &[u8]) -> Option<&[u8]> {
    text.split(|byte| *byte == b'\n').find(|line| {
        let line = line.trim_ascii();
        !line.is_empty() && line[0] != b'#'
    })
}

/// Checks whether the first data line of LETOR text has a query id.
pub(crate) fn has_query_id(text: &[u8]) -> bool {
    let Some(line) = first_line(text) else { return true };
    let mut tokens = line.split(|byte| is_blank(*byte)).filter(|token| !token.is_empty());
    tokens.nth(1).is_some_and(|token| token.starts_with(b"qid:"))
}

/// Checks whether the first data line of LETOR text begins with its query id, without a label.
pub(crate) fn lacks_labels(text: &[u8]) -> bool {
    first_line(text).is_some_and(|line| line.trim_ascii_start().starts_with(b"qid:"))
}

/// Returns the most frequent of the usual delimiters in a line, or `None` if the line contains none.
pub(crate) fn delimiter_of(line: &[u8]) -> Option<u8> {
    let count = |delimiter: u8| memchr::memchr_iter(delimiter, line).count();
    let best = [b'\t', b',', b';', b'|'].into_iter().rev().max_by_key(|delimiter| count(*delimiter))?;
    (count(best) > 0).then_some(best)
}

/// Returns the most likely delimiter of a table, based on its first data line. If commas are decimal marks, any other
/// delimiter takes precedence.
pub(crate) fn delimiter_of_text(text: &[u8], decimal_comma: bool) -> u8 {
    let Some(line) = first_line(text) else { return b',' };
    let without_commas = || line.iter().copied().filter(|byte| *byte != b',').collect::<Vec<u8>>();
    let other = if decimal_comma { delimiter_of(&without_commas()) } else { None };
    other.or_else(|| delimiter_of(line)).unwrap_or(b',')
}

/// Returns the fields of the first record, without surrounding blanks.
pub(crate) fn first_record(lines: Lines<'_>, delimiter: u8) -> Vec<String> {
    let mut names = Vec::new();
    let stop = crate::rows::fault::Fault {
        kind: crate::rows::fault::FaultKind::FieldCount,
        line: 0,
        column: 0,
        found: String::new(),
    };
    let _ = for_each_record(lines, delimiter, |record| {
        names = (0..record.fields())
            .map(|field| String::from_utf8_lossy(record.field(field).trim_ascii()).into_owned())
            .collect();
        Err(stop.clone()) // one record is enough
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_detected_from_the_first_data_line() {
        for (text, format) in [
            ("2 qid:1 1:0.5\n", InputFormat::Letor),
            ("# comment, with, commas\n\n2\tqid:1\t1:0.5\n", InputFormat::Letor),
            ("2 1:0.5 7:1\n", InputFormat::Letor),
            ("1\n", InputFormat::Letor),
            ("", InputFormat::Letor),
            ("GROUP,LABEL,a\nG1,0,1\n", InputFormat::Csv),
            ("0.01\t0\t0.14\thttp://a/b\t5\n", InputFormat::Csv),
            ("qid;label;x\n", InputFormat::Csv),
            ("\u{0}\u{1},,,\n", InputFormat::Letor),
        ] {
            assert_eq!(InputFormat::of_text(text.as_bytes()), format, "{text:?}");
        }
    }
}
