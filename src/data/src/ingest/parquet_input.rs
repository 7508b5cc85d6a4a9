//! Reads Parquet inputs as record batches. Texts are views of the pages that contain them, so a long text that occurs in
//! many rows is in memory once.

use super::batches::{BatchSource, SourceBatch, batch_rows, column_names, roles_of};
use super::input::Input;
use super::parquet_pages::{PageWalk, walk_pages};
use super::roles::{ColumnRole, RoleOptions, Roles};
use crate::dataset::verify_part;
use crate::table::{TableKind, guarded};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_size;
use planetree_base::storage::Location;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// An open Parquet input.
pub(super) struct ParquetInput {
    /// Name of the input in messages.
    pub name: String,
    /// The columns with the types that they are stored as.
    schema: SchemaRef,
    /// Names of the columns that hold the index of a data frame, if pandas wrote the file.
    index: Vec<String>,
    file: File,
    metadata: ArrowReaderMetadata,
    /// `None` until the first batch is read.
    reader: Option<ParquetRecordBatchReader>,
}

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
            let options = ArrowReaderOptions::new();
            let stored = ArrowReaderMetadata::load(&file, options.clone())?;
            let index = pandas_index(stored.metadata().file_metadata().key_value_metadata());
            let schema = stored.schema().clone();
            Ok((with_text_views(&stored, options)?, schema, index))
        });
        let (metadata, schema, index) = opened.map_err(|error| invalid_parquet(&input.name, &error))?;
        Ok(ParquetInput { name: input.name.clone(), schema, index, file, metadata, reader: None })
    }

    /// Returns the names of the columns, in order.
    pub(super) fn names(&self) -> Vec<String> {
        column_names(&self.schema)
    }

    /// Assigns roles to the columns.
    pub(super) fn roles(&self, options: &RoleOptions) -> Result<Roles> {
        let options = RoleOptions { index: self.index.clone(), ..options.clone() };
        let roles = roles_of(&self.schema, &options, &self.name)?;
        for (role, field) in roles.columns.iter().zip(self.schema.fields()) {
            if *role != ColumnRole::Ignored && is_boolean_dictionary(field.data_type()) {
                let column = field.name();
                return Err(Error::place(
                    format_args!("{}: column {column}", self.name),
                    "the type dictionary of booleans, such as a Categorical of True and False, cannot be read",
                    format_args!("write it as a plain boolean column, or pass --ignore-columns {column}"),
                ));
            }
        }
        Ok(roles)
    }

    /// Fails if the file is a table of planetree without queries, such as a model.
    pub(super) fn refuse_own_table(&self) -> Result<()> {
        let kind = TableKind::of_metadata(self.metadata.metadata());
        match kind.filter(|_| self.schema.column_with_name("query_id").is_none()) {
            None => Ok(()),
            Some(kind) => Err(Error::place(
                &self.name,
                format_args!("this is {} of planetree, not a table of queries and documents", kind.noun()),
                "pass judgments, features or a dataset; planetree describe shows what a file is",
            )),
        }
    }

    /// Verifies the checksums of all pages of used columns, where there are any. Fails if a page needs more than a quarter
    /// of the memory limit: a page is decompressed as a whole.
    pub(super) fn check_pages(&self, roles: &Roles, memory_limit: u64) -> Result<()> {
        let used = self.used_columns(roles);
        for group in self.metadata.metadata().row_groups() {
            let chunks = group.columns().iter().enumerate();
            for (_, chunk) in chunks.filter(|(leaf, _)| used.leaf_included(*leaf)) {
                let column = chunk.column_path().string();
                // The range of a damaged file may be anywhere.
                let range = guarded(|| Ok(chunk.byte_range()))
                    .map_err(|error| invalid_parquet(&self.name, &error))?;
                let walked = walk_pages(&self.file, range.0..range.0.saturating_add(range.1));
                let bytes = match walked {
                    Ok(PageWalk::Largest(bytes)) => bytes,
                    Ok(PageWalk::Damaged(at)) => {
                        return Err(Error::place(
                            &self.name,
                            format_args!(
                                "damaged: column {column}: the page at byte {at} does not match its checksum"
                            ),
                            "restore the file from a copy, or write it again",
                        ));
                    }
                    // The decoder reports what is wrong.
                    Ok(PageWalk::Unknown) | Err(_) => continue,
                };
                if bytes > memory_limit / 4 {
                    return Err(Error::usage(
                        format_args!(
                            "{}: column {column}: a page of {} does not fit in --memory-limit {}",
                            self.name,
                            shown_size(bytes),
                            shown_size(memory_limit)
                        ),
                        format_args!(
                            "raise it to at least {} MiB, or write the file with smaller pages",
                            (4 * bytes).div_ceil(1 << 20)
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Selects the columns that have a role. Others are not read.
    fn used_columns(&self, roles: &Roles) -> ProjectionMask {
        let used = roles.columns.iter().enumerate().filter(|(_, role)| **role != ColumnRole::Ignored);
        ProjectionMask::roots(self.metadata.parquet_schema(), used.map(|(place, _)| place))
    }
}

impl BatchSource for ParquetInput {
    fn next_batch(&mut self, roles: &Roles, hasher: &mut Xxh3) -> Result<Option<SourceBatch>> {
        if self.reader.is_none() {
            let mask = self.used_columns(roles);
            let rows = batch_rows(self.schema.fields().len());
            let file = self.file.try_clone().map_err(|error| Error::io(&self.name, "read", error))?;
            let metadata = self.metadata.clone();
            let reader = guarded(|| {
                ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                    .with_projection(mask)
                    .with_batch_size(rows)
                    .build()
            });
            self.reader = Some(reader.map_err(|error| invalid_parquet(&self.name, &error))?);
        }
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let batch = guarded(|| reader.next().transpose().map_err(ParquetError::from))
            .map_err(|error| invalid_parquet(&self.name, &error))?;
        Ok(batch.map(|batch| {
            batch.columns().iter().for_each(|column| hash_column(column, hasher));
            let bytes = batch.get_array_memory_size();
            SourceBatch { batch, bytes }
        }))
    }
}

/// Adds the content of a column of any type to a hash, by hashing its buffers in memory. Texts are hashed as if they
/// were stored one after the other.
fn hash_column(column: &ArrayRef, hasher: &mut Xxh3) {
    if let Some(text) = column.as_string_view_opt() {
        let mut end = 0i64;
        hasher.update(&end.to_le_bytes());
        for value in text.iter() {
            end += value.map_or(0, str::len) as i64;
            hasher.update(&end.to_le_bytes());
        }
        text.iter().flatten().for_each(|value| hasher.update(value.as_bytes()));
        if let Some(nulls) = text.nulls() {
            hasher.update(nulls.validity());
        }
        return;
    }
    let data = column.to_data();
    for buffer in data.buffers() {
        hasher.update(buffer);
    }
    if let Some(nulls) = data.nulls() {
        hasher.update(nulls.validity());
    }
}

/// Checks whether this is the type of dictionaries of booleans, which the Parquet decoder does not support.
fn is_boolean_dictionary(kind: &DataType) -> bool {
    matches!(kind, DataType::Dictionary(_, values) if **values == DataType::Boolean)
}

/// Changes the types of text columns to views of text.
fn with_text_views(
    stored: &ArrowReaderMetadata,
    options: ArrowReaderOptions,
) -> ParquetResult<ArrowReaderMetadata> {
    let is_text = |kind: &DataType| match kind {
        DataType::Dictionary(_, values) => matches!(**values, DataType::Utf8 | DataType::LargeUtf8),
        kind => matches!(kind, DataType::Utf8 | DataType::LargeUtf8),
    };
    let viewed = |field: &Arc<Field>| match is_text(field.data_type()) {
        true => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        false => field.clone(),
    };
    let fields: Vec<Arc<Field>> = stored.schema().fields().iter().map(viewed).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, stored.schema().metadata().clone()));
    ArrowReaderMetadata::try_new(stored.metadata().clone(), options.with_schema(schema))
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BooleanArray, Int64Array, RecordBatch};
    use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
    use parquet::arrow::encode_arrow_schema;
    use parquet::file::properties::WriterProperties;

    #[test]
    fn a_dictionary_of_booleans_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let columns: [(&str, ArrayRef); 2] = [
            ("qid", Arc::new(Int64Array::from(vec![1, 1]))),
            ("seen", Arc::new(BooleanArray::from(vec![true, false]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        // For a Categorical, pandas stores booleans and says in the metadata that they are a dictionary.
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Boolean));
        let stored =
            Schema::new(vec![Field::new("qid", DataType::Int64, true), Field::new("seen", dictionary, true)]);
        let entry = KeyValue::new("ARROW:schema".to_owned(), encode_arrow_schema(&stored));
        let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![entry])).build();
        let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true).with_properties(properties);
        let file = File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let table = ParquetInput::open(&Input::at(Location::Local(path)), None).unwrap();
        let error = table.roles(&RoleOptions::default()).unwrap_err();
        assert!(error.to_string().contains("column seen: the type dictionary of booleans"), "{error}");
        assert_eq!(error.remedy(), Some("write it as a plain boolean column, or pass --ignore-columns seen"));
        let options = RoleOptions { ignored: vec!["seen".to_owned()], ..RoleOptions::default() };
        assert!(table.roles(&options).is_ok());
    }
}
