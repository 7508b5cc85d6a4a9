//! Reads a dataset. Every byte range is verified against the manifest before it is decoded, so a damaged file gives
//! an error instead of wrong values.

use super::manifest::{ChecksummedRange, Manifest, PartEntry};
use crate::table::{FileSlice, guarded};
use arrow::array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, HeldDirectory, Location, digest_of};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Rows per byte of a file up to which the manifest is believed until the file is read.
const PLAUSIBLE_ROWS_PER_BYTE: u64 = 8;

/// An open dataset.
pub struct DatasetReader {
    directory: HeldDirectory,
    manifest: Manifest,
    /// The fingerprint, if the manifest has none and it has been computed from the rows.
    pub(super) scanned: OnceLock<Digest>,
}

/// Identifies a row group of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId {
    /// Index of the file in the manifest.
    pub file: usize,
    /// Index of the row group within the file.
    pub group: usize,
}

impl DatasetReader {
    /// Opens a dataset and verifies its manifest. If the dataset is replaced later, the reader still reads the
    /// version that it opened.
    pub fn open(location: &Location) -> Result<Self> {
        let (directory, manifest) = Manifest::open(location)?;
        let reader = DatasetReader { directory, manifest, scanned: OnceLock::new() };
        // Memory is allocated by the numbers of rows before the files are read. Numbers that are unlikely for the size
        // of a file are therefore compared with its footer first.
        for (file, entry) in reader.manifest.files.iter().enumerate() {
            if entry.rows / PLAUSIBLE_ROWS_PER_BYTE > entry.bytes {
                reader.footer(file)?;
            }
        }
        Ok(reader)
    }

    /// Reads, verifies and decodes the footer of a file. Fails if its numbers of rows differ from the manifest's.
    fn footer(&self, file: usize) -> Result<ArrowReaderMetadata> {
        let entry = &self.manifest.files[file];
        let location = self.location().join(&entry.name);
        let footer = self.read_checked(entry, &entry.footer)?;
        let metadata = guarded(|| {
            let tail = FileSlice { file_bytes: entry.bytes, offset: entry.footer.offset, bytes: footer };
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&tail)?;
            ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new())
        });
        let metadata = metadata.map_err(|problem| damaged(&location, problem))?;
        let rows = metadata.metadata().row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
        if !rows.eq(entry.row_groups.iter().map(|group| Some(group.rows))) {
            return Err(damaged(&location, "its numbers of rows differ from those of the manifest"));
        }
        Ok(metadata)
    }

    /// Returns the location of the dataset.
    pub fn location(&self) -> &Location {
        self.directory.location()
    }

    /// Returns the manifest of the dataset.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns all row groups in row order.
    pub fn groups(&self) -> Vec<GroupId> {
        let groups_of_file = |(file, entry): (usize, &PartEntry)| {
            (0..entry.row_groups.len()).map(move |group| GroupId { file, group })
        };
        self.manifest.files.iter().enumerate().flat_map(groups_of_file).collect()
    }

    fn first_row(&self, id: GroupId) -> u64 {
        let files = &self.manifest.files;
        let before = &files[id.file].row_groups[..id.group];
        files[..id.file].iter().map(|file| file.rows).chain(before.iter().map(|group| group.rows)).sum()
    }

    /// Reads and verifies the bytes of a row group. Columns are decoded on request.
    pub fn open_group(&self, id: GroupId) -> Result<GroupReader> {
        let entry = &self.manifest.files[id.file];
        let location = self.location().join(&entry.name);
        let metadata = self.footer(id.file)?;
        let range = entry.row_groups[id.group].range;
        let bytes = self.read_checked(entry, &range)?;
        Ok(GroupReader {
            metadata,
            source: FileSlice { file_bytes: entry.bytes, offset: range.offset, bytes },
            rows: entry.row_groups[id.group].rows as usize,
            first_row: self.first_row(id),
            group: id.group,
            location,
        })
    }

    fn read_checked(&self, entry: &PartEntry, range: &ChecksummedRange) -> Result<Bytes> {
        read_checked(&self.directory, &entry.name, range).map_err(|error| self.explain_replacement(error))
    }

    /// Converts the error of a failed read to a clearer one if the dataset has been replaced. In object stores, the
    /// files of a replaced dataset are removed after a day.
    fn explain_replacement(&self, error: Error) -> Error {
        let is_replaced = |now: Result<Manifest>| now.is_ok_and(|now| now != self.manifest);
        match error {
            Error::Place { .. } if is_replaced(Manifest::read(self.location())) => replaced(self.location()),
            error => error,
        }
    }
}

/// A row group whose encoded bytes are in memory.
pub struct GroupReader {
    location: Location,
    metadata: ArrowReaderMetadata,
    source: FileSlice,
    group: usize,
    rows: usize,
    first_row: u64,
}

impl GroupReader {
    /// Returns the number of the group's first row in the dataset, counted from 0.
    pub fn first_row(&self) -> u64 {
        self.first_row
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns, including those that are not features.
    pub fn columns(&self) -> usize {
        self.metadata.schema().fields().len()
    }

    /// Returns the names of all columns in order.
    pub fn names(&self) -> Vec<&str> {
        self.metadata.schema().fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Decodes a range of columns. A group with many columns should be read a few columns at a time, to save memory.
    pub fn read(&self, columns: Range<usize>) -> Result<RecordBatch> {
        let mut reader = self.decoder(columns, self.rows)?;
        let empty = || Err(ParquetError::General("the row group is empty".to_owned()));
        let decoded = guarded(|| reader.next().map_or_else(empty, |batch| Ok(batch?)));
        let batch = decoded.map_err(|problem| damaged(&self.location, problem))?;
        self.check_rows(batch.num_rows())?;
        Ok(batch)
    }

    /// Decodes columns in batches of `batch_rows` rows and passes them to `sink`. The last batch may be smaller.
    /// `columns` contains ascending column indices. This function is meant for row groups that are too wide to be
    /// decoded as a whole.
    pub fn read_batches(
        &self,
        columns: &[usize],
        batch_rows: usize,
        sink: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let mut reader = self.decoder(columns.iter().copied(), batch_rows)?;
        let mut rows = 0;
        loop {
            let decoded = guarded(|| reader.next().transpose().map_err(ParquetError::from));
            match decoded.map_err(|problem| damaged(&self.location, problem))? {
                Some(batch) => {
                    rows += batch.num_rows();
                    sink(batch)?;
                }
                None => return self.check_rows(rows),
            }
        }
    }

    fn decoder(
        &self,
        columns: impl IntoIterator<Item = usize>,
        batch_rows: usize,
    ) -> Result<ParquetRecordBatchReader> {
        let decoder = guarded(|| {
            let mask = ProjectionMask::leaves(self.metadata.parquet_schema(), columns);
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.source.clone(), self.metadata.clone())
                .with_row_groups(vec![self.group])
                .with_projection(mask)
                .with_batch_size(batch_rows)
                .build()
        });
        decoder.map_err(|problem| damaged(&self.location, problem))
    }

    fn check_rows(&self, rows: usize) -> Result<()> {
        if rows == self.rows {
            return Ok(());
        }
        let problem = format_args!("row group {} has {rows} rows, expected {}", self.group, self.rows);
        Err(damaged(&self.location, problem))
    }

    /// Decodes all columns.
    pub fn read_all(&self) -> Result<RecordBatch> {
        self.read(0..self.names().len())
    }
}

/// Verifies all bytes of a file of a dataset against the checksums in the manifest. This function is meant for code
/// that does not read the file with a [`DatasetReader`].
pub fn verify_part(directory: &HeldDirectory, entry: &PartEntry) -> Result<()> {
    let ranges = entry.row_groups.iter().map(|group| &group.range).chain([&entry.footer]);
    ranges.into_iter().try_for_each(|range| read_checked(directory, &entry.name, range).map(drop))
}

/// Reads a byte range of a file and verifies its checksum.
fn read_checked(directory: &HeldDirectory, name: &str, range: &ChecksummedRange) -> Result<Bytes> {
    let end = range.offset + range.bytes;
    let location = directory.location().join(name);
    let size = directory.size(name)?.ok_or_else(|| damaged(&location, "the file is missing"))?;
    if size < end {
        return Err(damaged(&location, "the file is truncated"));
    }
    let bytes = directory.read_range(name, range.offset, range.bytes)?;
    if digest_of(&bytes) != range.xxh3 {
        let problem = format_args!("bytes {}..{end} do not match their checksum", range.offset);
        return Err(damaged(&location, problem));
    }
    Ok(bytes)
}

/// Returns the error for a dataset whose columns differ from its manifest.
pub fn unexpected_columns(dataset: &Location) -> Error {
    Error::place(dataset, "malformed dataset: unexpected columns", "convert the data again")
}

fn damaged(location: &Location, problem: impl std::fmt::Display) -> Error {
    Error::place(
        location,
        format_args!("damaged: {problem}"),
        "restore the file from a copy, or convert the data again",
    )
}

fn replaced(dataset: &Location) -> Error {
    Error::place(dataset, "the dataset was replaced while it was being read", "run the command again")
}
