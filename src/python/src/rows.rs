//! Rows from Python as record batches: from any Arrow stream, or from chunks that Python code makes of arrays and data
//! frames. Rows are read while they are used, chunk by chunk.

use super::job::Reports;
use super::{capsule, column};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use planetree_base::error::Error;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::sync::Arc;

type BatchReader = Box<dyn RecordBatchReader + Send>;

/// Returns the rows of an object with `__arrow_c_stream__`, or of an iterator of chunks. A chunk is such an object, too,
/// or a two-dimensional array with one row per column of the table, whose names are `columns`.
pub(crate) fn reader(
    rows: &Bound<'_, PyAny>,
    columns: Option<Vec<String>>,
    reports: &Arc<Reports>,
) -> PyResult<BatchReader> {
    if rows.hasattr(capsule::STREAM_METHOD)? {
        return capsule::import(rows);
    }
    let mut chunks = Chunks {
        iterator: rows.try_iter()?.unbind(),
        schema: numeric_schema(columns.as_deref().unwrap_or_default()),
        columns,
        current: None,
        reports: reports.clone(),
    };
    if let Some(first) = chunks.read_chunk(rows.py())? {
        chunks.schema = first.schema();
        chunks.current = Some(first);
    }
    Ok(Box::new(chunks))
}

fn numeric_schema(names: &[String]) -> SchemaRef {
    let field = |name: &String| Field::new(name, DataType::Float64, true);
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

/// Chunks from a Python iterator.
struct Chunks {
    iterator: Py<PyIterator>,
    schema: SchemaRef,
    columns: Option<Vec<String>>,
    current: Option<BatchReader>,
    reports: Arc<Reports>,
}

impl Chunks {
    fn read_chunk(&self, py: Python<'_>) -> PyResult<Option<BatchReader>> {
        let mut iterator = self.iterator.bind(py).clone();
        let Some(chunk) = iterator.next().transpose()? else { return Ok(None) };
        if chunk.hasattr(capsule::STREAM_METHOD)? {
            return capsule::import(&chunk).map(Some);
        }
        let names = self.columns.clone().unwrap_or_default();
        let arrays = column::columns(&chunk)?;
        let fields = names.iter().zip(&arrays);
        let fields = fields.map(|(name, array)| Field::new(name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema.clone(), arrays)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        Ok(Some(Box::new(arrow::array::RecordBatchIterator::new([Ok(batch)], schema))))
    }

    /// Checks that a chunk has the columns of the first one.
    fn checked(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let schema = batch.schema();
        let names = schema.fields().iter().map(|field| field.name());
        if names.eq(self.schema.fields().iter().map(|field| field.name())) {
            return Ok(batch);
        }
        let remedy = "pass chunks with the same columns in the same order";
        Err(external(Error::usage("a chunk of rows has other columns than the first one", remedy)))
    }
}

impl Iterator for Chunks {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(Iterator::next) {
                return Some(batch.and_then(|batch| self.checked(batch)));
            }
            match Python::attach(|py| self.read_chunk(py)) {
                Ok(None) => return None,
                Ok(chunk) => self.current = chunk,
                Err(error) => {
                    let problem = error.to_string();
                    self.reports.raise(error);
                    return Some(Err(ArrowError::ComputeError(problem)));
                }
            }
        }
    }
}

impl RecordBatchReader for Chunks {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// A column that is passed beside the rows.
pub(crate) struct SideColumn {
    /// Name of the column in the dataset.
    pub name: &'static str,
    /// Name of the argument, for messages.
    pub argument: &'static str,
    pub values: ArrayRef,
}

/// Adds columns to rows. Their lengths must be the number of rows.
pub(crate) struct WithColumns {
    rows: BatchReader,
    added: Vec<SideColumn>,
    schema: SchemaRef,
    /// Number of rows so far.
    first: usize,
    is_checked: bool,
}

impl WithColumns {
    pub(crate) fn new(rows: BatchReader, added: Vec<SideColumn>) -> Self {
        let fields: Vec<FieldRef> = rows.schema().fields().iter().cloned().chain(fields_of(&added)).collect();
        let schema = Arc::new(Schema::new(fields));
        WithColumns { rows, added, schema, first: 0, is_checked: false }
    }

    /// Fails if a column has another length than the rows. `rows` is their number so far, and `is_end` whether these
    /// are all of them.
    fn check_lengths(&self, rows: usize, is_end: bool) -> Result<(), ArrowError> {
        let fits = |length: usize| if is_end { length == rows } else { length >= rows };
        match self.added.iter().find(|column| !fits(column.values.len())) {
            None => Ok(()),
            Some(column) => {
                let (argument, length) = (column.argument, column.values.len());
                let shown = if is_end { rows.to_string() } else { format!("at least {rows}") };
                Err(external(Error::usage(
                    format_args!("X has {shown} rows, but {argument} has {length}"),
                    format_args!("pass one value of {argument} per row of X"),
                )))
            }
        }
    }

    fn extended(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let (first, rows) = (self.first, batch.num_rows());
        self.check_lengths(first + rows, false)?;
        self.first += rows;
        let slices = self.added.iter().map(|column| column.values.slice(first, rows));
        let arrays: Vec<ArrayRef> = batch.columns().iter().cloned().chain(slices).collect();
        let fields: Vec<FieldRef> =
            batch.schema().fields().iter().cloned().chain(fields_of(&self.added)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    }
}

fn fields_of(added: &[SideColumn]) -> impl Iterator<Item = FieldRef> {
    added.iter().map(|column| Arc::new(Field::new(column.name, column.values.data_type().clone(), true)))
}

impl Iterator for WithColumns {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rows.next() {
            Some(batch) => Some(batch.and_then(|batch| self.extended(&batch))),
            None if std::mem::replace(&mut self.is_checked, true) => None,
            None => self.check_lengths(self.first, true).err().map(Err),
        }
    }
}

impl RecordBatchReader for WithColumns {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Wraps an error of planetree, which arrives unchanged at the other end.
fn external(error: Error) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}
