//! Parquet inputs: record batches from any place that can be read in ranges.

use super::decode::batch::is_number;
use super::input::Input;
use super::roles::{ColumnRole, RoleOptions, Roles};
use crate::dataset::{guarded, verify_part};
use crate::error::{Error, Result};
use crate::storage::Location;
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;

/// An open Parquet input.
pub struct Table {
    /// Its name in messages.
    pub name: String,
    /// The names of its columns.
    pub names: Vec<String>,
    kinds: Vec<DataType>,
    reader: ParquetRecordBatchReader,
}

const BATCH_ROWS: usize = 4096;

impl Table {
    /// Opens a Parquet file; one from standard input is put into a temporary file first.
    pub fn open(input: &Input, stdin: Option<&mut dyn std::io::Read>) -> Result<Self> {
        let source = match (&input.location, stdin) {
            (Some(location), _) => {
                if let Some(part) = &input.part {
                    verify_part(location, part)?;
                }
                let size = location.size()?.ok_or_else(|| location.absent())?;
                TableSource::Ranges(location.clone(), size)
            }
            (None, Some(stdin)) => {
                let spooled =
                    tempfile::tempfile().and_then(|mut file| std::io::copy(stdin, &mut file).map(|_| file));
                TableSource::File(spooled.map_err(|error| Error::io(&input.name, "read", &error))?)
            }
            (None, None) => unreachable!("an input is a location or standard input"),
        };
        let opened =
            guarded(|| ParquetRecordBatchReaderBuilder::try_new(source)?.with_batch_size(BATCH_ROWS).build());
        let reader = opened.map_err(|error| unreadable(&input.name, &error))?;
        let fields = arrow::array::RecordBatchReader::schema(&reader);
        Ok(Table {
            name: input.name.clone(),
            names: fields.fields().iter().map(|field| field.name().clone()).collect(),
            kinds: fields.fields().iter().map(|field| field.data_type().clone()).collect(),
            reader,
        })
    }

    /// What the columns hold: by name, and words where a column holds strings.
    pub fn roles(&self, options: &RoleOptions) -> Result<Roles> {
        let mut roles = Roles::by_names(&self.names, options, &self.name)?;
        for (role, kind) in roles.columns.iter_mut().zip(&self.kinds) {
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

    /// The next rows; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let reader = &mut self.reader;
        guarded(|| reader.next().transpose().map_err(ParquetError::from))
            .map_err(|error| unreadable(&self.name, &error))
    }
}

fn unreadable(name: &str, error: &ParquetError) -> Error {
    Error::place(
        name,
        format_args!("cannot be read as Parquet: {}", error.to_string().lines().next().unwrap_or_default()),
        "check that the file is whole; write it anew if it is damaged",
    )
}

/// Where the bytes of a Parquet file come from.
enum TableSource {
    Ranges(Location, u64),
    File(File),
}

impl Length for TableSource {
    fn len(&self) -> u64 {
        match self {
            TableSource::Ranges(_, size) => *size,
            TableSource::File(file) => Length::len(file),
        }
    }
}

impl ChunkReader for TableSource {
    type T = Box<dyn std::io::Read>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        match self {
            // Headers of pages are read this way, a few bytes each.
            TableSource::Ranges(_, size) => {
                let length = (size - start.min(*size)).min(64 << 10);
                Ok(Box::new(self.get_bytes(start, length as usize)?.reader()))
            }
            TableSource::File(file) => Ok(Box::new(file.get_read(start)?)),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        match self {
            TableSource::Ranges(location, size) => {
                if start.checked_add(length as u64).is_none_or(|end| end > *size) {
                    return Err(ParquetError::EOF(format!("it ends before byte {start} + {length}")));
                }
                location
                    .read_range(start, length as u64)
                    .map_err(|error| ParquetError::External(Box::new(error)))
            }
            TableSource::File(file) => file.get_bytes(start, length),
        }
    }
}
