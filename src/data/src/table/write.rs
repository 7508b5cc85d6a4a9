//! Writing a table, as Parquet or as text. Its bytes depend on its rows and metadata alone, not on how the rows
//! were handed in.

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

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// Rows that are encoded together; the encoder ends pages where its input ends. A row group is some of them.
const STEP_ROWS: usize = 1 << 16;
const PROGRAM: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"));

/// A table that nobody sees yet. Dropped without [`TableWriter::finish`], it leaves nothing behind.
pub struct TableWriter {
    location: Location,
    schema: SchemaRef,
    form: Form,
    metadata: BTreeMap<String, String>,
}

/// What the extension asks for.
enum Form {
    Parquet { writer: Box<ColumnsWriter>, steps: BatchCoalescer },
    Text { rows: TextRows, output: Box<TextOutput> },
}

impl TableWriter {
    /// Prepares to write a table in the format that its name says. One of the same kind is replaced in the end;
    /// anything else that is there is an error.
    pub fn create(location: &Location, kind: TableKind, schema: SchemaRef) -> Result<Self> {
        let (format, compression) = kind.formats().of(location)?;
        let form = match TextRows::new(format) {
            None => Self::parquet(location, kind, &schema)?,
            Some(rows) => {
                let mut output = TextOutput::create(location, compression, guard(kind, format))?;
                let begun = output.write_all(rows.begin(&schema).as_bytes());
                begun.map_err(|error| Error::io(location, "write", &error))?;
                Form::Text { rows, output: Box::new(output) }
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

    fn parquet(location: &Location, kind: TableKind, schema: &SchemaRef) -> Result<Form> {
        let output = FileOutput::guarded(location, guard(kind, FileFormat::Parquet))?;
        let options = ArrowWriterOptions::new()
            .with_properties(properties())
            // It would say the same again, in an order that differs from run to run.
            .with_skip_arrow_metadata(true);
        let sink = TableSink { output, digest: RunningDigest::new(), footer: None };
        let (file, factory) = ArrowWriter::try_new_with_options(sink, schema.clone(), options)
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(|error| write_failure(location, error))?;
        Ok(Form::Parquet {
            writer: Box::new(ColumnsWriter { file, factory, columns: Vec::new(), rows: 0 }),
            steps: BatchCoalescer::new(schema.clone(), STEP_ROWS),
        })
    }

    /// Fails where [`TableWriter::create`] would: to be asked before the work that makes the table.
    pub fn check(location: &Location, kind: TableKind) -> Result<()> {
        let (format, _) = kind.formats().of(location)?;
        TextOutput::create(location, planetree_base::storage::Compression::None, guard(kind, format))
            .map(drop)
    }

    /// Sets a value of the file's metadata, which may be done until the end. Text has none.
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
        let failed = |error: ArrowError| write_failure(&self.location, error.into());
        match &mut self.form {
            Form::Parquet { writer, steps } => {
                steps.push_batch(batch.clone()).map_err(failed)?;
                write_steps(writer, steps, &self.schema).map_err(|error| write_failure(&self.location, error))
            }
            Form::Text { rows, output } => {
                // The table's names, whatever the batch calls them.
                let batch =
                    RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec()).map_err(failed)?;
                rows.rows(&batch, output).map_err(|error| match error {
                    ArrowError::IoError(_, error) => Error::io(&self.location, "write", &error),
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
            Form::Parquet { mut writer, mut steps } => {
                steps.finish_buffered_batch().map_err(|error| failed(error.into()))?;
                write_steps(&mut writer, &mut steps, &schema).map_err(failed)?;
                write_footer(*writer, metadata).map_err(failed)?.commit()
            }
            Form::Text { rows, mut output } => {
                let ended = output.write_all(rows.end().as_bytes());
                ended.map_err(|error| Error::io(&location, "write", &error))?;
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

/// Lets go a table of the same kind: Parquet says what it is, text is known by its columns.
fn guard(kind: TableKind, format: FileFormat) -> Guard {
    Arc::new(move |location| match TableReader::kind_of(location)? {
        Some(there) if there == kind => Ok(()),
        Some(there) => Err(Error::place(
            location,
            format_args!("this exists and is {}, not {}", there.noun(), kind.noun()),
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
