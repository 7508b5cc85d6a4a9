//! Encodes the columns of a row group as compressed Parquet column chunks. Each column chunk depends only on the
//! values of its own column, so the columns are encoded in parallel.

use super::fingerprint::{ColumnSums, RowKeys};
use super::float_chunk::{ZSTD_LEVEL, encode_floats};
use super::group::RowGroup;
use super::layout::{DatasetColumn, Layout};
use crate::rows::{Block, FeatureColumn, PresentRows};
use arrow::array::BooleanBufferBuilder;
use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// An encoded column chunk, and its metadata for the footer.
pub(crate) struct EncodedColumn {
    /// The encoded pages.
    pub bytes: Bytes,
    /// The metadata of the chunk, with offsets into `bytes`.
    pub close: ColumnCloseResult,
}

/// An encoded row group that can be appended to a file.
pub(crate) struct EncodedGroup {
    /// One chunk per column, in the order of [`Layout::columns`].
    pub columns: Vec<EncodedColumn>,
    /// Number of rows.
    pub rows: usize,
    /// Number of queries.
    pub queries: usize,
    /// Number of features.
    pub width: usize,
    /// Number of rows without a label.
    pub unlabelled: usize,
    /// The contribution of the rows to the dataset's fingerprint.
    pub sums: ColumnSums,
}

/// Encodes all columns of a group in parallel.
pub(crate) fn encode_group(group: &RowGroup, layout: &Layout) -> Result<EncodedGroup> {
    let width = layout.features.given().unwrap_or(group.width);
    let schema = layout.schema(width);
    let dataset_columns = layout.columns(width);
    let keys = RowKeys::new(group.first_row, group.rows);
    let columns: Result<Vec<(EncodedColumn, u128)>> = dataset_columns
        .par_iter()
        .enumerate()
        .map(|(index, column)| encode_column(group, *column, schema.column(index), &keys))
        .collect();
    let unlabelled = group
        .slices
        .iter()
        .map(|(block, rows)| block.labels[rows.clone()].iter().filter(|label| label.is_nan()).count())
        .sum();
    let (columns, sums) = columns?.into_iter().unzip();
    let (rows, queries, sums) = (group.rows, group.queries.len(), ColumnSums(sums));
    Ok(EncodedGroup { columns, rows, queries, width, unlabelled, sums })
}

/// Encodes a column in which all values are missing. Such a column is added to row groups that were written before
/// the feature first occurred in the input.
pub(crate) fn encode_absent(rows: usize, column: ColumnDescPtr) -> Result<EncodedColumn> {
    let mut present = BooleanBufferBuilder::new(rows);
    present.append_n(rows, false);
    encode_floats(column, &[], &present)
}

/// Encodes a column, and computes its contribution to the dataset's fingerprint.
fn encode_column(
    group: &RowGroup,
    role: DatasetColumn,
    column: ColumnDescPtr,
    keys: &RowKeys,
) -> Result<(EncodedColumn, u128)> {
    match role {
        DatasetColumn::Query => encode_queries(group, column, keys),
        DatasetColumn::Document => encode_documents(group, column, keys),
        DatasetColumn::Label => encode_optional(group, column, keys, |block| Some(&block.labels)),
        DatasetColumn::Weight => encode_optional(group, column, keys, |block| block.weights.as_deref()),
        DatasetColumn::Position => encode_positions(group, column, keys),
        DatasetColumn::Feature(feature) => {
            let mut values = Vec::with_capacity(group.rows);
            let mut present = BooleanBufferBuilder::new(group.rows);
            for (block, rows) in &group.slices {
                gather(block.features.column(feature), rows.clone(), &mut values, &mut present);
            }
            Ok((encode_floats(column, &values, &present)?, keys.sum_of_floats(&values, &present)))
        }
    }
}

/// Appends a range of rows to a column: adds the present values to `values`, and one bit per row to `present`.
fn gather(
    column: FeatureColumn<'_>,
    rows: Range<usize>,
    values: &mut Vec<f32>,
    present: &mut BooleanBufferBuilder,
) {
    match column.present {
        PresentRows::All => {
            values.extend_from_slice(&column.values[rows.clone()]);
            present.append_n(rows.len(), true);
        }
        PresentRows::Bits(bitmap) => {
            present.append_packed_range(rows.clone(), bitmap);
            let before = |row: usize| -> usize {
                let whole: u32 = bitmap[..row / 8].iter().map(|byte| byte.count_ones()).sum();
                let part = bitmap.get(row / 8).map_or(0, |byte| (byte & ((1 << (row % 8)) - 1)).count_ones());
                (whole + part) as usize
            };
            values.extend_from_slice(&column.values[before(rows.start)..before(rows.end)]);
        }
        PresentRows::Rows(list) => {
            let place_of = |end: usize| list.partition_point(|row| (*row as usize) < end);
            let places = place_of(rows.start)..place_of(rows.end);
            let first = present.len();
            present.append_n(rows.len(), false);
            for row in &list[places.clone()] {
                present.set_bit(first + *row as usize - rows.start, true);
            }
            values.extend_from_slice(&column.values[places]);
        }
    }
}

fn encode_optional<'a>(
    group: &'a RowGroup,
    column: ColumnDescPtr,
    keys: &RowKeys,
    of: impl Fn(&'a Block) -> Option<&'a [f32]>,
) -> Result<(EncodedColumn, u128)> {
    let (mut values, mut present) = (Vec::with_capacity(group.rows), BooleanBufferBuilder::new(group.rows));
    for (block, rows) in &group.slices {
        match of(block) {
            Some(all) => {
                for value in &all[rows.clone()] {
                    present.append(!value.is_nan());
                    values.extend((!value.is_nan()).then_some(*value));
                }
            }
            None => present.append_n(rows.len(), false),
        }
    }
    Ok((encode_floats(column, &values, &present)?, keys.sum_of_floats(&values, &present)))
}

fn encode_positions(
    group: &RowGroup,
    column: ColumnDescPtr,
    keys: &RowKeys,
) -> Result<(EncodedColumn, u128)> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for (block, rows) in &group.slices {
        match &block.positions {
            Some(all) => {
                values.extend(all[rows.clone()].iter().flatten());
                levels.extend(all[rows.clone()].iter().map(|position| i16::from(position.is_some())));
            }
            None => levels.resize(levels.len() + rows.len(), 0),
        }
    }
    let mut present = values.iter().copied();
    let sum =
        keys.sum_of_positions(levels.iter().map(|level| if *level == 1 { present.next() } else { None }));
    let encoded = write(column, &DICTIONARY, |writer| match writer {
        ColumnWriter::Int32ColumnWriter(writer) => writer.write_batch(&values, Some(&levels), None),
        _ => unreachable!("positions are 32-bit integers"),
    });
    Ok((encoded?, sum))
}

fn encode_queries(group: &RowGroup, column: ColumnDescPtr, keys: &RowKeys) -> Result<(EncodedColumn, u128)> {
    let mut values: Vec<ByteArray> = Vec::with_capacity(group.rows);
    let mut firsts = Vec::with_capacity(group.queries.len());
    for query in &group.queries {
        firsts.push(values.len());
        let name = ByteArray::from(Bytes::copy_from_slice(query.name.as_bytes()));
        values.resize(values.len() + query.rows, name);
    }
    let names = group.queries.iter().map(|query| query.name.as_bytes());
    let sum = keys.sum_of_texts(firsts.into_iter().zip(names));
    let encoded = write(column, &DICTIONARY, |writer| match writer {
        ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&values, None, None),
        _ => unreachable!("query ids are strings"),
    });
    Ok((encoded?, sum))
}

fn encode_documents(
    group: &RowGroup,
    column: ColumnDescPtr,
    keys: &RowKeys,
) -> Result<(EncodedColumn, u128)> {
    let mut text = Vec::new();
    let mut ends = Vec::new();
    let mut levels = Vec::with_capacity(group.rows);
    for (block, rows) in &group.slices {
        for row in rows.clone() {
            let id = block.documents.get(row);
            levels.push(i16::from(id.is_some()));
            if let Some(id) = id {
                text.extend_from_slice(id);
                ends.push(text.len());
            }
        }
    }
    let text = Bytes::from(text);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let values: Vec<ByteArray> =
        starts.zip(&ends).map(|(start, end)| ByteArray::from(text.slice(start..*end))).collect();
    let rows = (0..).zip(&levels).filter(|(_, level)| **level == 1).map(|(row, _)| row);
    let sum = keys.sum_of_texts(rows.zip(values.iter().map(ByteArray::data)));
    let encoded = write(column, &PLAIN, |writer| match writer {
        ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&values, Some(&levels), None),
        _ => unreachable!("document ids are strings"),
    });
    Ok((encoded?, sum))
}

fn write(
    column: ColumnDescPtr,
    properties: &WriterPropertiesPtr,
    fill: impl FnOnce(&mut ColumnWriter<'_>) -> Result<usize>,
) -> Result<EncodedColumn> {
    let mut sink = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut sink));
    let mut writer = get_column_writer(column, properties.clone(), pages);
    fill(&mut writer)?;
    let close = writer.close()?;
    Ok(EncodedColumn { bytes: sink.into_inner()?.into(), close })
}

static DICTIONARY: LazyLock<WriterPropertiesPtr> =
    LazyLock::new(|| Arc::new(properties().set_dictionary_enabled(true).build()));
static PLAIN: LazyLock<WriterPropertiesPtr> =
    LazyLock::new(|| Arc::new(properties().set_dictionary_enabled(false).build()));
/// Returns the Parquet writer properties that all files of datasets use.
pub(super) fn properties() -> parquet::file::properties::WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_created_by(concat!("planetree ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0) // for compatibility with all readers
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).expect("1 is a level of zstd")))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_write_batch_size(8192)
        .set_data_page_row_count_limit(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the result with a naive loop over the bits of the rows.
        #[test]
        fn gather_copies_a_range_of_rows(cells in prop::collection::vec(prop::option::of(0i8..9), 1..300), cut in 0.0f64..1.0, len in 0.0f64..1.0) {
            let mut bitmap = vec![0u8; cells.len().div_ceil(8)];
            for (row, _) in cells.iter().enumerate().filter(|(_, cell)| cell.is_some()) {
                bitmap[row / 8] |= 1 << (row % 8);
            }
            let all: Vec<f32> = cells.iter().flatten().map(|cell| f32::from(*cell)).collect();
            let start = (cut * cells.len() as f64) as usize;
            let end = start + (len * (cells.len() - start) as f64) as usize;
            let list: Vec<u32> = (0..).zip(&cells).filter(|(_, cell)| cell.is_some()).map(|(row, _)| row).collect();
            let expected: Vec<f32> = cells[start..end].iter().flatten().map(|cell| f32::from(*cell)).collect();
            for kind in [PresentRows::Bits(&bitmap), PresentRows::Rows(&list)] {
                let (mut values, mut present) = (Vec::new(), BooleanBufferBuilder::new(0));
                present.append_n(3, true);
                gather(FeatureColumn { values: &all, present: kind }, start..end, &mut values, &mut present);
                prop_assert_eq!(&values, &expected);
                for (row, cell) in cells[start..end].iter().enumerate() {
                    prop_assert_eq!(present.get_bit(3 + row), cell.is_some());
                }
            }
        }
    }
}
