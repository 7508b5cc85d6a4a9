//! Results as delimited text or JSON, by the writer that all tables have.

use super::{RowWriter, failed, unwritable};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use planetree_base::error::Result;
use planetree_data::table::TextRows;
use std::io::Write;

/// See the module.
pub struct Text<'a> {
    rows: TextRows,
    output: Box<dyn Write + Send + 'a>,
}

impl<'a> Text<'a> {
    /// Writes what comes before the rows.
    pub fn new(schema: &SchemaRef, mut output: Box<dyn Write + Send + 'a>, rows: TextRows) -> Result<Self> {
        output.write_all(rows.begin(schema).as_bytes()).map_err(failed)?;
        Ok(Text { rows, output })
    }
}

impl RowWriter for Text<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows.rows(batch, &mut self.output).map_err(unwritable)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.output.write_all(self.rows.end().as_bytes()).map_err(failed)?;
        self.output.flush().map_err(failed)
    }
}
