//! Writes results as a plain Parquet file.

use super::ResultWriter;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use planetree_base::error::{Error, Result};
use std::io::Write;

/// Writes a Parquet file.
pub(super) struct ParquetWriter<'a>(ArrowWriter<Box<dyn Write + Send + 'a>>);

impl<'a> ParquetWriter<'a> {
    /// Creates a writer and starts the file.
    pub(super) fn new(schema: &SchemaRef, output: Box<dyn Write + Send + 'a>) -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_created_by(concat!("planetree ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        Ok(ParquetWriter(
            ArrowWriter::try_new(output, schema.clone(), Some(properties)).map_err(write_error)?,
        ))
    }
}

fn write_error(error: ParquetError) -> Error {
    Error::place(
        "the output",
        format_args!("cannot write Parquet: {error}"),
        "cast the column to another type",
    )
}

impl ResultWriter for ParquetWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(write_error)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.0.close().map(drop).map_err(write_error)
    }
}
