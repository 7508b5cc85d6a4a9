//! Reading a dataset: every stretch of bytes is checked against the manifest before it is decoded,
//! so damage is an error that names the file, never another value.

use super::manifest::{Manifest, PartEntry, Stretch};
use crate::table::{FileStretch, guarded};
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

/// An open dataset.
pub struct DatasetReader {
    directory: HeldDirectory,
    manifest: Manifest,
    /// The fingerprint that was found by reading, where the manifest has none.
    pub(super) scanned: OnceLock<Digest>,
}

/// One row group of a dataset: a file by its place in the manifest, and the group within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId {
    /// Which file.
    pub file: usize,
    /// Which of its row groups.
    pub group: usize,
}

impl DatasetReader {
    /// Opens a dataset and checks its manifest. It stays the one that was opened if it is replaced.
    pub fn open(location: &Location) -> Result<Self> {
        let (directory, manifest) = Manifest::hold(location)?;
        Ok(DatasetReader { directory, manifest, scanned: OnceLock::new() })
    }

    /// Where the dataset is.
    pub fn location(&self) -> &Location {
        self.directory.location()
    }

    /// What the dataset says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// All row groups in the order of the rows.
    pub fn groups(&self) -> Vec<GroupId> {
        let of_file = |(file, entry): (usize, &PartEntry)| {
            (0..entry.row_groups.len()).map(move |group| GroupId { file, group })
        };
        self.manifest.files.iter().enumerate().flat_map(of_file).collect()
    }

    fn first_row(&self, id: GroupId) -> u64 {
        let files = &self.manifest.files;
        let before = &files[id.file].row_groups[..id.group];
        files[..id.file].iter().map(|file| file.rows).chain(before.iter().map(|group| group.rows)).sum()
    }

    /// Reads a row group's bytes and checks them; its columns are decoded as they are asked for.
    pub fn open_group(&self, id: GroupId) -> Result<GroupReader> {
        let entry = &self.manifest.files[id.file];
        let location = self.location().join(&entry.name);
        let footer = self.read_checked(entry, &entry.footer)?;
        let stretch = entry.row_groups[id.group].stretch;
        let bytes = self.read_checked(entry, &stretch)?;
        let metadata = guarded(|| {
            let tail = FileStretch { file_bytes: entry.bytes, offset: entry.footer.offset, bytes: footer };
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&tail)?;
            ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new())
        });
        Ok(GroupReader {
            metadata: metadata.map_err(|problem| damaged(&location, problem))?,
            source: FileStretch { file_bytes: entry.bytes, offset: stretch.offset, bytes },
            rows: entry.row_groups[id.group].rows as usize,
            first_row: self.first_row(id),
            group: id.group,
            location,
        })
    }

    fn read_checked(&self, entry: &PartEntry, stretch: &Stretch) -> Result<Bytes> {
        read_checked(&self.directory, &entry.name, stretch).map_err(|error| self.explained(error))
    }

    /// What cannot be read may have been replaced: in an object store old files stay for a day only.
    fn explained(&self, error: Error) -> Error {
        let is_replaced = |now: Result<Manifest>| now.is_ok_and(|now| now != self.manifest);
        match error {
            Error::Place { .. } if is_replaced(Manifest::read(self.location())) => replaced(self.location()),
            error => error,
        }
    }
}

/// A row group whose bytes are in memory, as they are on disk.
pub struct GroupReader {
    location: Location,
    metadata: ArrowReaderMetadata,
    source: FileStretch,
    group: usize,
    rows: usize,
    first_row: u64,
}

impl GroupReader {
    /// The number of its first row in the dataset, counted from 0.
    pub fn first_row(&self) -> u64 {
        self.first_row
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.metadata.schema().fields().len()
    }

    /// The names of all columns in their order.
    pub fn names(&self) -> Vec<&str> {
        self.metadata.schema().fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Decodes some of the columns, by their places. A wide group is best read a few at a time.
    pub fn read(&self, columns: Range<usize>) -> Result<RecordBatch> {
        let mut reader = self.decoder(columns, self.rows)?;
        let empty = || Err(ParquetError::General("the row group is empty".to_owned()));
        let decoded = guarded(|| reader.next().map_or_else(empty, |batch| Ok(batch?)));
        let batch = decoded.map_err(|problem| damaged(&self.location, problem))?;
        self.check_rows(batch.num_rows())?;
        Ok(batch)
    }

    /// Decodes some of the columns, by their places in ascending order, and hands on `batch_rows` rows
    /// at a time, the last time fewer: a group too wide to be held decoded is read this way.
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
        Err(damaged(&self.location, format_args!("row group {} has {rows} rows", self.group)))
    }

    /// Decodes all columns.
    pub fn read_all(&self) -> Result<RecordBatch> {
        self.read(0..self.names().len())
    }
}

/// Checks a whole file of a dataset against what the manifest says of it, for readers that go their
/// own way.
pub fn verify_part(directory: &HeldDirectory, entry: &PartEntry) -> Result<()> {
    let stretches = entry.row_groups.iter().map(|group| &group.stretch).chain([&entry.footer]);
    stretches.into_iter().try_for_each(|stretch| read_checked(directory, &entry.name, stretch).map(drop))
}

/// Reads a stretch of a file and checks it.
fn read_checked(directory: &HeldDirectory, name: &str, stretch: &Stretch) -> Result<Bytes> {
    let end = stretch.offset + stretch.bytes;
    let location = directory.location().join(name);
    let size = directory.size(name)?.ok_or_else(|| damaged(&location, "the file is missing"))?;
    if size < end {
        return Err(damaged(&location, "the file is shorter than it was"));
    }
    let bytes = directory.read_range(name, stretch.offset, stretch.bytes)?;
    if digest_of(&bytes) != stretch.xxh3 {
        let problem = format_args!("bytes {}..{end} do not match their checksum", stretch.offset);
        return Err(damaged(&location, problem));
    }
    Ok(bytes)
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
