//! Detects the column types and the decimal mark of a delimited table from its first lines.

use super::decode::Lines;
use super::decode::delimited::{for_each_record, number_or_boolean};
use super::number::{Number, parse_decimal_comma};
use super::roles::{ColumnRole, Roles};
use planetree_base::error::{Error, Result};

/// Detected properties of a table.
#[derive(Debug, PartialEq)]
pub(super) struct ColumnGuess {
    /// For each column, whether it was detected as categorical.
    pub categorical: Vec<bool>,
    /// Whether numbers have decimal commas.
    pub decimal_comma: bool,
    /// Names of the columns with decimal commas.
    pub comma_columns: Vec<String>,
}

/// Statistics of the values of one column: how many look like numbers, and in which notation.
#[derive(Debug, Clone, Default)]
struct ColumnProfile {
    /// Number of values that are not missing.
    values: u64,
    /// Number of values that are numbers with a decimal point or without a decimal mark.
    numbers: u64,
    /// Number of values that are numbers with a decimal point. They also count in `numbers`.
    points: u64,
    /// Number of values that are numbers with a decimal comma.
    commas: u64,
    /// Number of values that consist of digits and commas, but are not decimal numbers, such as `1,234,567` and
    /// `1.234,5`.
    grouped: u64,
    /// The first value that contains a comma, for messages.
    example: String,
}

/// Examines the first lines of a table and updates the roles of its columns. A feature becomes categorical if none of
/// its values is a number. A feature with both numbers and text remains numeric, so that its first text value is
/// reported as a fault. If `decimal_comma` is set, numbers have decimal commas. Otherwise, decimal commas are
/// detected only if fields are separated by semicolons, which is the convention in countries that use decimal commas.
pub(super) fn guess(
    lines: Lines<'_>,
    table: &TableDialect<'_>,
    roles: &mut Roles,
    decimal_comma: bool,
) -> Result<ColumnGuess> {
    let profiles = profile_columns(lines, table, roles);
    let is_number =
        |role: &ColumnRole| matches!(role, ColumnRole::Feature(_) | ColumnRole::Label | ColumnRole::Weight);
    let has_commas = |profile: &ColumnProfile| {
        profile.commas > 0 && profile.numbers + profile.commas == profile.values && profile.points == 0
    };
    let columns = || roles.columns.iter().zip(&profiles).enumerate();
    let with_commas: Vec<usize> = columns()
        .filter(|(_, (role, profile))| is_number(role) && has_commas(profile))
        .map(|(place, _)| place)
        .collect();
    let found = table.delimiter == b';' && !with_commas.is_empty();
    let decimal_comma = decimal_comma || found;
    let mut categorical = vec![false; roles.columns.len()];
    for (place, profile) in profiles.iter().enumerate() {
        let ColumnRole::Feature(feature) = roles.columns[place] else { continue };
        let numbers = if decimal_comma { profile.numbers + profile.commas } else { profile.numbers };
        if profile.values == 0 || numbers > 0 {
            continue;
        }
        if profile.commas + profile.grouped > 0 {
            return Err(ambiguous(table.file, &roles.features[feature as usize], &profile.example));
        }
        roles.columns[place] = ColumnRole::Category(feature);
        categorical[place] = true;
    }
    let comma_columns = if decimal_comma {
        with_commas.iter().map(|place| roles.name_of(*place)).collect()
    } else {
        Vec::new()
    };
    Ok(ColumnGuess { categorical, decimal_comma, comma_columns })
}

/// The dialect of a delimited table.
pub(super) struct TableDialect<'a> {
    /// The field delimiter.
    pub delimiter: u8,
    /// Whether the first line has the column names.
    pub header: bool,
    /// Name of the file, for messages.
    pub file: &'a str,
}

fn profile_columns(lines: Lines<'_>, table: &TableDialect<'_>, roles: &Roles) -> Vec<ColumnProfile> {
    let mut profiles = vec![ColumnProfile::default(); roles.columns.len()];
    let mut skip = table.header;
    let _ = for_each_record(lines, table.delimiter, |record| {
        if std::mem::take(&mut skip) || record.fields() != roles.columns.len() {
            return Ok(());
        }
        for (place, profile) in profiles.iter_mut().enumerate() {
            profile.add(record.field(place).trim_ascii());
        }
        Ok(())
    });
    profiles
}

impl ColumnProfile {
    fn add(&mut self, field: &[u8]) {
        if field.is_empty() {
            return;
        }
        let is_number = |number| matches!(number, Number::Value(_) | Number::TooLarge | Number::Infinite);
        let number = number_or_boolean(field);
        self.values += u64::from(number != Number::Missing);
        if is_number(number) {
            self.numbers += 1;
            self.points += u64::from(field.contains(&b'.'));
        } else if field.contains(&b',') {
            let is_mark = |byte: &u8| matches!(byte, b'0'..=b'9' | b',' | b'.' | b'+' | b'-' | b'e' | b'E');
            if is_number(parse_decimal_comma(field, number_or_boolean)) {
                self.commas += 1;
            } else if field.iter().all(is_mark) && field.iter().any(u8::is_ascii_digit) {
                self.grouped += 1;
            }
            if self.example.is_empty() {
                self.example = String::from_utf8_lossy(field).into_owned();
            }
        }
    }
}

fn ambiguous(file: &str, column: &str, example: &str) -> Error {
    Error::place(
        format_args!("{file}: column {column}"),
        format_args!(
            "ambiguous commas in numbers such as {example:?}: decimal marks or thousands separators?"
        ),
        format_args!(
            "pass --decimal-comma if 0,5 means 0.5; write numbers without thousands separators; or pass \
             --categorical {column} to treat them as categories"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::format::first_record;

    fn guessed(text: &str, delimiter: u8, decimal_comma: bool) -> Result<(ColumnGuess, Roles)> {
        let lines = Lines { text: text.as_bytes(), first_line: 1 };
        let mut roles = Roles::by_names(&first_record(lines, delimiter), &Default::default(), "t").unwrap();
        let table = TableDialect { delimiter, header: true, file: "t" };
        guess(lines, &table, &mut roles, decimal_comma).map(|guess| (guess, roles))
    }

    #[test]
    fn a_column_without_numbers_is_categorical() {
        let (guess, roles) = guessed("qid,label,a,b,c\n1,0,x,1,\n1,1,y,z,\n", b',', false).unwrap();
        assert_eq!(
            roles.columns[2..],
            [ColumnRole::Category(0), ColumnRole::Feature(1), ColumnRole::Feature(2)]
        );
        assert_eq!(guess.categorical, [false, false, true, false, false]);
    }

    #[test]
    fn commas_in_semicolon_separated_numbers_are_decimal_marks() {
        let (guess, roles) = guessed("qid;label;a;b\n1;0;0,5;x\n1;1;2;1,y\n", b';', false).unwrap();
        assert!(guess.decimal_comma);
        assert_eq!(guess.comma_columns, ["a"]);
        assert_eq!(roles.columns[2..], [ColumnRole::Feature(0), ColumnRole::Category(1)]);
        // A column with both decimal marks is not evidence for either of them.
        assert!(!guessed("qid;label;a\n1;0;0,5\n1;1;0.5\n", b';', false).unwrap().0.decimal_comma);
    }

    #[test]
    fn commas_in_other_tables_are_ambiguous() {
        for text in ["qid\tlabel\ta\n1\t0\t0,5\n", "qid\tlabel\ta\n1\t0\t1,234,567\n"] {
            let problem = guessed(text, b'\t', false).unwrap_err().to_string();
            assert!(problem.contains("decimal marks or thousands separators?"), "{problem}");
        }
        assert!(guessed("qid\tlabel\ta\n1\t0\t0,5\n", b'\t', true).unwrap().0.decimal_comma);
        assert!(guessed("qid;label;a\n1;0;1.234,5\n", b';', false).is_err());
    }
}
