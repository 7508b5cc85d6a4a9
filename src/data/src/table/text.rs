//! Rows as text: comma- or tab-separated values, quoted where RFC 4180 wants it, or JSON. Numbers have as many digits
//! as read back to the same number. In delimited text NULL is empty and an empty text is `""`; in JSON NULL is
//! `null`, and so is what is not a number.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::json::writer::{LineDelimited, Writer, WriterBuilder};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use planetree_base::storage::FileFormat;
use std::io::Write;

/// Rows that become text together.
const STEP_ROWS: usize = 1 << 13;

/// Turns rows into text, some at a time: the beginning, the rows in their order, the end.
pub struct TextRows {
    form: Form,
    /// Whether there were rows before.
    goes_on: bool,
}

enum Form {
    Delimited { separator: char, header: bool },
    Array,
    Lines,
}

impl TextRows {
    /// Text of some format; `None` where that is none of rows.
    pub fn new(format: FileFormat) -> Option<Self> {
        let form = match format {
            FileFormat::Csv => Form::Delimited { separator: ',', header: true },
            FileFormat::Tsv => Form::Delimited { separator: '\t', header: true },
            FileFormat::Json => Form::Array,
            FileFormat::Ndjson => Form::Lines,
            _ => return None,
        };
        Some(TextRows { form, goes_on: false })
    }

    /// Delimited text with another separator, or without a header.
    pub fn delimited(separator: char, header: bool) -> Self {
        TextRows { form: Form::Delimited { separator, header }, goes_on: false }
    }

    /// What comes before the first row.
    pub fn begin(&self, schema: &Schema) -> String {
        match &self.form {
            Form::Delimited { separator, header: true } => {
                let names = schema.fields().iter().map(|field| quoted(field.name(), *separator));
                names.collect::<Vec<_>>().join(&separator.to_string()) + "\n"
            }
            Form::Array => "[".to_owned(),
            _ => String::new(),
        }
    }

    /// Writes the text of some rows, a piece at a time.
    pub fn rows(&mut self, batch: &RecordBatch, output: &mut dyn Write) -> Result<(), ArrowError> {
        for start in (0..batch.num_rows()).step_by(STEP_ROWS) {
            let step = batch.slice(start, STEP_ROWS.min(batch.num_rows() - start));
            let text = match self.form {
                Form::Delimited { separator, .. } => delimited(&step, separator)?.into_bytes(),
                Form::Lines => json_lines(&step)?,
                Form::Array => {
                    let lines = json_lines(&step)?;
                    let objects = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                    let mut text = Vec::with_capacity(lines.len() + 1);
                    for object in objects {
                        text.extend(self.goes_on.then_some(b','));
                        text.extend_from_slice(object);
                        self.goes_on = true;
                    }
                    text
                }
            };
            output.write_all(&text)?;
        }
        Ok(())
    }

    /// What comes after the last row.
    pub fn end(&self) -> &'static str {
        if matches!(self.form, Form::Array) { "]\n" } else { "" }
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
    // A column of nothing but NULL has no bitmap of them.
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

/// The names of the columns of a text, as far as its beginning shows them; `None` if it is none of that format.
pub fn columns_of(text: &[u8], format: FileFormat) -> Option<Vec<String>> {
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
    fn rows_become_text_however_they_come() {
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
