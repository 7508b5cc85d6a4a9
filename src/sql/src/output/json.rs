//! JSON: one array of objects, or an object a line. NULL is `null`, and so is what is no number.

use super::{RowWriter, unwritable};
use arrow::array::RecordBatch;
use arrow::json::writer::{JsonArray, JsonFormat, LineDelimited, Writer, WriterBuilder};
use planetree_base::error::Result;
use std::io::Write;

struct Json<'a, F: JsonFormat>(Writer<Box<dyn Write + Send + 'a>, F>, &'static str);

fn builder() -> WriterBuilder {
    WriterBuilder::new().with_explicit_nulls(true)
}

/// One array.
pub fn array<'a>(output: Box<dyn Write + Send + 'a>) -> impl RowWriter + 'a {
    Json::<JsonArray>(builder().build(output), "\n")
}

/// An object a line.
pub fn lines<'a>(output: Box<dyn Write + Send + 'a>) -> impl RowWriter + 'a {
    Json::<LineDelimited>(builder().build(output), "")
}

impl<F: JsonFormat> RowWriter for Json<'_, F> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(unwritable)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.0.finish().map_err(unwritable)?;
        let end = self.1;
        self.0.into_inner().write_all(end.as_bytes()).map_err(super::failed)
    }
}
