//! Reads a table. All bytes are verified before any are decoded, so a damaged file gives an error instead of wrong
//! values. Row groups are read on demand.

use super::footer::{self, Footer};
use super::groups::{GroupBatches, ParquetFile};
use super::kind::TableKind;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, PinnedFile};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of rows per batch.
const BATCH_ROWS: usize = 1 << 16;

/// A table whose checksum has been verified.
pub struct TableReader {
    kind: TableKind,
    file: Arc<ParquetFile>,
    values: BTreeMap<String, String>,
}

/// A Parquet file that planetree or another program wrote.
pub enum AnyParquet {
    /// A table of planetree whose checksum has been verified.
    Ours(TableReader),
    /// A file of another program. It cannot be verified, because it has no checksum.
    Foreign(Arc<ParquetFile>),
}

impl TableReader {
    /// Opens a table and verifies its checksum. Fails if the table is not of the given kind.
    pub fn open(location: &Location, kind: TableKind) -> Result<Self> {
        let table = Self::open_as(location, kind.name(), kind.remedy())?;
        if table.kind != kind {
            let problem = format_args!("this is {}, not {}", table.kind.noun(), kind.noun());
            return Err(Error::place(location, problem, kind.remedy()));
        }
        Ok(table)
    }

    /// Opens a table of any kind and verifies its checksum.
    pub fn open_any(location: &Location) -> Result<Self> {
        Self::open_as(location, "table", "use a file or dataset written by planetree")
    }

    /// Opens a table of any kind and verifies its checksum, or opens a Parquet file of another program. `remedy` is
    /// the advice in the error message for any other file.
    pub fn open_or_foreign(location: &Location, remedy: &str) -> Result<AnyParquet> {
        Self::open_parquet(location, "table", remedy)
    }

    /// Opens a Parquet file without verifying its checksum, because the caller has already verified it.
    pub fn open_checked(location: &Location) -> Result<Arc<ParquetFile>> {
        let file = PinnedFile::open(location)?.ok_or_else(|| location.absent())?;
        let decoded = match Footer::read(&file)? {
            Footer::Foreign(footer) => footer.decode(&file),
            Footer::Table(footer) => footer.decode(&file),
            Footer::Unknown | Footer::DatasetPart | Footer::Broken(_) => {
                return Err(damaged(location, "unexpected file content"));
            }
        };
        Ok(Arc::new(ParquetFile::new(file, decoded)?))
    }

    fn open_as(location: &Location, wanted: &str, remedy: &str) -> Result<Self> {
        match Self::open_parquet(location, wanted, remedy)? {
            AnyParquet::Ours(table) => Ok(table),
            AnyParquet::Foreign(_) => Err(not_ours(location, wanted, "not created by planetree", remedy)),
        }
    }

    fn open_parquet(location: &Location, wanted: &str, remedy: &str) -> Result<AnyParquet> {
        let not_ours = |problem: &str| not_ours(location, wanted, problem, remedy);
        let Some(file) = PinnedFile::open(location)? else {
            return Err(match location {
                Location::Local(path) if path.is_dir() => not_ours("it is a directory"),
                _ => location.absent(),
            });
        };
        let footer = match Footer::read(&file)? {
            Footer::Unknown => return Err(not_ours("it is not a Parquet file")),
            Footer::DatasetPart => return Err(not_ours("it is a part of a dataset")),
            Footer::Broken(problem) => return Err(damaged(location, problem)),
            Footer::Foreign(footer) => {
                let decoded = footer.decode(&file);
                return Ok(AnyParquet::Foreign(Arc::new(ParquetFile::new(file, decoded)?)));
            }
            Footer::Table(footer) => footer,
        };
        if !footer.matches(&file)? {
            return Err(damaged(location, "its content does not match its checksum"));
        }
        let decoded = footer.decode(&file);
        let file = ParquetFile::new(file, decoded)?;
        let pairs = file.footer().file_metadata().key_value_metadata().into_iter().flatten();
        let values: BTreeMap<String, String> =
            pairs.filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?))).collect();
        let name = values.get(footer::TABLE).map_or("", String::as_str);
        match TableKind::from_name(name) {
            Some(kind) => Ok(AnyParquet::Ours(TableReader { kind, file: Arc::new(file), values })),
            None => Err(not_ours(&format!("unknown kind of table {name:?}"))),
        }
    }

    /// Returns the kind of a table according to its footer, or `None` if the file does not exist or is not a table of
    /// planetree. The checksum is not verified.
    pub fn kind_of(location: &Location) -> Result<Option<TableKind>> {
        let Some(file) = PinnedFile::open(location)? else { return Ok(None) };
        let Footer::Table(footer) = Footer::read(&file)? else { return Ok(None) };
        let metadata = footer.decode(&file).ok();
        Ok(metadata.and_then(|metadata| TableKind::from_name(footer::value(&metadata, footer::TABLE)?)))
    }

    /// Checks whether a file is the result of an SQL query. Such a file is a Parquet file that planetree wrote, but
    /// not a table.
    pub fn is_sql_result(location: &Location) -> Result<bool> {
        let Some(file) = PinnedFile::open(location)? else { return Ok(false) };
        let Footer::Foreign(footer) = Footer::read(&file)? else { return Ok(false) };
        let metadata = footer.decode(&file).ok();
        let writer = metadata.as_ref().and_then(|metadata| metadata.file_metadata().created_by());
        Ok(writer.is_some_and(|writer| writer.starts_with("planetree ")))
    }

    /// Returns the number of rows in any Parquet file according to its footer, or `None` if the file does not exist
    /// or is not a valid Parquet file. The checksum is not verified.
    pub fn rows_of(location: &Location) -> Result<Option<u64>> {
        let Some(file) = PinnedFile::open(location)? else { return Ok(None) };
        let metadata = match Footer::read(&file)? {
            Footer::Table(footer) => footer.decode(&file).ok(),
            Footer::Foreign(footer) => footer.decode(&file).ok(),
            _ => None,
        };
        Ok(metadata.and_then(|metadata| u64::try_from(metadata.file_metadata().num_rows()).ok()))
    }

    /// Returns the kind of table.
    pub fn kind(&self) -> TableKind {
        self.kind
    }

    /// Returns the location of the table.
    pub fn location(&self) -> &Location {
        self.file.location()
    }

    /// Returns the names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        self.file.schema()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.file.rows()
    }

    /// Returns the Parquet file, for reading its row groups.
    pub fn file(&self) -> &Arc<ParquetFile> {
        &self.file
    }

    /// Returns the metadata value with the given key.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Returns all metadata of the file.
    pub fn all_metadata(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// Returns the rows in order, in batches. The iterator ends after the first error.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> {
        TableBatches { table: self, group: 0, current: None }
    }
}

struct TableBatches<'a> {
    table: &'a TableReader,
    /// Index of the next row group.
    group: usize,
    current: Option<GroupBatches>,
}

impl TableBatches<'_> {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match self.current.as_mut().and_then(Iterator::next) {
                Some(batch) => return batch.map(Some),
                None => self.current = None,
            }
            if self.group == self.table.file.groups() {
                return Ok(None);
            }
            self.current = Some(self.table.file.group_batches(self.group, None, BATCH_ROWS)?);
            self.group += 1;
        }
    }
}

impl Iterator for TableBatches<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            (self.current, self.group) = (None, self.table.file.groups());
        }
        step.transpose()
    }
}

fn not_ours(location: &Location, wanted: &str, problem: &str, remedy: &str) -> Error {
    Error::place(location, format_args!("not a planetree {wanted}: {problem}"), remedy)
}

pub(super) fn damaged(location: &Location, problem: impl std::fmt::Display) -> Error {
    Error::place(
        location,
        format_args!("damaged: {problem}"),
        "restore the file from a copy, or create it again",
    )
}
