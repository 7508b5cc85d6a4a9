//! The row groups of one Parquet file, each decoded on its own: several may be read at once.

use super::bytes::{FileStretch, guarded};
use super::read::damaged;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;
use planetree_base::error::Result;
use planetree_base::storage::{Location, PinnedFile};
use std::sync::Arc;

/// One version of a Parquet file.
pub struct ParquetFile {
    file: PinnedFile,
    metadata: ArrowReaderMetadata,
}

impl ParquetFile {
    /// A file whose footer says this.
    pub(super) fn new(file: PinnedFile, footer: ParquetResult<ParquetMetaData>) -> Result<Self> {
        let metadata = guarded(|| {
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            ArrowReaderMetadata::try_new(Arc::new(footer?), options)
        });
        let metadata = metadata.map_err(|problem| damaged(file.location(), problem))?;
        Ok(ParquetFile { file, metadata })
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        self.file.location()
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// What its footer says.
    pub(super) fn footer(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.footer().file_metadata().num_rows().max(0) as u64
    }

    /// What tells it apart from any other file: its size and its footer, which has the checksum of a table of ours.
    pub fn identity(&self) -> Result<String> {
        const TAIL: u64 = 8; // the length of the metadata, and the magic
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

    /// How many rows each row group has.
    pub fn group_rows(&self) -> Vec<u64> {
        self.footer().row_groups().iter().map(|group| group.num_rows().max(0) as u64).collect()
    }

    /// How many row groups there are.
    pub fn groups(&self) -> usize {
        self.footer().num_row_groups()
    }

    /// The number of a row group's first row, counted from 0.
    pub fn first_row(&self, group: usize) -> u64 {
        let before = self.footer().row_groups().iter().take(group);
        before.map(|group| group.num_rows().max(0) as u64).sum()
    }

    /// Decodes some columns of a row group, by their places in ascending order; all of them without any
    /// given. The first error is the last item.
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
        let stretch = guarded(|| {
            let columns = self.footer().row_group(group).columns().iter().enumerate();
            let ranges =
                columns.filter(|(leaf, _)| mask.leaf_included(*leaf)).map(|(_, column)| column.byte_range());
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
                .with_projection(mask)
                .with_batch_size(batch_rows)
                .build()
        });
        let reader = reader.map_err(|problem| damaged(location, problem))?;
        Ok(GroupBatches { file: self.clone(), reader: Some(reader) })
    }
}

/// The rows of one row group, some at a time.
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
