//! Writes one Parquet file (part) of a dataset.

use super::encode::{EncodedGroup, encode_absent, properties};
use super::layout::Layout;
use super::manifest::{ChecksummedRange, PartEntry, RowGroupEntry};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use planetree_base::storage::{HashingWriter, StagedFile};
use std::fs::File;
use std::sync::Arc;

/// A Parquet file of a dataset that is being written.
pub(super) struct PartFile {
    writer: SerializedFileWriter<HashingWriter<StagedFile>>,
    layout: Layout,
    width: usize,
    entry: PartEntry,
    hashed: u64,
}

impl PartFile {
    /// Starts a file with `width` feature columns. `number` is the index of the file in the dataset, and `source` is
    /// the input format that its rows come from.
    pub(super) fn new(
        file: StagedFile,
        layout: &Layout,
        width: usize,
        number: usize,
        source: &str,
    ) -> Result<Self> {
        let metadata = vec![
            KeyValue::new("planetree.table".to_owned(), "dataset".to_owned()),
            KeyValue::new("planetree.part".to_owned(), number.to_string()),
            KeyValue::new("planetree.source_format".to_owned(), source.to_owned()),
        ];
        let properties = Arc::new(properties().set_key_value_metadata(Some(metadata)).build());
        let schema = layout.schema(width).root_schema_ptr();
        Ok(PartFile {
            writer: SerializedFileWriter::new(HashingWriter::new(file), schema, properties)?,
            layout: layout.clone(),
            width,
            entry: PartEntry {
                name: format!("part-{number:05}"),
                rows: 0,
                queries: 0,
                bytes: 0,
                row_groups: Vec::new(),
                footer: ChecksummedRange {
                    offset: 0,
                    bytes: 0,
                    xxh3: planetree_base::storage::digest_of(b""),
                },
            },
            hashed: 0,
        })
    }

    /// Returns the number of feature columns.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of rows so far.
    pub(super) fn rows(&self) -> usize {
        self.entry.rows as usize
    }

    /// Returns the number of row groups so far.
    pub(super) fn row_groups(&self) -> usize {
        self.entry.row_groups.len()
    }

    /// Appends a row group. If the row group has fewer features than the file, the other features are missing in all
    /// its rows.
    pub(super) fn append(&mut self, group: EncodedGroup) -> Result<()> {
        let mut columns = self.writer.next_row_group()?;
        for column in group.columns {
            columns.append_column(&column.bytes, column.close)?;
        }
        append_absent(&mut columns, &self.layout, group.width..self.width, group.rows)?;
        columns.close()?;
        self.end_group(group.rows as u64, group.queries as u64)
    }

    /// Copies all row groups of an earlier file, which has fewer columns, without encoding them again. Adds the
    /// missing columns to each row group.
    pub(crate) fn append_file(&mut self, file: &File, entry: &PartEntry, width: usize) -> Result<()> {
        let reader = SerializedFileReader::new(file.try_clone()?)?;
        for (metadata, group) in reader.metadata().row_groups().iter().zip(&entry.row_groups) {
            let mut columns = self.writer.next_row_group()?;
            for column in metadata.columns() {
                let close = ColumnCloseResult {
                    bytes_written: column.compressed_size() as u64,
                    rows_written: group.rows,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                columns.append_column(file, close)?;
            }
            append_absent(&mut columns, &self.layout, width..self.width, group.rows as usize)?;
            columns.close()?;
            self.end_group(group.rows, group.queries)?;
        }
        Ok(())
    }

    fn end_group(&mut self, rows: u64, queries: u64) -> Result<()> {
        self.writer.flush()?;
        let range = self.end_range();
        self.entry.row_groups.push(RowGroupEntry { rows, queries, range });
        self.entry.rows += rows;
        self.entry.queries += queries;
        Ok(())
    }

    fn end_range(&mut self) -> ChecksummedRange {
        range_since(self.writer.inner_mut(), &mut self.hashed)
    }

    /// Writes the footer and completes the manifest entry. The file name contains a hash of the content, so files
    /// with equal names have equal bytes.
    pub(super) fn finish(self) -> Result<(StagedFile, PartEntry)> {
        let PartFile { writer, mut entry, mut hashed, .. } = self;
        let mut file = writer.into_inner()?;
        entry.footer = range_since(&mut file, &mut hashed);
        entry.bytes = hashed;
        entry.name = format!("{}-{}.parquet", entry.name, &entry.digest().to_string()[..16]);
        Ok((file.into_inner(), entry))
    }
}

/// Returns the byte range that was written since the end of the previous range, with its checksum.
fn range_since(writer: &mut HashingWriter<StagedFile>, hashed: &mut u64) -> ChecksummedRange {
    let offset = std::mem::replace(hashed, writer.written());
    ChecksummedRange { offset, bytes: *hashed - offset, xxh3: writer.end_stretch() }
}

fn append_absent(
    columns: &mut SerializedRowGroupWriter<'_, HashingWriter<StagedFile>>,
    layout: &Layout,
    features: std::ops::Range<usize>,
    rows: usize,
) -> Result<()> {
    if features.is_empty() {
        return Ok(());
    }
    let schema = layout.schema(features.end);
    let first = schema.num_columns() - features.len();
    for place in first..schema.num_columns() {
        let absent = encode_absent(rows, schema.column(place))?;
        columns.append_column(&absent.bytes, absent.close)?;
    }
    Ok(())
}
