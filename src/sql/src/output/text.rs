//! Writes results as delimited text or JSON, with the same code that writes planetree's own tables as text.

use super::{ResultWriter, failed, unwritable};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use planetree_base::error::Result;
use planetree_data::table::TextRows;
use std::io::Write;

/// Writes delimited text or JSON.
pub(crate) struct TextResult<'a> {
    rows: TextRows,
    output: Box<dyn Write + Send + 'a>,
}

impl<'a> TextResult<'a> {
    /// Creates a writer and writes the text before the rows, such as a header.
    pub(crate) fn new(
        schema: &SchemaRef,
        mut output: Box<dyn Write + Send + 'a>,
        rows: TextRows,
    ) -> Result<Self> {
        output.write_all(rows.begin(schema).as_bytes()).map_err(failed)?;
        Ok(TextResult { rows, output })
    }
}

impl ResultWriter for TextResult<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows.rows(batch, &mut self.output).map_err(unwritable)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.output.write_all(self.rows.end().as_bytes()).map_err(failed)?;
        self.output.flush().map_err(failed)
    }
}
