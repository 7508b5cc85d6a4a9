//! Writes results with one line per value, for rows of many columns.

use super::{ResultWriter, failed, formatters};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use planetree_base::error::Result;
use planetree_base::terminal::printable;
use std::io::Write;

/// Writes one line per value, and an empty line between rows.
pub(super) struct LineWriter<'a> {
    output: Box<dyn Write + Send + 'a>,
    /// The column names, aligned to the right.
    names: Vec<String>,
    has_rows: bool,
}

impl<'a> LineWriter<'a> {
    /// Creates a writer that has written nothing.
    pub(super) fn new(schema: &SchemaRef, output: Box<dyn Write + Send + 'a>) -> Self {
        let names: Vec<String> =
            schema.fields().iter().map(|field| printable(field.name()).into_owned()).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let names = names.iter().map(|name| format!("{name:>width$}")).collect();
        LineWriter { output, names, has_rows: false }
    }
}

impl ResultWriter for LineWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::new().with_null("NULL");
        let columns = formatters(batch, &options)?;
        for row in 0..batch.num_rows() {
            if self.has_rows {
                writeln!(self.output).map_err(failed)?;
            }
            for (name, column) in self.names.iter().zip(&columns) {
                let value = column.value(row).to_string();
                writeln!(self.output, "{name} = {}", printable(&value)).map_err(failed)?;
            }
            self.has_rows = true;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.output.flush().map_err(failed)
    }
}
