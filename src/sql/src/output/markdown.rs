//! Writes results as Markdown tables.

use super::{ResultWriter, failed, formatters};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use planetree_base::error::Result;
use planetree_base::terminal::printable;
use std::io::Write;

/// Writes a Markdown table.
pub(super) struct MarkdownWriter<'a>(Box<dyn Write + Send + 'a>);

impl<'a> MarkdownWriter<'a> {
    /// Creates a writer and writes the header of the table.
    pub(super) fn new(schema: &SchemaRef, mut output: Box<dyn Write + Send + 'a>) -> Result<Self> {
        let names: Vec<String> = schema.fields().iter().map(|field| escaped(field.name())).collect();
        let alignments = schema.fields().iter().map(|field| match field.data_type().is_numeric() {
            true => "---:",
            false => "---",
        });
        let alignments: Vec<&str> = alignments.collect();
        writeln!(output, "| {} |\n| {} |", names.join(" | "), alignments.join(" | ")).map_err(failed)?;
        Ok(MarkdownWriter(output))
    }
}

fn escaped(text: &str) -> String {
    printable(text).replace('|', "\\|").replace('\n', "<br>")
}

impl ResultWriter for MarkdownWriter<'_> {
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
