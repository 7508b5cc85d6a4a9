//! CSV and TSV: one row a record, columns by role.

use super::super::number::{Number, any_number, short_decimal, with_point};
use super::super::roles::{ColumnRole, Roles};
use super::{Decoder, Lines, checked_label};
use crate::rows::BlockBuilder;
use crate::rows::fault::{Fault, FaultKind, shown};
use csv_core::{ReadRecordResult, ReaderBuilder};
use std::collections::HashMap;

/// How to read delimited text.
#[derive(Debug, Clone)]
pub struct DelimitedDecoder {
    /// What the columns hold.
    pub roles: Roles,
    /// What separates fields.
    pub delimiter: u8,
    /// Whether line 1 holds names.
    pub header: bool,
    /// For each column, whether it was taken for words because of what is in its first lines.
    pub guessed_words: Vec<bool>,
    /// Whether numbers have decimal commas.
    pub decimal_comma: bool,
    /// Repair or skip faulty lines instead of stopping.
    pub lenient: bool,
}

impl Decoder for DelimitedDecoder {
    fn decode(&self, lines: Lines<'_>, builder: &mut BlockBuilder) -> Result<(), Fault> {
        builder.at_least_width(self.roles.features.len() as u32);
        let mut words = Words::default();
        let mut skip = self.header && lines.first_line == 1;
        for_each_record(lines, self.delimiter, |record| {
            if std::mem::take(&mut skip) {
                return Ok(());
            }
            match self.row(&record, builder, &mut words) {
                Err(fault) if self.lenient => {
                    builder.skip_row(fault.kind);
                    Ok(())
                }
                outcome => outcome,
            }
        })
        .inspect_err(|_| *builder = BlockBuilder::default())?;
        builder.set_categories(words.finish());
        Ok(())
    }
}

/// One record of a delimited text.
pub struct Record<'a> {
    line: u64,
    text: &'a [u8],
    ends: &'a [usize],
}

impl Record<'_> {
    /// How many fields it has.
    pub fn fields(&self) -> usize {
        self.ends.len()
    }

    /// A field, unquoted.
    pub fn field(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.text[start..self.ends[place]]
    }

    fn fault(&self, kind: FaultKind, place: usize) -> Fault {
        // Where the field starts if nothing before it is quoted.
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        Fault { kind, line: self.line, column: (start + place + 1) as u64, found: shown(self.field(place)) }
    }
}

/// Hands every record of some lines to `each`.
pub fn for_each_record(
    lines: Lines<'_>,
    delimiter: u8,
    mut each: impl FnMut(Record<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    let mut rest = lines.text;
    let (mut text, mut ends) = (vec![0; 1024], vec![0; 64]);
    let (mut text_used, mut ends_used) = (0, 0);
    // The reader would count lines differently for CRLF and blank lines.
    let newlines = |text: &[u8]| memchr::memchr_iter(b'\n', text).count() as u64;
    let mut line = lines.first_line;
    let mut unread = 0; // newlines of the record so far
    let mut begun = false;
    loop {
        if !begun {
            let blank = rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            line += newlines(&rest[..blank]);
            rest = &rest[blank..];
            begun = true;
        }
        let (result, read, written, ended) =
            reader.read_record(rest, &mut text[text_used..], &mut ends[ends_used..]);
        let used = &rest[..read];
        rest = &rest[read..];
        text_used += written;
        ends_used += ended;
        if !matches!(result, ReadRecordResult::Record) {
            unread += newlines(used);
        }
        match result {
            ReadRecordResult::OutputFull => text.resize(text.len() * 2, 0),
            ReadRecordResult::OutputEndsFull => ends.resize(ends.len() * 2, 0),
            // No more input: an empty slice tells the reader so, and it ends the last record.
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::Record => {
                each(Record { line, text: &text[..text_used], ends: &ends[..ends_used] })?;
                (text_used, ends_used) = (0, 0);
                line += newlines(used) + std::mem::take(&mut unread);
                begun = false;
            }
            ReadRecordResult::End => return Ok(()),
        }
    }
}

impl DelimitedDecoder {
    fn row(&self, record: &Record<'_>, builder: &mut BlockBuilder, words: &mut Words) -> Result<(), Fault> {
        if record.fields() != self.roles.columns.len() {
            let found = format!("{} fields", record.fields());
            return Err(Fault { kind: FaultKind::FieldCount, line: record.line, column: 1, found });
        }
        let mut label = f32::NAN;
        let (mut document, mut weight, mut position) = (None, None, None);
        for (place, role) in self.roles.columns.iter().enumerate() {
            let written = record.field(place);
            let field = written.trim_ascii();
            match role {
                // Ids are kept as written, blanks and all.
                ColumnRole::Query => {
                    text_of(record, place, written)?;
                    if field.is_empty() {
                        return Err(record.fault(FaultKind::QueryEmpty, place));
                    }
                    builder.query(written, record.line);
                }
                ColumnRole::Label => label = self.label(record, place, field, builder)?,
                ColumnRole::Document => {
                    text_of(record, place, written)?;
                    document = (!field.is_empty()).then_some(written);
                }
                ColumnRole::Weight => {
                    weight = Some(match self.read(field, any_number) {
                        Number::Value(weight) => weight,
                        Number::Missing => f32::NAN,
                        _ if field.is_empty() => f32::NAN,
                        _ => return Err(record.fault(FaultKind::WeightMalformed, place)),
                    });
                }
                ColumnRole::Position => {
                    let text = text_of(record, place, field)?;
                    let missing = field.is_empty() || any_number(field) == Number::Missing;
                    position = Some(match text.parse::<i32>() {
                        Ok(position) => Some(position),
                        Err(_) if missing => None,
                        Err(_) => return Err(record.fault(FaultKind::PositionMalformed, place)),
                    });
                }
                ColumnRole::Feature(feature) => {
                    let value = self.number(record, place, field, builder)?;
                    if value.is_nan() {
                        builder.push_missing(*feature);
                    } else {
                        builder.push_entry(*feature, value);
                    }
                }
                ColumnRole::Category(_) => {
                    text_of(record, place, field)?;
                    if self.is_number_among_words(place, field) {
                        self.repaired(record.fault(FaultKind::NumberAmongWords, place), builder)?;
                    }
                }
                ColumnRole::Ignored => {}
            }
        }
        // Words last, so that a row that is left out leaves no word behind.
        for (place, role) in self.roles.columns.iter().enumerate() {
            if let ColumnRole::Category(feature) = role {
                let field = record.field(place).trim_ascii();
                let missing = field.is_empty() || any_number(field) == Number::Missing;
                if missing || self.is_number_among_words(place, field) {
                    builder.push_missing(*feature);
                } else {
                    builder.push_entry(*feature, words.code(*feature, text_of(record, place, field)?));
                }
            }
        }
        builder.finish_row(label, document);
        if let Some(weight) = weight {
            builder.weight(weight);
        }
        if let Some(position) = position {
            builder.position(position);
        }
        Ok(())
    }

    /// An empty label is an unjudged document, as a null is in a table.
    fn label(
        &self,
        record: &Record<'_>,
        place: usize,
        field: &[u8],
        builder: &mut BlockBuilder,
    ) -> Result<f32, Fault> {
        if field.is_empty() {
            return Ok(f32::NAN);
        }
        let value = match self.read(field, any_number) {
            Number::Value(value) => value,
            Number::Malformed => return Err(record.fault(FaultKind::LabelMalformed, place)),
            _ => return Err(record.fault(FaultKind::LabelNotFinite, place)),
        };
        checked_label(value).or_else(|kind| self.repaired(record.fault(kind, place), builder))
    }

    /// A number; NaN if it is missing.
    fn number(
        &self,
        record: &Record<'_>,
        place: usize,
        field: &[u8],
        builder: &mut BlockBuilder,
    ) -> Result<f32, Fault> {
        if !self.decimal_comma
            && let Some((value, end)) = short_decimal(field, 0)
            && end == field.len()
        {
            return Ok(value);
        }
        if field.is_empty() {
            return Ok(f32::NAN);
        }
        match self.read(field, number_or_truth) {
            Number::Value(value) => Ok(value),
            Number::Missing => Ok(f32::NAN),
            Number::Infinite => {
                builder.repaired(FaultKind::ValueInfinite);
                Ok(f32::NAN)
            }
            Number::TooLarge => self.repaired(record.fault(FaultKind::ValueTooLarge, place), builder),
            Number::Malformed => {
                let kind = match number_or_truth(field) {
                    Number::Value(_) => FaultKind::DecimalPoint,
                    _ if is_number(with_point(field, any_number)) => FaultKind::DecimalComma,
                    _ => FaultKind::ValueMalformed,
                };
                self.repaired(record.fault(kind, place), builder)
            }
        }
    }

    /// Reads a number with the decimal mark of this table.
    fn read(&self, field: &[u8], parse: fn(&[u8]) -> Number) -> Number {
        if self.decimal_comma { with_point(field, parse) } else { parse(field) }
    }

    /// Whether a field of a column that was taken for words is a number after all: what is in the first
    /// lines must not decide on those that follow.
    fn is_number_among_words(&self, place: usize, field: &[u8]) -> bool {
        self.guessed_words.get(place) == Some(&true) && is_number(self.read(field, number_or_truth))
    }

    fn repaired(&self, fault: Fault, builder: &mut BlockBuilder) -> Result<f32, Fault> {
        if self.lenient {
            builder.repaired(fault.kind);
            return Ok(f32::NAN);
        }
        Err(fault)
    }
}

fn is_number(number: Number) -> bool {
    matches!(number, Number::Value(_) | Number::TooLarge | Number::Infinite)
}

/// A number, or `true` and `false` as 1 and 0.
pub fn number_or_truth(field: &[u8]) -> Number {
    match field {
        _ if field.eq_ignore_ascii_case(b"true") => Number::Value(1.0),
        _ if field.eq_ignore_ascii_case(b"false") => Number::Value(0.0),
        _ => any_number(field),
    }
}

fn text_of<'a>(record: &Record<'_>, place: usize, field: &'a [u8]) -> Result<&'a str, Fault> {
    std::str::from_utf8(field).map_err(|_| record.fault(FaultKind::NotText, place))
}

/// The words met in columns of categories, in order of appearance.
#[derive(Debug, Default)]
pub struct Words {
    codes: HashMap<u32, HashMap<String, usize>>,
}

impl Words {
    /// The code of a word in a column.
    pub fn code(&mut self, feature: u32, word: &str) -> f32 {
        let codes = self.codes.entry(feature).or_default();
        let code = match codes.get(word) {
            Some(code) => *code,
            None => {
                codes.insert(word.to_owned(), codes.len());
                codes.len() - 1
            }
        };
        code as f32
    }

    /// The words of every column, in the order of their codes.
    pub fn finish(self) -> Vec<(u32, Vec<String>)> {
        let mut columns: Vec<(u32, Vec<String>)> = self
            .codes
            .into_iter()
            .map(|(feature, codes)| {
                let mut words: Vec<(usize, String)> =
                    codes.into_iter().map(|(word, code)| (code, word)).collect();
                words.sort_unstable();
                (feature, words.into_iter().map(|(_, word)| word).collect())
            })
            .collect();
        columns.sort_unstable();
        columns
    }
}
