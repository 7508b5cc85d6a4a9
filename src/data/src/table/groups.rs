//! Reads the row groups of a Parquet file. They are decoded independently, so several can be read in parallel.

use super::bytes::{FileSlice, guarded};
use super::read::damaged;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use planetree_base::error::Result;
use planetree_base::storage::{Location, PinnedFile};
use std::sync::Arc;

/// A Parquet file in the version that was opened.
pub struct ParquetFile {
    file: PinnedFile,
    metadata: ArrowReaderMetadata,
}

impl ParquetFile {
    /// Creates a file from its decoded footer. Fails if the footer could not be decoded.
    pub(super) fn new(file: PinnedFile, footer: ParquetResult<ParquetMetaData>) -> Result<Self> {
        let metadata = guarded(|| {
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            ArrowReaderMetadata::try_new(Arc::new(footer?), options)
        });
        let metadata = metadata.map_err(|problem| damaged(file.location(), problem))?;
        Ok(ParquetFile { file, metadata })
    }

    /// Returns the location of the file.
    pub fn location(&self) -> &Location {
        self.file.location()
    }

    /// Returns the names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Returns the decoded footer.
    pub(super) fn footer(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.footer().file_metadata().num_rows().max(0) as u64
    }

    /// Returns the keys and values of the metadata, in the order of the file.
    pub fn key_values(&self) -> Vec<(String, Option<String>)> {
        let pairs = self.footer().file_metadata().key_value_metadata().into_iter().flatten();
        pairs.map(|pair| (pair.key.clone(), pair.value.clone())).collect()
    }

    /// Returns a string that identifies the content of the file: its size, and a hash of its footer. In a table of
    /// planetree, the footer contains the checksum of the whole file.
    pub fn identity(&self) -> Result<String> {
        const TAIL: u64 = 8; // four bytes for the length of the metadata, and four magic bytes
        let size = self.file.size();
        let tail = self.file.read_range(size.saturating_sub(TAIL), TAIL.min(size))?;
        let length = match tail[..] {
            [a, b, c, d, ..] => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => 0,
        };
        let bytes = (length + TAIL).min(size);
        let footer = self.file.read_range(size - bytes, bytes)?;
        Ok(format!("{size} {}", planetree_base::storage::digest_of(&footer)))
    }

    /// Returns the number of rows in each row group.
    pub fn group_rows(&self) -> Vec<u64> {
        self.footer().row_groups().iter().map(|group| group.num_rows().max(0) as u64).collect()
    }

    /// Returns the number of row groups.
    pub fn groups(&self) -> usize {
        self.footer().num_row_groups()
    }

    /// Returns the bytes that columns of a row group have at most: as they are stored, with what is stored between them, and
    /// decompressed. `columns` contains column indices.
    pub fn most_group_bytes(&self, columns: &[usize]) -> (u64, u64) {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied());
        let of_group = |group: &RowGroupMetaData| {
            let is_read = |leaf: &usize| mask.leaf_included(*leaf);
            let mut leaves = 0..group.num_columns();
            let first = leaves.find(is_read).unwrap_or(0);
            let last = leaves.rfind(is_read).unwrap_or(first);
            let read = group.columns().iter().skip(first).take(last + 1 - first);
            read.fold((0u64, 0u64), |(stored, decompressed), column| {
                let bytes = |size: i64| u64::try_from(size).unwrap_or(0);
                (
                    stored.saturating_add(bytes(column.compressed_size())),
                    decompressed.saturating_add(bytes(column.uncompressed_size())),
                )
            })
        };
        let groups = self.footer().row_groups().iter().map(of_group);
        groups.fold((0, 0), |(stored, decompressed), group| (stored.max(group.0), decompressed.max(group.1)))
    }

    /// Returns the number of a row group's first row in the file, counted from 0.
    pub fn first_row(&self, group: usize) -> u64 {
        let before = self.footer().row_groups().iter().take(group);
        before.map(|group| group.num_rows().max(0) as u64).sum()
    }

    /// Decodes columns of a row group in batches of `batch_rows` rows. `columns` contains ascending column indices;
    /// `None` means all columns. The iterator ends after the first error.
    pub fn group_batches(
        self: &Arc<Self>,
        group: usize,
        columns: Option<&[usize]>,
        batch_rows: usize,
    ) -> Result<GroupBatches> {
        let location = self.location();
        let mask = match columns {
            Some(columns) => ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied()),
            None => ProjectionMask::all(),
        };
        let range = guarded(|| {
            let columns = self.footer().row_group(group).columns().iter().enumerate();
            let ranges =
                columns.filter(|(leaf, _)| mask.leaf_included(*leaf)).map(|(_, column)| column.byte_range());
            let start = ranges.clone().map(|(start, _)| start).min().unwrap_or(0);
            let end = ranges.map(|(start, length)| start.saturating_add(length)).max().unwrap_or(0);
            if end > self.file.size() {
                return Err(ParquetError::EOF(format!(
                    "row group {group} extends beyond the end of the file"
                )));
            }
            Ok((start, end - start))
        });
        let (offset, length) = range.map_err(|problem| damaged(location, problem))?;
        let bytes = self.file.read_range(offset, length)?;
        let source = FileSlice { file_bytes: self.file.size(), offset, bytes };
        let reader = guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(source, self.metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(batch_rows)
                .build()
        });
        let reader = reader.map_err(|problem| damaged(location, problem))?;
        Ok(GroupBatches { file: self.clone(), reader: Some(reader) })
    }
}

/// An iterator over the rows of one row group, in batches.
pub struct GroupBatches {
    file: Arc<ParquetFile>,
    reader: Option<ParquetRecordBatchReader>,
}

impl Iterator for GroupBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let next: ParquetResult<_> = guarded(|| reader.next().transpose().map_err(ParquetError::from));
        let next = next.map_err(|problem| damaged(self.file.location(), problem)).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.reader = None;
        }
        next
    }
}
