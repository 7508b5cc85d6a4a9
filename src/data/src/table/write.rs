//! Writing a table. Its bytes depend on its rows and metadata alone, not on how the rows were
//! handed in.

use super::bytes::write_failure;
use super::footer::{self, UNKNOWN};
use super::kind::TableKind;
use super::read::TableReader;
use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{FileOutput, Location, RunningDigest};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// Rows that are encoded together; the encoder ends pages where its input ends. A row group is some of them.
const STEP_ROWS: usize = 1 << 16;
const PROGRAM: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"));

/// A table that nobody sees yet. Dropped without [`TableWriter::finish`], it leaves nothing behind.
pub struct TableWriter {
    location: Location,
    kind: TableKind,
    schema: SchemaRef,
    writer: ColumnsWriter,
    steps: BatchCoalescer,
    metadata: BTreeMap<String, String>,
}

impl TableWriter {
    /// Prepares to write a table. One of ours is replaced in the end; anything else that is there is
    /// an error.
    pub fn create(location: &Location, kind: TableKind, schema: SchemaRef) -> Result<Self> {
        let output = FileOutput::create(location)?;
        refuse_other(location, kind)?;
        let options = ArrowWriterOptions::new()
            .with_properties(properties())
            // It would say the same again, in an order that differs from run to run.
            .with_skip_arrow_metadata(true);
        let sink = TableSink { output, digest: RunningDigest::new(), footer: None };
        let writer = ArrowWriter::try_new_with_options(sink, schema.clone(), options)
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(|error| write_failure(location, error))?;
        let metadata = [(footer::TABLE, kind.name()), (footer::WRITER, PROGRAM)];
        Ok(TableWriter {
            location: location.clone(),
            kind,
            steps: BatchCoalescer::new(schema.clone(), STEP_ROWS),
            writer: ColumnsWriter { file: writer.0, factory: writer.1, columns: Vec::new(), rows: 0 },
            schema,
            metadata: metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        })
    }

    /// Fails where [`TableWriter::create`] would: to be asked before the work that makes the table.
    pub fn check(location: &Location, kind: TableKind) -> Result<()> {
        drop(FileOutput::create(location)?);
        refuse_other(location, kind)
    }

    /// Sets a value of the file's metadata, which may be done until the end.
    pub fn set_metadata(&mut self, key: &str, value: String) {
        self.metadata.insert(key.to_owned(), value);
    }

    /// Appends rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let types = |schema: &SchemaRef| -> Vec<_> {
            schema.fields().iter().map(|field| field.data_type().clone()).collect()
        };
        if types(&batch.schema()) != types(&self.schema) {
            let problem = "cannot write rows whose columns are of other types than the table's";
            return Err(Error::place(&self.location, problem, "report this: it is a fault of planetree"));
        }
        let pushed = self.steps.push_batch(batch.clone());
        pushed.map_err(|error| write_failure(&self.location, error.into()))?;
        self.write_steps()
    }

    fn write_steps(&mut self) -> Result<()> {
        while let Some(step) = self.steps.next_completed_batch() {
            self.writer.write(&self.schema, &step).map_err(|error| write_failure(&self.location, error))?;
        }
        Ok(())
    }

    /// Completes the table and makes it visible.
    pub fn finish(mut self) -> Result<()> {
        let rest = self.steps.finish_buffered_batch();
        rest.map_err(|error| write_failure(&self.location, error.into()))?;
        self.write_steps()?;
        let TableWriter { location, kind, writer, metadata, .. } = self;
        let output = write_footer(writer, metadata).map_err(|error| write_failure(&location, error))?;
        refuse_other(&location, kind)?; // it may have appeared meanwhile
        output.commit()
    }
}

/// Encodes the columns of a row group side by side, which changes no byte.
struct ColumnsWriter {
    file: SerializedFileWriter<TableSink>,
    factory: ArrowRowGroupWriterFactory,
    /// Of the row group that is open; none if there is none.
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl ColumnsWriter {
    /// Appends rows that do not reach beyond the row group.
    fn write(&mut self, schema: &SchemaRef, step: &RecordBatch) -> Result<(), ParquetError> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        let mut leaves = Vec::with_capacity(self.columns.len());
        for (field, column) in schema.fields().iter().zip(step.columns()) {
            leaves.extend(compute_leaves(field, column)?);
        }
        // On a thread of no pool there is nobody to share the work with.
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

/// Ends the file: its footer, with the checksum put in.
fn write_footer(
    mut writer: ColumnsWriter,
    metadata: BTreeMap<String, String>,
) -> Result<FileOutput, ParquetError> {
    let external = |error: io::Error| ParquetError::External(Box::new(error));
    writer.end_group()?;
    let mut writer = writer.file;
    writer.flush().map_err(external)?; // all rows are hashed now
    writer.inner_mut().footer = Some(Vec::new());
    let unknown = String::from_utf8_lossy(&UNKNOWN).into_owned();
    // The checksum goes last: it is found from the end.
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

/// What all tables have in common.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by(PROGRAM.to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0) // what every reader knows
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).expect("3 is a level of zstd")))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build()
}

/// An error if there is a file that is no table of this kind. An empty one holds nothing to lose.
fn refuse_other(location: &Location, kind: TableKind) -> Result<()> {
    if matches!(location.size()?, None | Some(0)) {
        return Ok(());
    }
    let problem = match TableReader::kind_of(location)? {
        Some(there) if there == kind => return Ok(()),
        Some(there) => format!("this exists and is {}, not {}", there.noun(), kind.noun()),
        None => "this exists and was not written by planetree".to_owned(),
    };
    Err(Error::place(location, problem, "choose another name, or remove it first"))
}

/// Hashes what goes to the file, and holds the footer back until its checksum is known.
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
