//! Reading a table: every byte is checked before any is decoded, so damage is an error that names the
//! file, never another value. Row groups are read one after another, as they are asked for.

use super::footer::{self, Footer};
use super::kind::TableKind;
use crate::dataset::{FileStretch, guarded};
use crate::error::{Error, Result};
use crate::storage::{Location, PinnedFile};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that are decoded together.
const BATCH_ROWS: usize = 1 << 16;

/// A table that is whole.
pub struct TableReader {
    kind: TableKind,
    file: PinnedFile,
    metadata: ArrowReaderMetadata,
    values: BTreeMap<String, String>,
}

impl TableReader {
    /// Opens a table of some kind and checks all its bytes.
    pub fn open(location: &Location, kind: TableKind) -> Result<Self> {
        let table = Self::open_as(location, kind.name(), kind.remedy())?;
        if table.kind != kind {
            let problem = format_args!("this is {}, not {}", table.kind.noun(), kind.noun());
            return Err(Error::place(location, problem, kind.remedy()));
        }
        Ok(table)
    }

    /// Opens a table of any kind and checks all its bytes.
    pub fn open_any(location: &Location) -> Result<Self> {
        Self::open_as(location, "table", "name a file or a dataset that planetree wrote")
    }

    fn open_as(location: &Location, wanted: &str, remedy: &str) -> Result<Self> {
        let not_ours = |problem: &str| {
            Error::place(location, format_args!("not a planetree {wanted}: {problem}"), remedy)
        };
        let Some(file) = PinnedFile::open(location)? else {
            return Err(match location {
                Location::Local(path) if path.is_dir() => not_ours("it is a directory"),
                _ => location.absent(),
            });
        };
        let footer = match Footer::read(&file)? {
            Footer::Unknown => return Err(not_ours("it is not a Parquet file")),
            Footer::Foreign(what) => return Err(not_ours(what)),
            Footer::Broken(problem) => return Err(damaged(location, problem)),
            Footer::Ours(footer) => footer,
        };
        if !footer.matches(&file)? {
            return Err(damaged(location, "its content does not match its checksum"));
        }
        let metadata = guarded(|| {
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            ArrowReaderMetadata::try_new(Arc::new(footer.decode(&file)?), options)
        });
        let metadata = metadata.map_err(|problem| damaged(location, problem))?;
        let pairs = metadata.metadata().file_metadata().key_value_metadata().into_iter().flatten();
        let values: BTreeMap<String, String> =
            pairs.filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?))).collect();
        let name = values.get(footer::TABLE).map_or("", String::as_str);
        match TableKind::from_name(name) {
            Some(kind) => Ok(TableReader { kind, file, metadata, values }),
            None => Err(not_ours(&format!("it is a table of another kind, {name:?}"))),
        }
    }

    /// What a file says it is; `None` if it is no table of ours, or not there. The rest of the file is
    /// not checked.
    pub fn kind_of(location: &Location) -> Result<Option<TableKind>> {
        let Some(file) = PinnedFile::open(location)? else { return Ok(None) };
        let Footer::Ours(footer) = Footer::read(&file)? else { return Ok(None) };
        let metadata = footer.decode(&file).ok();
        Ok(metadata.and_then(|metadata| TableKind::from_name(footer::value(&metadata, footer::TABLE)?)))
    }

    /// What it is.
    pub fn kind(&self) -> TableKind {
        self.kind
    }

    /// Where the table is.
    pub fn location(&self) -> &Location {
        self.file.location()
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.metadata.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// A value of the file's metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// All of the file's metadata.
    pub fn all_metadata(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// The rows in their order, some at a time. The first error is the last item.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> {
        TableBatches { table: self, group: 0, current: None }
    }

    /// The decoder of one row group, whose bytes are read as a whole.
    fn open_group(&self, group: usize) -> Result<ParquetRecordBatchReader> {
        let location = self.location();
        let stretch = guarded(|| {
            let columns = self.metadata.metadata().row_group(group).columns();
            let ranges = columns.iter().map(|column| column.byte_range());
            let start = ranges.clone().map(|(start, _)| start).min().unwrap_or(0);
            let end = ranges.map(|(start, length)| start.saturating_add(length)).max().unwrap_or(0);
            if end > self.file.size() {
                return Err(ParquetError::EOF(format!("row group {group} goes beyond the file's end")));
            }
            Ok((start, end - start))
        });
        let (offset, length) = stretch.map_err(|problem| damaged(location, problem))?;
        let bytes = self.file.read_range(offset, length)?;
        let source = FileStretch { file_bytes: self.file.size(), offset, bytes };
        let reader = guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(source, self.metadata.clone())
                .with_row_groups(vec![group])
                .with_batch_size(BATCH_ROWS)
                .build()
        });
        reader.map_err(|problem| damaged(location, problem))
    }
}

struct TableBatches<'a> {
    table: &'a TableReader,
    /// The row group that comes next.
    group: usize,
    current: Option<ParquetRecordBatchReader>,
}

impl TableBatches<'_> {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(reader) = &mut self.current {
                let next: ParquetResult<_> =
                    guarded(|| reader.next().transpose().map_err(ParquetError::from));
                match next.map_err(|problem| damaged(self.table.location(), problem))? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.current = None,
                }
            }
            if self.group == self.table.metadata.metadata().num_row_groups() {
                return Ok(None);
            }
            self.current = Some(self.table.open_group(self.group)?);
            self.group += 1;
        }
    }
}

impl Iterator for TableBatches<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            (self.current, self.group) = (None, self.table.metadata.metadata().num_row_groups());
        }
        step.transpose()
    }
}

fn damaged(location: &Location, problem: impl std::fmt::Display) -> Error {
    Error::place(
        location,
        format_args!("damaged: {problem}"),
        "restore the file from a copy, or make it again",
    )
}
