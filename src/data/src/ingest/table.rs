//! Parquet inputs: record batches from any place that can be read in ranges.

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
pub struct Table {
    /// Its name in messages.
    pub name: String,
    /// The names of its columns.
    pub names: Vec<String>,
    kinds: Vec<DataType>,
    /// Columns that are the index of the pandas data frame that was written.
    index: Vec<String>,
    reader: ParquetRecordBatchReader,
}

/// Cells of a batch: a wide table is read in few rows at a time.
const BATCH_CELLS: usize = 1 << 18;

impl Table {
    /// Opens a Parquet file; one that is not on this machine is put into a temporary file first.
    pub fn open(input: &Input, stdin: Option<&mut dyn std::io::Read>) -> Result<Self> {
        let held = match &input.part {
            Some((part, directory)) => {
                verify_part(directory, part)?;
                directory.open_file(&part.name)
            }
            None => None,
        };
        let file = match (&input.location, stdin) {
            (Some(Location::Local(path)), _) => held.unwrap_or_else(|| File::open(path)),
            // Pages are read in no order that a stream or a store could serve well.
            (Some(location), _) => spooled(&mut location.open()?),
            (None, Some(stdin)) => spooled(stdin),
            (None, None) => unreachable!("an input is a location or standard input"),
        };
        let file = file.map_err(|error| Error::io(&input.name, "read", &error))?;
        let opened = guarded(|| {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
            let index = pandas_index(builder.metadata().file_metadata().key_value_metadata());
            let rows = BATCH_CELLS / builder.schema().fields().len().max(1);
            Ok((builder.with_batch_size(rows.clamp(16, 8192)).build()?, index))
        });
        let (reader, index) = opened.map_err(|error| unreadable(&input.name, &error))?;
        let fields = arrow::array::RecordBatchReader::schema(&reader);
        Ok(Table {
            name: input.name.clone(),
            names: fields.fields().iter().map(|field| field.name().clone()).collect(),
            kinds: fields.fields().iter().map(|field| field.data_type().clone()).collect(),
            index,
            reader,
        })
    }

    /// What the columns hold: by name, and words where a column holds strings.
    pub fn roles(&self, options: &RoleOptions) -> Result<Roles> {
        let options = RoleOptions { index: self.index.clone(), ..options.clone() };
        let mut roles = Roles::by_names(&self.names, &options, &self.name)?;
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

/// The columns that pandas wrote its index to: `index_columns` of what it says of itself. A range, which
/// is no column, is an object there.
fn pandas_index(metadata: Option<&Vec<KeyValue>>) -> Vec<String> {
    let pandas = metadata.into_iter().flatten().find(|entry| entry.key == "pandas");
    let described: Option<serde_json::Value> =
        pandas.and_then(|entry| serde_json::from_str(entry.value.as_deref()?).ok());
    let columns = described.as_ref().and_then(|described| described["index_columns"].as_array());
    columns.into_iter().flatten().filter_map(|column| column.as_str().map(str::to_owned)).collect()
}

fn unreadable(name: &str, error: &ParquetError) -> Error {
    Error::place(
        name,
        format_args!("cannot be read as Parquet: {}", error.to_string().lines().next().unwrap_or_default()),
        "check that the file is whole; write it anew if it is damaged",
    )
}

/// All bytes of a stream in a temporary file.
fn spooled(stream: &mut dyn Read) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    std::io::copy(stream, &mut file)?;
    Ok(file)
}
