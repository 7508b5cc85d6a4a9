//! Tables as Markdown has them.

use super::{RowWriter, failed, formatters};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use planetree_base::error::Result;
use std::io::Write;

/// See the module.
pub struct Markdown<'a>(Box<dyn Write + Send + 'a>);

impl<'a> Markdown<'a> {
    /// Writes the header.
    pub fn new(schema: &SchemaRef, mut output: Box<dyn Write + Send + 'a>) -> Result<Self> {
        let names: Vec<String> = schema.fields().iter().map(|field| escaped(field.name())).collect();
        let kinds = schema.fields().iter().map(|field| match field.data_type().is_numeric() {
            true => "---:",
            false => "---",
        });
        let kinds: Vec<&str> = kinds.collect();
        writeln!(output, "| {} |\n| {} |", names.join(" | "), kinds.join(" | ")).map_err(failed)?;
        Ok(Markdown(output))
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', "<br>")
}

impl RowWriter for Markdown<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::new();
        let columns = formatters(batch, &options)?;
        for row in 0..batch.num_rows() {
            let values: Vec<String> =
                columns.iter().map(|column| escaped(&column.value(row).to_string())).collect();
            writeln!(self.0, "| {} |", values.join(" | ")).map_err(failed)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.0.flush().map_err(failed)
    }
}
