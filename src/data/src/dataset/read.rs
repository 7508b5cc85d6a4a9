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
use planetree_base::storage::{Digest, FileVersion, HeldDirectory, Location, RunningDigest, digest_of};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Rows per byte of a file up to which the manifest is believed until the file is read.
const PLAUSIBLE_ROWS_PER_BYTE: u64 = 8;

/// Number of bytes that are read at a time to verify a range of a file without keeping it.
const VERIFIED_AT_A_TIME: u64 = 1 << 20;

/// An open dataset.
pub struct DatasetReader {
    directory: Arc<HeldDirectory>,
    manifest: Manifest,
    /// The decoded footer of the file that was opened last, and its index. The row groups of a file share it.
    footer: Mutex<Option<(usize, ArrowReaderMetadata)>>,
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
        let directory = Arc::new(directory);
        let reader =
            DatasetReader { directory, manifest, footer: Mutex::default(), scanned: OnceLock::new() };
        // Memory is allocated by the numbers of rows before the files are read. Numbers that are unlikely for the size
        // of a file are therefore compared with its footer first.
        for (file, entry) in reader.manifest.files.iter().enumerate() {
            if entry.rows / PLAUSIBLE_ROWS_PER_BYTE > entry.bytes {
                reader.footer(file)?;
            }
        }
        Ok(reader)
    }

    /// Returns the verified footer of a file.
    fn footer(&self, file: usize) -> Result<ArrowReaderMetadata> {
        match &*self.last_footer() {
            Some((last, metadata)) if *last == file => return Ok(metadata.clone()),
            _ => {}
        }
        let metadata = self.read_footer(file)?;
        *self.last_footer() = Some((file, metadata.clone()));
        Ok(metadata)
    }

    /// Locks the last footer. A thread that panicked has left it whole.
    fn last_footer(&self) -> MutexGuard<'_, Option<(usize, ArrowReaderMetadata)>> {
        self.footer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads, verifies and decodes the footer of a file. Fails if its numbers of rows differ from the manifest's.
    fn read_footer(&self, file: usize) -> Result<ArrowReaderMetadata> {
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

    /// Fails if the number of rows of a row group in its file differs from that in the manifest, or if the file is missing.
    /// The rows are not read.
    pub fn check_rows(&self, id: GroupId) -> Result<()> {
        self.footer(id.file).map(drop)
    }

    /// Returns the location of the dataset.
    pub fn location(&self) -> &Location {
        self.directory.location()
    }

    /// Returns whether the dataset is on a local disk.
    fn is_local(&self) -> bool {
        matches!(self.location(), Location::Local(_))
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
        let range = &entry.row_groups[id.group].range;
        let bytes = self.read_checked(entry, range)?;
        let source = FileSlice { file_bytes: entry.bytes, offset: range.offset, bytes };
        self.group_reader(id, GroupBytes::Memory(source))
    }

    /// Returns the number of bytes in memory if all row groups are [opened on disk](DatasetReader::open_group_on_disk).
    pub fn held_bytes(&self) -> u64 {
        if self.is_local() { 0 } else { self.manifest.files.iter().map(|file| file.bytes).sum() }
    }

    /// Verifies the bytes of a row group without keeping them, if the dataset is on a local disk: columns are read when
    /// they are decoded. It is meant for reading many row groups a few columns at a time. In an object store, where
    /// reading again is slow, the bytes are kept.
    pub fn open_group_on_disk(&self, id: GroupId) -> Result<GroupReader> {
        if !self.is_local() {
            return self.open_group(id);
        }
        let entry = &self.manifest.files[id.file];
        let range = entry.row_groups[id.group].range;
        // A file that is missing is reported by the verification.
        let version = self.directory.version(&entry.name).unwrap_or_default();
        let verified = verify(&self.directory, &entry.name, &range);
        verified.map_err(|error| self.explain_replacement(error))?;
        let (directory, name) = (self.directory.clone(), entry.name.clone());
        self.group_reader(id, GroupBytes::Disk { directory, name, version, file_bytes: entry.bytes, range })
    }

    /// Decodes the footer of a row group whose bytes have been verified.
    fn group_reader(&self, id: GroupId, source: GroupBytes) -> Result<GroupReader> {
        let entry = &self.manifest.files[id.file];
        Ok(GroupReader {
            location: self.location().join(&entry.name),
            metadata: self.footer(id.file)?,
            source,
            group: id.group,
            rows: entry.row_groups[id.group].rows as usize,
            first_row: self.first_row(id),
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

/// The encoded bytes of a row group, which have been verified.
enum GroupBytes {
    Memory(FileSlice),
    /// They are read again when they are decoded.
    Disk {
        directory: Arc<HeldDirectory>,
        name: String,
        /// The version of the file whose bytes were verified.
        version: Option<FileVersion>,
        file_bytes: u64,
        range: ChecksummedRange,
    },
}

/// A verified row group.
pub struct GroupReader {
    location: Location,
    metadata: ArrowReaderMetadata,
    source: GroupBytes,
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
        let mask = guarded(|| Ok(ProjectionMask::leaves(self.metadata.parquet_schema(), columns)));
        let mask = mask.map_err(|problem| damaged(&self.location, problem))?;
        let source = self.bytes_of(&mask)?;
        let decoder = guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(source, self.metadata.clone())
                .with_row_groups(vec![self.group])
                .with_projection(mask)
                .with_batch_size(batch_rows)
                .build()
        });
        decoder.map_err(|problem| damaged(&self.location, problem))
    }

    /// Returns bytes that include the given columns.
    fn bytes_of(&self, mask: &ProjectionMask) -> Result<FileSlice> {
        let (directory, name, version, file_bytes, verified) = match &self.source {
            GroupBytes::Memory(slice) => return Ok(slice.clone()),
            GroupBytes::Disk { directory, name, version, file_bytes, range } => {
                (directory, name, version, *file_bytes, range)
            }
        };
        let ranges = guarded(|| {
            let columns = self.metadata.metadata().row_group(self.group).columns().iter().enumerate();
            let chosen = columns.filter(|(leaf, _)| mask.leaf_included(*leaf));
            Ok(chosen.map(|(_, column)| column.byte_range()).collect::<Vec<_>>())
        });
        let ranges = ranges.map_err(|problem| damaged(&self.location, problem))?;
        let start = ranges.iter().map(|(start, _)| *start).min().unwrap_or(verified.offset);
        let end = ranges.iter().map(|(start, length)| start.saturating_add(*length)).max().unwrap_or(start);
        if start < verified.offset || end > verified.offset + verified.bytes {
            return Err(damaged(&self.location, "a column is outside of its row group"));
        }
        let bytes = directory.read_range(name, start, end - start)?;
        if directory.version(name)? != *version {
            return Err(changed(&self.location));
        }
        Ok(FileSlice { file_bytes, offset: start, bytes })
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
    check_size(directory, name, range)?;
    let bytes = directory.read_range(name, range.offset, range.bytes)?;
    if digest_of(&bytes) == range.xxh3 { Ok(bytes) } else { Err(mismatch(directory, name, range)) }
}

/// Verifies the checksum of a byte range of a file without holding all of it in memory.
fn verify(directory: &HeldDirectory, name: &str, range: &ChecksummedRange) -> Result<()> {
    check_size(directory, name, range)?;
    let mut digest = RunningDigest::new();
    let end = range.offset + range.bytes;
    let mut start = range.offset;
    while start < end {
        let length = VERIFIED_AT_A_TIME.min(end - start);
        digest.update(&directory.read_range(name, start, length)?);
        start += length;
    }
    if digest.digest() == range.xxh3 { Ok(()) } else { Err(mismatch(directory, name, range)) }
}

fn check_size(directory: &HeldDirectory, name: &str, range: &ChecksummedRange) -> Result<()> {
    let location = directory.location().join(name);
    match directory.size(name)? {
        None => Err(damaged(&location, "the file is missing")),
        Some(size) if size < range.offset + range.bytes => Err(damaged(&location, "the file is truncated")),
        Some(_) => Ok(()),
    }
}

fn mismatch(directory: &HeldDirectory, name: &str, range: &ChecksummedRange) -> Error {
    let (start, end) = (range.offset, range.offset + range.bytes);
    let problem = format_args!("bytes {start}..{end} do not match their checksum");
    damaged(&directory.location().join(name), problem)
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

fn changed(file: &Location) -> Error {
    Error::place(
        file,
        "the file was changed while it was being read",
        "run the command again when nothing writes to the dataset",
    )
}

fn replaced(dataset: &Location) -> Error {
    Error::place(dataset, "the dataset was replaced while it was being read", "run the command again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::convert_text;
    use crate::ingest::InputFormat;

    #[test]
    fn a_row_group_on_disk_is_verified_and_has_the_columns_of_one_in_memory() {
        let room = tempfile::tempdir().unwrap();
        let line = |row: usize| format!("{} qid:{} 1:{row} 2:{}\n", row % 3, row / 10, row * row % 7);
        let text: String = (0..300).map(line).collect();
        let location = convert_text(room.path(), "data", &text, InputFormat::Letor, 100).unwrap();
        let reader = DatasetReader::open(&location).unwrap();
        assert_eq!((reader.groups().len(), reader.held_bytes()), (3, 0));
        for id in reader.groups() {
            let (held, on_disk) = (reader.open_group(id).unwrap(), reader.open_group_on_disk(id).unwrap());
            assert_eq!(on_disk.read_all().unwrap(), held.read_all().unwrap());
            for column in 0..held.columns() {
                let columns = column..column + 1;
                assert_eq!(on_disk.read(columns.clone()).unwrap(), held.read(columns).unwrap());
            }
        }
        let file = room.path().join("data").join(&reader.manifest().files[0].name);
        let verified = reader.open_group_on_disk(reader.groups()[0]).unwrap();
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        // The clock of a file system may have steps of several milliseconds.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        let error = verified.read_all().unwrap_err();
        assert!(error.to_string().contains("changed while it was being read"), "{error}");
        for open in [DatasetReader::open_group, DatasetReader::open_group_on_disk] {
            let error = open(&reader, reader.groups()[0]).err().unwrap();
            assert!(error.to_string().contains("do not match their checksum"), "{error}");
        }
    }
}
