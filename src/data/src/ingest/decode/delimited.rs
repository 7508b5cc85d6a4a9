//! Decoding CSV and TSV: one row per record, columns by role.

use super::super::number::{Number, any_number, parse_decimal_comma, short_decimal};
use super::super::roles::{ColumnRole, Roles};
use super::{Decoder, Lines, checked_label};
use crate::rows::BlockBuilder;
use crate::rows::fault::{Fault, FaultKind, quoted_token};
use csv_core::{ReadRecordResult, ReaderBuilder};
use std::collections::HashMap;

/// Decoder for delimited text.
#[derive(Debug, Clone)]
pub struct DelimitedDecoder {
    /// Roles of the columns.
    pub roles: Roles,
    /// The field delimiter.
    pub delimiter: u8,
    /// Whether the first line has the column names.
    pub header: bool,
    /// For each column, whether it was detected as categorical from the first lines.
    pub guessed_categorical: Vec<bool>,
    /// Whether numbers have decimal commas.
    pub decimal_comma: bool,
    /// Repair or skip faulty lines instead of stopping.
    pub lenient: bool,
}

impl Decoder for DelimitedDecoder {
    fn decode(&self, lines: Lines<'_>, builder: &mut BlockBuilder) -> Result<(), Fault> {
        builder.at_least_width(self.roles.features.len() as u32);
        let mut categories = CategoryCoder::default();
        let mut skip = self.header && lines.first_line == 1;
        for_each_record(lines, self.delimiter, |record| {
            if std::mem::take(&mut skip) {
                return Ok(());
            }
            match self.row(&record, builder, &mut categories) {
                Err(fault) if self.lenient => {
                    builder.skip_row(fault.kind);
                    Ok(())
                }
                outcome => outcome,
            }
        })
        .inspect_err(|_| *builder = BlockBuilder::default())?;
        builder.set_categories(categories.finish());
        Ok(())
    }
}

/// A record of delimited text.
pub struct Record<'a> {
    line: u64,
    text: &'a [u8],
    ends: &'a [usize],
}

impl Record<'_> {
    /// Number of fields.
    pub fn fields(&self) -> usize {
        self.ends.len()
    }

    /// The content of a field, without quotes.
    pub fn field(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.text[start..self.ends[place]]
    }

    fn fault(&self, kind: FaultKind, place: usize) -> Fault {
        // Exact if no previous field of the record is quoted.
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        Fault {
            kind,
            line: self.line,
            column: (start + place + 1) as u64,
            found: quoted_token(self.field(place)),
        }
    }
}

/// Calls `each` for every record.
pub fn for_each_record(
    lines: Lines<'_>,
    delimiter: u8,
    mut each: impl FnMut(Record<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    let mut rest = lines.text;
    let (mut text, mut ends) = (vec![0; 1024], vec![0; 64]);
    let (mut text_used, mut ends_used) = (0, 0);
    // Lines are counted here because the CSV reader counts CRLF and blank lines differently.
    let newlines = |text: &[u8]| memchr::memchr_iter(b'\n', text).count() as u64;
    let mut line = lines.first_line;
    let mut unread = 0; // newlines within the current record
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
            // The input is exhausted: the next call passes an empty slice, which ends the last record.
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
    fn row(
        &self,
        record: &Record<'_>,
        builder: &mut BlockBuilder,
        categories: &mut CategoryCoder,
    ) -> Result<(), Fault> {
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
                // Ids are kept as written, including blanks.
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
                    if self.is_number_among_categories(place, field) {
                        self.repaired(record.fault(FaultKind::NumberAmongWords, place), builder)?;
                    }
                }
                ColumnRole::Ignored => {}
            }
        }
        // Categories last, so that a skipped row adds none.
        for (place, role) in self.roles.columns.iter().enumerate() {
            if let ColumnRole::Category(feature) = role {
                let field = record.field(place).trim_ascii();
                let missing = field.is_empty() || any_number(field) == Number::Missing;
                if missing || self.is_number_among_categories(place, field) {
                    builder.push_missing(*feature);
                } else {
                    builder.push_entry(*feature, categories.code(*feature, text_of(record, place, field)?));
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

    /// An empty label means unjudged, like a null in a Parquet table.
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

    /// Parses a number; NaN if it is missing.
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
        match self.read(field, number_or_boolean) {
            Number::Value(value) => Ok(value),
            Number::Missing => Ok(f32::NAN),
            Number::Infinite => {
                builder.repaired(FaultKind::ValueInfinite);
                Ok(f32::NAN)
            }
            Number::TooLarge => self.repaired(record.fault(FaultKind::ValueTooLarge, place), builder),
            Number::Malformed => {
                let kind = match number_or_boolean(field) {
                    Number::Value(_) => FaultKind::DecimalPoint,
                    _ if is_number(parse_decimal_comma(field, any_number)) => FaultKind::DecimalComma,
                    _ => FaultKind::ValueMalformed,
                };
                self.repaired(record.fault(kind, place), builder)
            }
        }
    }

    /// Parses a number with the decimal mark of this table.
    fn read(&self, field: &[u8], parse: fn(&[u8]) -> Number) -> Number {
        if self.decimal_comma { parse_decimal_comma(field, parse) } else { parse(field) }
    }

    /// Whether a field of a column that was detected as categorical is a number. The first lines must not
    /// decide how later numbers are read.
    fn is_number_among_categories(&self, place: usize, field: &[u8]) -> bool {
        self.guessed_categorical.get(place) == Some(&true) && is_number(self.read(field, number_or_boolean))
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

/// Parses a number; `true` and `false` are 1 and 0.
pub fn number_or_boolean(field: &[u8]) -> Number {
    match field {
        _ if field.eq_ignore_ascii_case(b"true") => Number::Value(1.0),
        _ if field.eq_ignore_ascii_case(b"false") => Number::Value(0.0),
        _ => any_number(field),
    }
}

fn text_of<'a>(record: &Record<'_>, place: usize, field: &'a [u8]) -> Result<&'a str, Fault> {
    std::str::from_utf8(field).map_err(|_| record.fault(FaultKind::NotText, place))
}

/// Codes of the categories of each feature, in order of appearance.
#[derive(Debug, Default)]
pub struct CategoryCoder {
    codes: HashMap<u32, HashMap<String, usize>>,
}

impl CategoryCoder {
    /// The code of a category.
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

    /// The categories of every feature, in the order of their codes.
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
