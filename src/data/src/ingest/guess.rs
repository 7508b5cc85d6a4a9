//! What the columns of a delimited table hold, judged by its first lines: numbers or words, and which
//! decimal mark the numbers have.

use super::decode::Lines;
use super::decode::delimited::{for_each_record, number_or_truth};
use super::number::{Number, with_point};
use super::roles::{ColumnRole, Roles};
use planetree_base::error::{Error, Result};

/// What was found.
#[derive(Debug, PartialEq)]
pub struct Guess {
    /// For each column, whether it was taken for words because of what is in it.
    pub words: Vec<bool>,
    /// Whether numbers have decimal commas.
    pub decimal_comma: bool,
    /// The columns, by name, in which that was seen.
    pub comma_columns: Vec<String>,
}

/// What the values of one column look like.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Values that are not missing.
    values: u64,
    /// Numbers with a point, or without any mark.
    numbers: u64,
    /// Of these, numbers with a point.
    points: u64,
    /// Numbers with a decimal comma.
    commas: u64,
    /// Digits with commas that are no decimal numbers: `1,234,567`, `1.234,5`.
    grouped: u64,
    /// The first value with a comma.
    example: String,
}

/// Looks at the first lines of a table. Features with values of which none is a number become columns
/// of words; one that has both is left a feature, so that its first word is reported. `decimal_comma`
/// says that numbers have decimal commas; without, that is found out where fields are separated by
/// semicolons, the custom of countries that write decimal commas.
pub fn guess(
    lines: Lines<'_>,
    table: &TableForm<'_>,
    roles: &mut Roles,
    decimal_comma: bool,
) -> Result<Guess> {
    let seen = look(lines, table, roles);
    let is_number =
        |role: &ColumnRole| matches!(role, ColumnRole::Feature(_) | ColumnRole::Label | ColumnRole::Weight);
    let has_commas =
        |seen: &Seen| seen.commas > 0 && seen.numbers + seen.commas == seen.values && seen.points == 0;
    let columns = || roles.columns.iter().zip(&seen).enumerate();
    let with_commas: Vec<usize> = columns()
        .filter(|(_, (role, seen))| is_number(role) && has_commas(seen))
        .map(|(place, _)| place)
        .collect();
    let found = table.delimiter == b';' && !with_commas.is_empty();
    let decimal_comma = decimal_comma || found;
    let mut words = vec![false; roles.columns.len()];
    for (place, seen) in seen.iter().enumerate() {
        let ColumnRole::Feature(feature) = roles.columns[place] else { continue };
        let numbers = if decimal_comma { seen.numbers + seen.commas } else { seen.numbers };
        if seen.values == 0 || numbers > 0 {
            continue;
        }
        if seen.commas + seen.grouped > 0 {
            return Err(ambiguous(table.file, &roles.features[feature as usize], &seen.example));
        }
        roles.columns[place] = ColumnRole::Category(feature);
        words[place] = true;
    }
    let comma_columns = if decimal_comma {
        with_commas.iter().map(|place| roles.name_of(*place)).collect()
    } else {
        Vec::new()
    };
    Ok(Guess { words, decimal_comma, comma_columns })
}

/// How a table is written.
pub struct TableForm<'a> {
    /// What separates fields.
    pub delimiter: u8,
    /// Whether line 1 holds names.
    pub header: bool,
    /// For messages.
    pub file: &'a str,
}

fn look(lines: Lines<'_>, table: &TableForm<'_>, roles: &Roles) -> Vec<Seen> {
    let mut seen = vec![Seen::default(); roles.columns.len()];
    let mut skip = table.header;
    let _ = for_each_record(lines, table.delimiter, |record| {
        if std::mem::take(&mut skip) || record.fields() != roles.columns.len() {
            return Ok(());
        }
        for (place, seen) in seen.iter_mut().enumerate() {
            seen.add(record.field(place).trim_ascii());
        }
        Ok(())
    });
    seen
}

impl Seen {
    fn add(&mut self, field: &[u8]) {
        if field.is_empty() {
            return;
        }
        let is_number = |number| matches!(number, Number::Value(_) | Number::TooLarge | Number::Infinite);
        let number = number_or_truth(field);
        self.values += u64::from(number != Number::Missing);
        if is_number(number) {
            self.numbers += 1;
            self.points += u64::from(field.contains(&b'.'));
        } else if field.contains(&b',') {
            let is_mark = |byte: &u8| matches!(byte, b'0'..=b'9' | b',' | b'.' | b'+' | b'-' | b'e' | b'E');
            if is_number(with_point(field, number_or_truth)) {
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
        format_args!("numbers with commas, such as {example:?}: decimal marks or thousands separators?"),
        format_args!(
            "pass --decimal-comma if 0,5 means 0.5; write numbers without thousands separators; or pass \
             --categorical {column} to take them as words"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::format::first_record;

    fn guessed(text: &str, delimiter: u8, decimal_comma: bool) -> Result<(Guess, Roles)> {
        let lines = Lines { text: text.as_bytes(), first_line: 1 };
        let mut roles = Roles::by_names(&first_record(lines, delimiter), &Default::default(), "t").unwrap();
        let table = TableForm { delimiter, header: true, file: "t" };
        guess(lines, &table, &mut roles, decimal_comma).map(|guess| (guess, roles))
    }

    #[test]
    fn words_make_a_category_and_a_mixture_does_not() {
        let (guess, roles) = guessed("qid,label,a,b,c\n1,0,x,1,\n1,1,y,z,\n", b',', false).unwrap();
        assert_eq!(
            roles.columns[2..],
            [ColumnRole::Category(0), ColumnRole::Feature(1), ColumnRole::Feature(2)]
        );
        assert_eq!(guess.words, [false, false, true, false, false]);
    }

    #[test]
    fn commas_between_semicolons_are_decimal_marks() {
        let (guess, roles) = guessed("qid;label;a;b\n1;0;0,5;x\n1;1;2;1,y\n", b';', false).unwrap();
        assert!(guess.decimal_comma);
        assert_eq!(guess.comma_columns, ["a"]);
        assert_eq!(roles.columns[2..], [ColumnRole::Feature(0), ColumnRole::Category(1)]);
        // A column that has both marks decides nothing.
        assert!(!guessed("qid;label;a\n1;0;0,5\n1;1;0.5\n", b';', false).unwrap().0.decimal_comma);
    }

    #[test]
    fn elsewhere_commas_in_numbers_must_be_explained() {
        for text in ["qid\tlabel\ta\n1\t0\t0,5\n", "qid\tlabel\ta\n1\t0\t1,234,567\n"] {
            let problem = guessed(text, b'\t', false).unwrap_err().to_string();
            assert!(problem.contains("decimal marks or thousands separators?"), "{problem}");
        }
        assert!(guessed("qid\tlabel\ta\n1\t0\t0,5\n", b'\t', true).unwrap().0.decimal_comma);
        assert!(guessed("qid;label;a\n1;0;1.234,5\n", b';', false).is_err());
    }
}
