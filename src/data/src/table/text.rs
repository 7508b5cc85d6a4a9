//! Formats rows as text: as JSON, or as comma- or tab-separated values with quotes according to RFC 4180. Numbers
//! have as many digits as are needed to read back the same number. In delimited text, NULL is an empty field, and an
//! empty string is `""`. In JSON, NULL and NaN are `null`.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::json::writer::{LineDelimited, Writer, WriterBuilder};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use planetree_base::storage::FileFormat;
use std::io::Write;

/// Number of rows that are formatted at a time.
const STEP_ROWS: usize = 1 << 13;

/// Formats rows as text incrementally: first the beginning of the file, then rows in order, then the end.
pub struct TextRows {
    form: TextLayout,
    /// Whether any rows have been written.
    has_rows: bool,
}

enum TextLayout {
    Delimited { separator: char, header: bool },
    Array,
    Lines,
}

impl TextRows {
    /// Creates a formatter for CSV, TSV, JSON or newline-delimited JSON. Returns `None` for other formats.
    pub fn new(format: FileFormat) -> Option<Self> {
        let form = match format {
            FileFormat::Csv => TextLayout::Delimited { separator: ',', header: true },
            FileFormat::Tsv => TextLayout::Delimited { separator: '\t', header: true },
            FileFormat::Json => TextLayout::Array,
            FileFormat::Ndjson => TextLayout::Lines,
            _ => return None,
        };
        Some(TextRows { form, has_rows: false })
    }

    /// Creates a formatter for delimited text with any separator, with or without a header.
    pub fn delimited(separator: char, header: bool) -> Self {
        TextRows { form: TextLayout::Delimited { separator, header }, has_rows: false }
    }

    /// Returns the text before the first row, such as the header.
    pub fn begin(&self, schema: &Schema) -> String {
        match &self.form {
            TextLayout::Delimited { separator, header: true } => {
                let names = schema.fields().iter().map(|field| quoted(field.name(), *separator));
                names.collect::<Vec<_>>().join(&separator.to_string()) + "\n"
            }
            TextLayout::Array => "[".to_owned(),
            _ => String::new(),
        }
    }

    /// Writes rows as text to `output`.
    pub fn rows(&mut self, batch: &RecordBatch, output: &mut dyn Write) -> Result<(), ArrowError> {
        for start in (0..batch.num_rows()).step_by(STEP_ROWS) {
            let step = batch.slice(start, STEP_ROWS.min(batch.num_rows() - start));
            let text = match self.form {
                TextLayout::Delimited { separator, .. } => delimited(&step, separator)?.into_bytes(),
                TextLayout::Lines => json_lines(&step)?,
                TextLayout::Array => {
                    let lines = json_lines(&step)?;
                    let objects = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                    let mut text = Vec::with_capacity(lines.len() + 1);
                    for object in objects {
                        text.extend(self.has_rows.then_some(b','));
                        text.extend_from_slice(object);
                        self.has_rows = true;
                    }
                    text
                }
            };
            output.write_all(&text)?;
        }
        Ok(())
    }

    /// Returns the text after the last row.
    pub fn end(&self) -> &'static str {
        if matches!(self.form, TextLayout::Array) { "]\n" } else { "" }
    }
}

fn quoted(text: &str, separator: char) -> String {
    match text.is_empty() || text.contains([separator, '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn delimited(batch: &RecordBatch, separator: char) -> Result<String, ArrowError> {
    let options = FormatOptions::new().with_null("").with_display_error(false);
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    // The logical nulls also include arrays of type Null, which have no validity bitmap.
    let nulls: Vec<_> = batch.columns().iter().map(|column| column.logical_nulls()).collect();
    let (mut text, mut value) = (String::new(), String::new());
    for row in 0..batch.num_rows() {
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                text.push(separator);
            }
            if nulls[place].as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            value.clear();
            column.value(row).write(&mut value)?;
            if batch.column(place).data_type().is_primitive() {
                text.push_str(&value);
            } else {
                text.push_str(&quoted(&value, separator));
            }
        }
        text.push('\n');
    }
    Ok(text)
}

fn json_lines(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer: Writer<Vec<u8>, LineDelimited> =
        WriterBuilder::new().with_explicit_nulls(true).build(Vec::new());
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.into_inner())
}

/// Returns the column names of a text file, given its beginning, or `None` if the text does not have the given
/// format.
pub(super) fn columns_of(text: &[u8], format: FileFormat) -> Option<Vec<String>> {
    match format {
        FileFormat::Csv | FileFormat::Tsv => {
            let line = std::str::from_utf8(text.split(|byte| *byte == b'\n').next()?).ok()?;
            let separator = if format == FileFormat::Csv { ',' } else { '\t' };
            let names = line.trim_end_matches('\r').split(separator);
            Some(names.map(|name| name.trim_matches('"').to_owned()).collect())
        }
        FileFormat::Json | FileFormat::Ndjson => {
            let text = text.trim_ascii_start();
            let objects = text.strip_prefix(b"[").unwrap_or(text);
            type Object = serde_json::Map<String, serde_json::Value>;
            let first = serde_json::Deserializer::from_slice(objects).into_iter::<Object>().next()?.ok()?;
            Some(first.keys().cloned().collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float32Array, Float64Array, StringArray};
    use std::sync::Arc;

    fn text_of(format: FileFormat, batches: &[RecordBatch]) -> String {
        let mut rows = TextRows::new(format).unwrap();
        let mut text = rows.begin(&batches[0].schema()).into_bytes();
        for batch in batches {
            rows.rows(batch, &mut text).unwrap();
        }
        text.extend_from_slice(rows.end().as_bytes());
        String::from_utf8(text).unwrap()
    }

    fn batch(rows: usize) -> RecordBatch {
        RecordBatch::try_from_iter([
            ("id", Arc::new(StringArray::from_iter((0..rows).map(|row| (row > 0).then_some("a,\"b")))) as _),
            ("label", Arc::new(Float32Array::from_iter((0..rows).map(|_| Some(0.1)))) as _),
            ("score", Arc::new(Float64Array::from_iter((0..rows).map(|row| Some(row as f64 / 10.0)))) as _),
        ])
        .unwrap()
    }

    #[test]
    fn batching_does_not_change_the_text() {
        for format in [FileFormat::Csv, FileFormat::Tsv, FileFormat::Json, FileFormat::Ndjson] {
            let whole = batch(20_000);
            let parts = [whole.slice(0, 1), whole.slice(1, 12_000), whole.slice(12_001, 7_999)];
            let text = text_of(format, std::slice::from_ref(&whole));
            assert_eq!(text, text_of(format, &parts), "{format:?}");
            let mut names = columns_of(text.as_bytes(), format).unwrap();
            names.sort();
            assert_eq!(names, ["id", "label", "score"], "{format:?}");
        }
        assert_eq!(text_of(FileFormat::Csv, &[batch(2)]), "id,label,score\n,0.1,0.0\n\"a,\"\"b\",0.1,0.1\n");
        let json = text_of(FileFormat::Json, &[batch(2)]);
        assert_eq!(
            json,
            "[{\"id\":null,\"label\":0.1,\"score\":0.0},{\"id\":\"a,\\\"b\",\"label\":0.1,\"score\":0.1}]\n"
        );
        assert_eq!(text_of(FileFormat::Json, &[batch(0)]), "[]\n");
    }
}
