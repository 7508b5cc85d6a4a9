//! Comma- or tab-separated values, quoted where RFC 4180 wants it. NULL is empty; an empty text is `""`.

use super::{RowWriter, failed, formatters, unwritable};
use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use planetree_base::error::Result;
use std::fmt::Write as _;
use std::io::Write;

/// See the module.
pub struct Delimited<'a> {
    output: Box<dyn Write + Send + 'a>,
    separator: char,
    line: String,
}

impl<'a> Delimited<'a> {
    /// Writes the header, if one is wanted.
    pub fn new(
        schema: &SchemaRef,
        mut output: Box<dyn Write + Send + 'a>,
        separator: char,
        header: bool,
    ) -> Result<Self> {
        let names = schema.fields().iter().map(|field| quoted(field.name(), separator));
        if header {
            let line = names.collect::<Vec<_>>().join(&separator.to_string());
            writeln!(output, "{line}").map_err(failed)?;
        }
        Ok(Delimited { output, separator, line: String::new() })
    }
}

fn quoted(text: &str, separator: char) -> String {
    match text.is_empty() || text.contains([separator, '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

impl RowWriter for Delimited<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::new().with_null("").with_display_error(false);
        let columns = formatters(batch, &options)?;
        // A column of nothing but NULL has no bitmap of them.
        let nulls: Vec<_> = batch.columns().iter().map(|column| column.logical_nulls()).collect();
        let mut value = String::new();
        for row in 0..batch.num_rows() {
            self.line.clear();
            for (place, column) in columns.iter().enumerate() {
                if place > 0 {
                    self.line.push(self.separator);
                }
                let array = batch.column(place);
                if nulls[place].as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    continue;
                }
                value.clear();
                column.value(row).write(&mut value).map_err(unwritable)?;
                if array.data_type().is_primitive() {
                    self.line.push_str(&value);
                } else {
                    let _ = self.line.write_str(&quoted(&value, self.separator)); // a String takes everything
                }
            }
            self.line.push('\n');
            self.output.write_all(self.line.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.output.flush().map_err(failed)
    }
}
