//! Results as delimited text or JSON, with the writer that all tables use.

use super::{ResultWriter, failed, unwritable};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use planetree_base::error::Result;
use planetree_data::table::TextRows;
use std::io::Write;

/// Writes delimited text or JSON.
pub struct TextResult<'a> {
    rows: TextRows,
    output: Box<dyn Write + Send + 'a>,
}

impl<'a> TextResult<'a> {
    /// Writes the text before the rows.
    pub fn new(schema: &SchemaRef, mut output: Box<dyn Write + Send + 'a>, rows: TextRows) -> Result<Self> {
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
