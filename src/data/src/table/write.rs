//! Writes a table as Parquet or text. The bytes of the file depend only on the rows and the metadata, not on how the
//! rows are divided into batches.

use super::bytes::write_failure;
use super::footer::{self, UNKNOWN};
use super::kind::TableKind;
use super::read::TableReader;
use super::text::{TextRows, columns_of};
use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{
    FileFormat, FileOutput, Guard, Location, RunningDigest, TextOutput, foreign, head_of,
};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

/// Number of rows per row group.
const GROUP_ROWS: usize = 1 << 20;
/// Number of rows that are encoded at a time. It is fixed because the encoder ends pages at the end of its input, and
/// it divides the number of rows per row group.
const STEP_ROWS: usize = 1 << 16;
const PROGRAM: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"));

/// A table that is being written and is not visible yet. If it is dropped without [`TableWriter::finish`], it leaves
/// nothing behind.
pub struct TableWriter {
    location: Location,
    schema: SchemaRef,
    form: TableOutput,
    metadata: BTreeMap<String, String>,
}

/// The output file, in the format given by its extension.
enum TableOutput {
    Parquet { writer: Box<ColumnsWriter>, steps: BatchCoalescer },
    Text { rows: TextRows, output: Box<TextOutput> },
}

impl TableWriter {
    /// Prepares to write a table in the format given by its file extension. An existing table of the same kind is
    /// replaced at the end. Fails if any other file exists at the location.
    pub fn create(location: &Location, kind: TableKind, schema: SchemaRef) -> Result<Self> {
        let (format, compression) = kind.formats().of(location)?;
        let form = match TextRows::new(format) {
            None => Self::parquet(location, kind, &schema)?,
            Some(rows) => {
                let mut output = TextOutput::create(location, compression, guard(kind, format))?;
                let begun = output.write_all(rows.begin(&schema).as_bytes());
                begun.map_err(|error| Error::io(location, "write", error))?;
                TableOutput::Text { rows, output: Box::new(output) }
            }
        };
        let metadata = [(footer::TABLE, kind.name()), (footer::WRITER, PROGRAM)];
        Ok(TableWriter {
            location: location.clone(),
            form,
            schema,
            metadata: metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        })
    }

    fn parquet(location: &Location, kind: TableKind, schema: &SchemaRef) -> Result<TableOutput> {
        let output = FileOutput::guarded(location, guard(kind, FileFormat::Parquet))?;
        let options = ArrowWriterOptions::new()
            .with_properties(properties())
            // The Arrow metadata only repeat the schema, in an order that may change between executions.
            .with_skip_arrow_metadata(true);
        let sink = TableSink { output, digest: RunningDigest::new(), footer: None };
        let (file, factory) = ArrowWriter::try_new_with_options(sink, schema.clone(), options)
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(|error| write_failure(location, error))?;
        Ok(TableOutput::Parquet {
            writer: Box::new(ColumnsWriter { file, factory, columns: Vec::new(), rows: 0 }),
            steps: BatchCoalescer::new(schema.clone(), STEP_ROWS),
        })
    }

    /// Fails if [`TableWriter::create`] would fail. Call it before expensive work, to detect problems early.
    pub fn check(location: &Location, kind: TableKind) -> Result<()> {
        let (format, _) = kind.formats().of(location)?;
        TextOutput::create(location, planetree_base::storage::Compression::None, guard(kind, format))
            .map(drop)
    }

    /// Sets a metadata value of the file. It can be called at any time before [`TableWriter::finish`]. Text files
    /// have no metadata, so the value is discarded.
    pub fn set_metadata(&mut self, key: &str, value: String) {
        self.metadata.insert(key.to_owned(), value);
    }

    /// Appends rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let types = |schema: &SchemaRef| -> Vec<_> {
            schema.fields().iter().map(|field| field.data_type().clone()).collect()
        };
        if types(&batch.schema()) != types(&self.schema) {
            return Err(Error::bug(
                &self.location,
                "the column types of the rows differ from those of the table",
            ));
        }
        let failed = |error: ArrowError| write_failure(&self.location, error.into());
        match &mut self.form {
            TableOutput::Parquet { writer, steps } => {
                steps.push_batch(batch.clone()).map_err(failed)?;
                write_steps(writer, steps, &self.schema).map_err(|error| write_failure(&self.location, error))
            }
            TableOutput::Text { rows, output } => {
                // Replace the column names of the batch, which may differ, by those of the table.
                let batch =
                    RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec()).map_err(failed)?;
                rows.rows(&batch, output).map_err(|error| match error {
                    ArrowError::IoError(_, error) => Error::io(&self.location, "write", error),
                    other => failed(other),
                })
            }
        }
    }

    /// Completes the table and makes it visible.
    pub fn finish(self) -> Result<()> {
        let TableWriter { location, schema, form, metadata } = self;
        let failed = |error: ParquetError| write_failure(&location, error);
        match form {
            TableOutput::Parquet { mut writer, mut steps } => {
                steps.finish_buffered_batch().map_err(|error| failed(error.into()))?;
                write_steps(&mut writer, &mut steps, &schema).map_err(failed)?;
                write_footer(*writer, metadata).map_err(failed)?.commit()
            }
            TableOutput::Text { rows, mut output } => {
                let ended = output.write_all(rows.end().as_bytes());
                ended.map_err(|error| Error::io(&location, "write", error))?;
                output.commit()
            }
        }
    }
}

fn write_steps(
    writer: &mut ColumnsWriter,
    steps: &mut BatchCoalescer,
    schema: &SchemaRef,
) -> Result<(), ParquetError> {
    while let Some(step) = steps.next_completed_batch() {
        writer.write(schema, &step)?;
    }
    Ok(())
}

/// Writes row groups and encodes their columns in parallel. The number of threads does not change the bytes.
struct ColumnsWriter {
    file: SerializedFileWriter<TableSink>,
    factory: ArrowRowGroupWriterFactory,
    /// Column writers of the open row group; empty if no row group is open.
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl ColumnsWriter {
    /// Appends rows to the open row group. They must not exceed its maximum size.
    fn write(&mut self, schema: &SchemaRef, step: &RecordBatch) -> Result<(), ParquetError> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        let mut leaves = Vec::with_capacity(self.columns.len());
        for (field, column) in schema.fields().iter().zip(step.columns()) {
            leaves.extend(compute_leaves(field, column)?);
        }
        // Encode columns in parallel only if the caller runs this function in a thread pool.
        if rayon::current_thread_index().is_some() {
            self.columns.par_iter_mut().zip(leaves).try_for_each(|(column, leaf)| column.write(&leaf))?;
        } else {
            self.columns.iter_mut().zip(leaves).try_for_each(|(column, leaf)| column.write(&leaf))?;
        }
        self.rows += step.num_rows();
        if self.rows >= GROUP_ROWS { self.end_group() } else { Ok(()) }
    }

    fn end_group(&mut self) -> Result<(), ParquetError> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let columns = std::mem::take(&mut self.columns).into_iter();
        let chunks = columns.map(ArrowColumnWriter::close).collect::<Result<Vec<_>, _>>()?;
        let mut group = self.file.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

/// Writes the footer with the metadata and the checksum, and returns the complete file.
fn write_footer(
    mut writer: ColumnsWriter,
    metadata: BTreeMap<String, String>,
) -> Result<FileOutput, ParquetError> {
    let external = |error: io::Error| ParquetError::External(Box::new(error));
    writer.end_group()?;
    let mut writer = writer.file;
    writer.flush().map_err(external)?; // after this, all rows have been hashed
    writer.inner_mut().footer = Some(Vec::new());
    let unknown = String::from_utf8_lossy(&UNKNOWN).into_owned();
    // The checksum must be the last value, because readers search for it from the end.
    for (key, value) in metadata.into_iter().chain([(footer::CHECKSUM.to_owned(), unknown)]) {
        writer.append_key_value_metadata(KeyValue::new(key, value));
    }
    let TableSink { mut output, digest, footer } = writer.into_inner()?;
    let mut footer = footer.unwrap_or_default();
    let digits = footer::digits_within(&footer)
        .ok_or_else(|| ParquetError::General("the footer lacks its checksum".to_owned()))?;
    let checksum = footer::checksum(digest, &footer, &digits);
    footer[digits].copy_from_slice(checksum.to_string().as_bytes());
    output.write_all(&footer).map_err(external)?;
    Ok(output)
}

/// Returns the Parquet writer properties that all tables use.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by(PROGRAM.to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0) // for compatibility with all readers
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).expect("3 is a level of zstd")))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build()
}

/// Creates a guard that permits replacing only tables of the same kind. A Parquet table is recognised by its
/// metadata, and a text table by its columns.
fn guard(kind: TableKind, format: FileFormat) -> Guard {
    Arc::new(move |location| match TableReader::kind_of(location)? {
        Some(there) if there == kind => Ok(()),
        Some(there) => Err(Error::place(
            location,
            format_args!("refusing to overwrite: this is {}, not {}", there.noun(), kind.noun()),
            "choose another name, or remove it first",
        )),
        None => {
            let head = head_of(location)?;
            let is_empty = head.is_whole && head.bytes.trim_ascii() == b"[]";
            let columns = columns_of(&head.bytes, format);
            let is_ours = is_empty || columns.is_some_and(|columns| kind.has_columns(&columns));
            if is_ours { Ok(()) } else { Err(foreign(location)) }
        }
    })
}

/// Hashes all bytes that are written, and buffers the footer until the checksum is known.
struct TableSink {
    output: FileOutput,
    digest: RunningDigest,
    footer: Option<Vec<u8>>,
}

impl Write for TableSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(footer) = &mut self.footer {
            return footer.write(bytes);
        }
        let count = self.output.write(bytes)?;
        self.digest.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
