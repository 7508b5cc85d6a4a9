//! Which format an input is in, told by its first lines.

use super::decode::delimited::for_each_record;
use super::decode::{Lines, is_blank};

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// LETOR, SVMlight, Yahoo or LightGBM text
    Letor,
    /// Comma-, tab- or otherwise separated columns
    Csv,
    /// Parquet files
    Parquet,
}

impl Format {
    /// Its name in manifests and messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Letor => "letor",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }

    /// Looks at the first line that is neither blank nor a comment: LETOR text has `qid:` or
    /// `index:` in second place; what has separators instead is a table.
    pub fn of_text(text: &[u8]) -> Format {
        let Some(line) = first_line(text) else { return Format::Letor };
        let mut tokens = line.split(|byte| is_blank(*byte)).filter(|token| !token.is_empty());
        let second = tokens.nth(1).unwrap_or_default();
        let index = memchr::memchr(b':', second).map_or(&second[..0], |colon| &second[..colon]);
        let is_letor = index == b"qid" || (!index.is_empty() && index.iter().all(u8::is_ascii_digit));
        let printable = line.iter().all(|byte| *byte >= b' ' || *byte == b'\t' || *byte == b'\r');
        if is_letor || delimiter_of(line).is_none() || !printable { Format::Letor } else { Format::Csv }
    }
}

/// The first line that has data.
fn first_line(text: &[u8]) -> Option<&[u8]> {
    text.split(|byte| *byte == b'\n').find(|line| {
        let line = line.trim_ascii();
        !line.is_empty() && line[0] != b'#'
    })
}

/// Whether the first data line of LETOR text names its query.
pub fn names_query(text: &[u8]) -> bool {
    let Some(line) = first_line(text) else { return true };
    let mut tokens = line.split(|byte| is_blank(*byte)).filter(|token| !token.is_empty());
    tokens.nth(1).is_some_and(|token| token.starts_with(b"qid:"))
}

/// The commonest of the usual delimiters in a line.
pub fn delimiter_of(line: &[u8]) -> Option<u8> {
    let count = |delimiter: u8| memchr::memchr_iter(delimiter, line).count();
    let best = [b'\t', b',', b';', b'|'].into_iter().rev().max_by_key(|delimiter| count(*delimiter))?;
    (count(best) > 0).then_some(best)
}

/// The delimiter of the first data line of a table. A comma that is a decimal mark is none, if there is
/// another.
pub fn delimiter_of_text(text: &[u8], decimal_comma: bool) -> u8 {
    let Some(line) = first_line(text) else { return b',' };
    let without_commas = || line.iter().copied().filter(|byte| *byte != b',').collect::<Vec<u8>>();
    let other = if decimal_comma { delimiter_of(&without_commas()) } else { None };
    other.or_else(|| delimiter_of(line)).unwrap_or(b',')
}

/// The fields of the first record.
pub fn first_record(lines: Lines<'_>, delimiter: u8) -> Vec<String> {
    let mut names = Vec::new();
    let stop = crate::rows::fault::Fault {
        kind: crate::rows::fault::FaultKind::FieldCount,
        line: 0,
        column: 0,
        found: String::new(),
    };
    let _ = for_each_record(lines, delimiter, |record| {
        names = (0..record.fields())
            .map(|place| String::from_utf8_lossy(record.field(place).trim_ascii()).into_owned())
            .collect();
        Err(stop.clone()) // one record is enough
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_data_line_tells_the_format() {
        for (text, format) in [
            ("2 qid:1 1:0.5\n", Format::Letor),
            ("# comment, with, commas\n\n2\tqid:1\t1:0.5\n", Format::Letor),
            ("2 1:0.5 7:1\n", Format::Letor),
            ("1\n", Format::Letor),
            ("", Format::Letor),
            ("GROUP,LABEL,a\nG1,0,1\n", Format::Csv),
            ("0.01\t0\t0.14\thttp://a/b\t5\n", Format::Csv),
            ("qid;label;x\n", Format::Csv),
            ("\u{0}\u{1},,,\n", Format::Letor),
        ] {
            assert_eq!(Format::of_text(text.as_bytes()), format, "{text:?}");
        }
    }
}
