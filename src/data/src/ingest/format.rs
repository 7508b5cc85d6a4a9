//! Which format an input is in, told by its first lines.

use super::decode::delimited::{for_each_record, number_or_truth};
use super::decode::{Lines, is_blank};
use super::number::Number;
use super::roles::{ColumnRole, Roles};

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

/// The delimiter of the first data line of a table.
pub fn delimiter_of_text(text: &[u8]) -> u8 {
    first_line(text).and_then(delimiter_of).unwrap_or(b',')
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

/// Finds columns of words: features with values in these lines of which none is a number. One
/// that has both is left a feature, so that its first word is reported.
pub fn find_categories(lines: Lines<'_>, delimiter: u8, header: bool, roles: &mut Roles) {
    let mut seen = vec![(0u64, 0u64); roles.columns.len()]; // values, of them numbers
    let mut skip = header;
    let _ = for_each_record(lines, delimiter, |record| {
        if std::mem::take(&mut skip) || record.fields() != roles.columns.len() {
            return Ok(());
        }
        for (place, (values, numbers)) in seen.iter_mut().enumerate() {
            let field = record.field(place).trim_ascii();
            let number = if field.is_empty() { Number::Missing } else { number_or_truth(field) };
            *values += u64::from(number != Number::Missing);
            *numbers += u64::from(matches!(number, Number::Value(_) | Number::TooLarge | Number::Infinite));
        }
        Ok(())
    });
    for (role, (values, numbers)) in roles.columns.iter_mut().zip(seen) {
        if let ColumnRole::Feature(feature) = *role
            && values > 0
            && numbers == 0
        {
            *role = ColumnRole::Category(feature);
        }
    }
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

    #[test]
    fn words_make_a_category_and_a_mixture_does_not() {
        let text = b"qid,label,a,b,c\n1,0,x,1,\n1,1,y,z,\n";
        let lines = Lines { text, first_line: 1 };
        let names = first_record(lines, b',');
        assert_eq!(names, ["qid", "label", "a", "b", "c"]);
        let mut roles = Roles::by_names(&names, &Default::default(), "t").unwrap();
        find_categories(lines, b',', true, &mut roles);
        assert_eq!(
            roles.columns[2..],
            [ColumnRole::Category(0), ColumnRole::Feature(1), ColumnRole::Feature(2)]
        );
    }
}
