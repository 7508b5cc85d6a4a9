//! Decodes CSV, TSV and other delimited text. Every record is a row, and the role of a column determines how its
//! fields are read.

use super::super::number::{Number, any_number, parse_decimal_comma, short_decimal};
use super::super::roles::{ColumnRole, Roles};
use super::{Decoder, Lines, checked_label};
use crate::rows::BlockBuilder;
use crate::rows::fault::{Fault, FaultKind, quoted_token};
use csv_core::{ReadRecordResult, ReaderBuilder};
use std::collections::HashMap;

/// A decoder for delimited text.
#[derive(Debug, Clone)]
pub(crate) struct DelimitedDecoder {
    /// Roles of the columns.
    pub roles: Roles,
    /// The field delimiter.
    pub delimiter: u8,
    /// Whether the first line contains the column names.
    pub header: bool,
    /// For each column, whether it was detected as categorical from the first lines.
    pub guessed_categorical: Vec<bool>,
    /// Whether numbers have decimal commas.
    pub decimal_comma: bool,
    /// Whether to repair or skip faulty lines instead of stopping at the first fault.
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

/// One record of delimited text.
pub(crate) struct Record<'a> {
    line: u64,
    text: &'a [u8],
    ends: &'a [usize],
}

impl Record<'_> {
    /// Returns the number of fields.
    pub(crate) fn fields(&self) -> usize {
        self.ends.len()
    }

    /// Returns the content of a field, without quotes. `place` is the index of the field, counted from 0.
    pub(crate) fn field(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.text[start..self.ends[place]]
    }

    fn fault(&self, kind: FaultKind, place: usize) -> Fault {
        // The column is approximate if a previous field is quoted, because the quotes are not counted.
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        Fault {
            kind,
            line: self.line,
            column: (start + place + 1) as u64,
            found: quoted_token(self.field(place)),
        }
    }
}

/// Calls `each` for every record. Stops at the first error.
pub(crate) fn for_each_record(
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
    let mut unread = 0; // number of newlines in the part of the current record that has been read
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
            // At the end of the input, the next call passes an empty slice, which ends the last record.
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
    /// Returns the fault of the first record, if it is an error.
    pub(crate) fn fault_of_first_record(&self, lines: Lines<'_>) -> Option<Fault> {
        if self.lenient {
            return None;
        }
        let mut found = None;
        // One record is enough, so any error stops the reader.
        let _ = for_each_record(lines, self.delimiter, |record| {
            let (mut builder, mut categories) = (BlockBuilder::default(), CategoryCoder::default());
            found = self.row(&record, &mut builder, &mut categories).err();
            Err(Fault { kind: FaultKind::FieldCount, line: record.line, column: 1, found: String::new() })
        });
        found
    }

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
                // Blanks at the start and end of an id are part of the id.
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
        // Categories are added last, so that a skipped row does not add a category.
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

    /// Parses a label. An empty label means unjudged and gives NaN, like a null in a Parquet table.
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

    /// Parses the value of a numeric feature. Returns NaN for a missing value.
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

    /// Parses a number with the decimal mark of this table, based on a parser for numbers with decimal points.
    fn read(&self, field: &[u8], parse: fn(&[u8]) -> Number) -> Number {
        if self.decimal_comma { parse_decimal_comma(field, parse) } else { parse(field) }
    }

    /// Checks whether a field is a number although its column was detected as categorical. Such a number is a fault,
    /// because otherwise the first lines of the file would silently turn later numbers into categories.
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

/// Parses a number. `true` and `false` in any case are read as 1 and 0.
pub(crate) fn number_or_boolean(field: &[u8]) -> Number {
    match field {
        _ if field.eq_ignore_ascii_case(b"true") => Number::Value(1.0),
        _ if field.eq_ignore_ascii_case(b"false") => Number::Value(0.0),
        _ => any_number(field),
    }
}

fn text_of<'a>(record: &Record<'_>, place: usize, field: &'a [u8]) -> Result<&'a str, Fault> {
    std::str::from_utf8(field).map_err(|_| record.fault(FaultKind::NotText, place))
}

/// Assigns codes to the categories of each feature, in order of appearance within a chunk.
#[derive(Debug, Default)]
pub(crate) struct CategoryCoder {
    codes: HashMap<u32, HashMap<String, usize>>,
}

impl CategoryCoder {
    /// Returns the code of a category, which is the next number if the category is new.
    pub(crate) fn code(&mut self, feature: u32, word: &str) -> f32 {
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

    /// Returns the categories of every categorical feature, in the order of their codes.
    pub(crate) fn finish(self) -> Vec<(u32, Vec<String>)> {
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
