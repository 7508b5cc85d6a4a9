//! Reads Parquet inputs as record batches.

use super::decode::batch::is_number;
use super::input::Input;
use super::roles::{ColumnRole, RoleOptions, Roles};
use crate::dataset::verify_part;
use crate::table::guarded;
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::fs::File;
use std::io::Read;

/// An open Parquet input.
pub(super) struct ParquetInput {
    /// Name of the input in messages.
    pub name: String,
    /// Names of the columns, in order.
    pub names: Vec<String>,
    types: Vec<DataType>,
    /// Names of the columns that hold the index of a data frame, if pandas wrote the file.
    index: Vec<String>,
    reader: ParquetRecordBatchReader,
}

/// Approximate number of cells per batch. Wide tables are therefore read in batches of few rows.
const BATCH_CELLS: usize = 1 << 18;

impl ParquetInput {
    /// Opens a Parquet file. Remote files and standard input are copied to a temporary file first.
    pub(super) fn open(input: &Input, stdin: Option<&mut dyn std::io::Read>) -> Result<Self> {
        let part_file = match &input.part {
            Some((part, directory)) => {
                verify_part(directory, part)?;
                directory.open_file(&part.name)
            }
            None => None,
        };
        let file = match (&input.location, stdin) {
            (Some(Location::Local(path)), _) => part_file.unwrap_or_else(|| File::open(path)),
            // The Parquet reader needs random access, which is slow or impossible for object stores and streams.
            (Some(location), _) => copy_to_temporary(&mut location.open()?),
            (None, Some(stdin)) => copy_to_temporary(stdin),
            (None, None) => unreachable!("an input is a location or standard input"),
        };
        let file = file.map_err(|error| Error::io(&input.name, "read", error))?;
        let opened = guarded(|| {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
            let index = pandas_index(builder.metadata().file_metadata().key_value_metadata());
            let rows = BATCH_CELLS / builder.schema().fields().len().max(1);
            Ok((builder.with_batch_size(rows.clamp(16, 8192)).build()?, index))
        });
        let (reader, index) = opened.map_err(|error| invalid_parquet(&input.name, &error))?;
        let fields = arrow::array::RecordBatchReader::schema(&reader);
        Ok(ParquetInput {
            name: input.name.clone(),
            names: fields.fields().iter().map(|field| field.name().clone()).collect(),
            types: fields.fields().iter().map(|field| field.data_type().clone()).collect(),
            index,
            reader,
        })
    }

    /// Assigns roles to the columns by their names. Features of a string type become categorical.
    pub(super) fn roles(&self, options: &RoleOptions) -> Result<Roles> {
        let options = RoleOptions { index: self.index.clone(), ..options.clone() };
        let mut roles = Roles::by_names(&self.names, &options, &self.name)?;
        for (role, kind) in roles.columns.iter_mut().zip(&self.types) {
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

    /// Returns the next batch of rows, or `None` at the end.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let reader = &mut self.reader;
        guarded(|| reader.next().transpose().map_err(ParquetError::from))
            .map_err(|error| invalid_parquet(&self.name, &error))
    }
}

/// Returns the names of the index columns according to `index_columns` in the metadata that pandas writes. Only
/// strings are names of columns. An object describes a range index, which is not stored as a column.
fn pandas_index(metadata: Option<&Vec<KeyValue>>) -> Vec<String> {
    let pandas = metadata.into_iter().flatten().find(|entry| entry.key == "pandas");
    let described: Option<serde_json::Value> =
        pandas.and_then(|entry| serde_json::from_str(entry.value.as_deref()?).ok());
    let columns = described.as_ref().and_then(|described| described["index_columns"].as_array());
    columns.into_iter().flatten().filter_map(|column| column.as_str().map(str::to_owned)).collect()
}

fn invalid_parquet(name: &str, error: &ParquetError) -> Error {
    Error::place(
        name,
        format_args!("invalid Parquet file: {}", error.to_string().lines().next().unwrap_or_default()),
        "check that the file is complete; write it again if it is damaged",
    )
}

/// Copies a stream to a temporary file.
fn copy_to_temporary(stream: &mut dyn Read) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    std::io::copy(stream, &mut file)?;
    Ok(file)
}
