//! Writes results as a plain Parquet file.

use super::{OUTPUT, ResultWriter, failed};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use planetree_base::error::{Error, Result, copy_of};
use std::io::Write;

/// Writes a Parquet file.
pub(super) struct ParquetWriter<'a> {
    writer: ArrowWriter<Box<dyn Write + Send + 'a>>,
    /// Bytes after which a row group ends.
    memory: usize,
}

impl<'a> ParquetWriter<'a> {
    /// Creates a writer that uses about `memory` bytes, and starts the file.
    pub(super) fn new(schema: &SchemaRef, output: Box<dyn Write + Send + 'a>, memory: usize) -> Result<Self> {
        // Each column has an open page and a dictionary.
        let page = (memory / (4 * schema.fields().len().max(1))).clamp(1 << 13, 1 << 20);
        let properties = WriterProperties::builder()
            .set_created_by(concat!("planetree ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_data_page_size_limit(page)
            .set_dictionary_page_size_limit(page)
            .build();
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties)).map_err(write_error)?;
        Ok(ParquetWriter { writer, memory })
    }
}

fn write_error(error: ParquetError) -> Error {
    if let ParquetError::External(cause) = &error
        && let Some(cause) = cause.downcast_ref::<std::io::Error>()
    {
        return failed(copy_of(cause));
    }
    Error::place(OUTPUT, format_args!("cannot write Parquet: {error}"), "cast the column to another type")
}

impl ResultWriter for ParquetWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(write_error)?;
        match self.writer.memory_size() > self.memory {
            true => self.writer.flush().map_err(write_error),
            false => Ok(()),
        }
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.writer.close().map(drop).map_err(write_error)
    }
}
