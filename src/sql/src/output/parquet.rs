//! Results as a Parquet file, readable by everybody.

use super::RowWriter;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use planetree_base::error::{Error, Result};
use std::io::Write;

/// See the module.
pub struct Parquet<'a>(ArrowWriter<Box<dyn Write + Send + 'a>>);

impl<'a> Parquet<'a> {
    /// Starts the file.
    pub fn new(schema: &SchemaRef, output: Box<dyn Write + Send + 'a>) -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_created_by(concat!("planetree ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        Ok(Parquet(ArrowWriter::try_new(output, schema.clone(), Some(properties)).map_err(refused)?))
    }
}

fn refused(error: ParquetError) -> Error {
    Error::place(
        "the output",
        format_args!("cannot write Parquet: {error}"),
        "cast the column to another type",
    )
}

impl RowWriter for Parquet<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(refused)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.0.close().map(drop).map_err(refused)
    }
}
