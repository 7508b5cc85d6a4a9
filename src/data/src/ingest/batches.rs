//! Reads record batches: the interface that Parquet files and streams of record batches share, and the streams.

use super::decode::batch::is_number;
use super::roles::{ColumnRole, RoleOptions, Roles};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use planetree_base::error::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

/// Approximate number of cells per batch. Wide tables are therefore read in batches of few rows.
const BATCH_CELLS: usize = 1 << 18;

/// Returns the number of rows per batch of a table with `columns` columns.
pub(super) fn batch_rows(columns: usize) -> usize {
    (BATCH_CELLS / columns.max(1)).clamp(16, 8192)
}

/// Record batches from a file or another program.
pub(super) trait BatchSource: Send {
    /// Returns the next batch, or `None` at the end, and adds its content to a hash. The batch has the columns that are
    /// not ignored.
    fn next_batch(&mut self, roles: &Roles, hasher: &mut Xxh3) -> Result<Option<SourceBatch>>;
}

/// A batch of rows, and its size in bytes.
pub(super) struct SourceBatch {
    pub batch: RecordBatch,
    pub bytes: usize,
}

/// Returns the names of the columns.
pub(super) fn column_names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// Assigns roles to columns by their names. Features of a string type become categorical.
pub(super) fn roles_of(schema: &Schema, options: &RoleOptions, name: &str) -> Result<Roles> {
    let mut roles = Roles::by_names(&column_names(schema), options, name)?;
    for (role, field) in roles.columns.iter_mut().zip(schema.fields()) {
        let kind = field.data_type();
        if let ColumnRole::Feature(feature) = *role
            && !is_number(kind)
            && matches!(
                kind,
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..)
            )
        {
            *role = ColumnRole::Category(feature);
        }
    }
    Ok(roles)
}

/// A stream of record batches of any size, which are divided into small ones without copying them.
pub(super) struct BatchStream {
    name: String,
    reader: Box<dyn RecordBatchReader + Send>,
    /// Encodes batches for the hash: only the rows of a batch, even if it is a part of larger arrays.
    encoder: StreamWriter<Vec<u8>>,
    /// The rest of the current batch.
    rest: Option<RecordBatch>,
}

impl BatchStream {
    pub(super) fn new(name: &str, reader: Box<dyn RecordBatchReader + Send>) -> Result<Self> {
        let encoder =
            StreamWriter::try_new(Vec::new(), &reader.schema()).map_err(|error| stream_error(name, error))?;
        Ok(BatchStream { name: name.to_owned(), reader, encoder, rest: None })
    }
}

impl BatchSource for BatchStream {
    fn next_batch(&mut self, roles: &Roles, hasher: &mut Xxh3) -> Result<Option<SourceBatch>> {
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => loop {
                match self.reader.next().transpose().map_err(|error| stream_error(&self.name, error))? {
                    None => return Ok(None),
                    Some(batch) if batch.num_rows() > 0 => break batch,
                    Some(_) => {}
                }
            },
        };
        let rows = batch_rows(batch.num_columns()).min(batch.num_rows());
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        let batch = batch.slice(0, rows);
        let encoded = self.encoder.write(&batch).map_err(|error| stream_error(&self.name, error));
        let bytes = self.encoder.get_mut();
        hasher.update(bytes);
        let size = bytes.len();
        bytes.clear();
        encoded?;
        let used = roles.columns.iter().enumerate().filter(|(_, role)| **role != ColumnRole::Ignored);
        let used: Vec<usize> = used.map(|(place, _)| place).collect();
        let batch = batch.project(&used).map_err(|error| stream_error(&self.name, error))?;
        Ok(Some(SourceBatch { batch, bytes: size }))
    }
}

/// Returns the error for a failed read of a stream. A reader may have wrapped an error of planetree.
fn stream_error(name: &str, error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(error) => *error,
            Err(inner) => unreadable(name, &inner.to_string()),
        },
        error => unreadable(name, &error.to_string()),
    }
}

fn unreadable(name: &str, problem: &str) -> Error {
    Error::place(name, problem, "check the program that produces the rows")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{ConvertOptions, convert};
    use crate::dataset::Manifest;
    use crate::ingest::{Ingest, IngestOptions};
    use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatchIterator, StringArray};
    use planetree_base::storage::Location;
    use std::sync::Arc;

    fn rows(count: usize) -> RecordBatch {
        let number = |row: usize| (row % 3 != 1).then_some(row as f64 / 7.0);
        let columns: [(&str, ArrayRef); 4] = [
            ("qid", Arc::new((0..count).map(|row| Some(row as i64 / 5)).collect::<Int64Array>())),
            ("label", Arc::new((0..count).map(|row| Some(row as i64 % 4)).collect::<Int64Array>())),
            ("x", Arc::new((0..count).map(number).collect::<Float64Array>())),
            (
                "colour",
                Arc::new((0..count).map(|row| Some(["red", "blue"][row % 2])).collect::<StringArray>()),
            ),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn dataset(batches: Vec<RecordBatch>) -> Result<Manifest> {
        let directory = tempfile::tempdir().unwrap();
        let schema = batches[0].schema();
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        let ingest = Ingest::of_batches("rows", Box::new(reader), IngestOptions::default())?;
        convert(ingest, &ConvertOptions::new(Location::Local(directory.path().join("d"))), &mut |_| {})
    }

    #[test]
    fn batches_of_any_size_give_the_same_rows() {
        let all = rows(20_000);
        let whole = dataset(vec![all.clone()]).unwrap();
        let sizes = [1, 4_999, 0, 15_000];
        let mut parts = Vec::new();
        let mut first = 0;
        for size in sizes {
            parts.push(all.slice(first, size));
            first += size;
        }
        let divided = dataset(parts).unwrap();
        assert_eq!((whole.rows, whole.queries), (20_000, 4_000));
        assert_eq!((divided.fingerprint, divided.files), (whole.fingerprint, whole.files));
    }

    #[test]
    fn a_stream_without_queries_is_refused() {
        let all = rows(10).project(&[1, 2]).unwrap();
        let error = dataset(vec![all]).unwrap_err();
        assert_eq!(error.to_string(), "rows: no query column found");
    }

    #[test]
    fn an_error_of_the_producer_arrives_unchanged() {
        let cause = Error::place("frame", "too short", "add rows");
        let error = stream_error("rows", ArrowError::ExternalError(Box::new(cause)));
        assert_eq!((error.to_string().as_str(), error.remedy()), ("frame: too short", Some("add rows")));
    }
}
