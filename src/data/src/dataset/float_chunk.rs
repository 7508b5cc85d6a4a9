//! Encodes float columns as Parquet column chunks. This is faster than the general column writer of the Parquet
//! crate, because bitmaps are copied into pages unchanged, the dictionary is a small hash table, and the compressor
//! is reused between columns. The speed matters, because a third of a conversion's time is spent here. The Parquet
//! crate still writes page headers and metadata.
//!
//! Terms of the Parquet format: *definition levels* state for each row whether it has a value. The *hybrid* encoding
//! of integers consists of repeated runs, which store a value and its count, and of bit-packed groups of eight
//! values.

use super::encode::EncodedColumn;
use arrow::array::BooleanBufferBuilder;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::cell::RefCell;

/// Compression level of zstd for all columns.
pub(crate) const ZSTD_LEVEL: i32 = 1;
/// Maximum number of rows per page, a multiple of eight. A chunk has only one page, unless a query is very large.
const PAGE_ROWS: usize = 1 << 18;

/// Encodes a column, given its present values and a bitmap of the rows that have a value.
pub(crate) fn encode_floats(
    column: ColumnDescPtr,
    values: &[f32],
    present: &BooleanBufferBuilder,
) -> Result<EncodedColumn> {
    let rows = present.len();
    let dictionary = if repeats_often(values) { Dictionary::of(values) } else { None };
    let mut sink = TrackedWrite::new(Vec::new());
    let mut chunk = ChunkWriter { pages: SerializedPageWriter::new(&mut sink), sizes: PageSizes::default() };
    if let Some(dictionary) = &dictionary {
        chunk.dictionary_page(&dictionary.values)?;
    }
    let encoding = match &dictionary {
        Some(_) => Encoding::RLE_DICTIONARY,
        None => Encoding::BYTE_STREAM_SPLIT,
    };
    let (mut row, mut value) = (0, 0);
    loop {
        let page_rows = (rows - row).min(PAGE_ROWS);
        let bits = &present.as_slice()[row / 8..(row + page_rows).div_ceil(8)];
        let page_values = if values.len() == rows { page_rows } else { count_ones(bits, page_rows) };
        let mut page = Vec::with_capacity(4 * page_values + bits.len() + 16);
        write_levels(bits, page_rows, page_values, &mut page);
        match &dictionary {
            Some(dictionary) => {
                write_codes(&dictionary.codes[value..value + page_values], dictionary.width(), &mut page)
            }
            None => split_bytes(&values[value..value + page_values], &mut page),
        }
        chunk.data_page(page, page_rows, encoding)?;
        row += page_rows;
        value += page_values;
        if row >= rows {
            break;
        }
    }
    let sizes = chunk.sizes;
    let metadata = ColumnChunkMetaData::builder(column)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_encodings(match dictionary {
            Some(_) => vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY],
            None => vec![Encoding::RLE, Encoding::BYTE_STREAM_SPLIT],
        })
        .set_page_encoding_stats(sizes.stats(encoding))
        .set_total_compressed_size(sizes.compressed as i64)
        .set_total_uncompressed_size(sizes.uncompressed as i64)
        .set_num_values(rows as i64)
        .set_data_page_offset(sizes.data_offset as i64)
        .set_dictionary_page_offset(sizes.dictionary_offset.map(|offset| offset as i64))
        .set_statistics(statistics(values, rows, dictionary.as_ref()))
        .build()?;
    let bytes: Bytes = sink.into_inner()?.into();
    let close = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok(EncodedColumn { bytes, close })
}

/// Estimates from a sample of the values whether they repeat often enough for a dictionary to save space.
fn repeats_often(values: &[f32]) -> bool {
    const SAMPLE: usize = 256;
    let step = (values.len() / SAMPLE).max(1);
    let mut sample: Vec<u32> =
        values.iter().step_by(step).take(SAMPLE).map(|value| value.to_bits()).collect();
    let taken = sample.len();
    sample.sort_unstable();
    sample.dedup();
    sample.len() * 8 <= taken * 7 + 64
}

fn statistics(values: &[f32], rows: usize, dictionary: Option<&Dictionary>) -> Statistics {
    let seen = dictionary.map_or(values, |dictionary| &dictionary.values);
    let (mut least, mut most) = (f32::INFINITY, f32::NEG_INFINITY);
    for value in seen {
        least = least.min(*value);
        most = most.max(*value);
    }
    // Readers may treat -0 and 0 as equal, so a bound of zero must include both.
    let bound = |value: f32, zero: f32| (!seen.is_empty()).then_some(if value == 0.0 { zero } else { value });
    let distinct = dictionary.map(|dictionary| dictionary.values.len() as u64);
    Statistics::new(bound(least, -0.0), bound(most, 0.0), distinct, Some((rows - values.len()) as u64), false)
}

fn count_ones(bits: &[u8], rows: usize) -> usize {
    let (whole, rest) = bits.split_at(rows / 8);
    let (words, tail) = whole.as_chunks::<8>();
    let in_words: u32 = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum();
    let in_tail: u32 = tail.iter().map(|byte| byte.count_ones()).sum();
    let in_rest = rest.first().map_or(0, |byte| (byte & ((1 << (rows % 8)) - 1)).count_ones());
    (in_words + in_tail + in_rest) as usize
}

/// Writes the definition levels of a page. If all rows or no rows have a value, this is a repeated run. Otherwise, it
/// is the bitmap itself, which already has the form of a bit-packed run with one bit per value.
fn write_levels(bits: &[u8], rows: usize, values: usize, page: &mut Vec<u8>) {
    let start = page.len();
    page.extend_from_slice(&[0; 4]);
    if values == 0 || values == rows {
        write_varint((rows as u64) << 1, page);
        page.push(u8::from(values > 0));
    } else {
        write_varint((bits.len() as u64) << 1 | 1, page);
        page.extend_from_slice(bits);
        if !rows.is_multiple_of(8)
            && let Some(last) = page.last_mut()
        {
            *last &= (1 << (rows % 8)) - 1; // clear the unused bits after the last row
        }
    }
    let length = (page.len() - start - 4) as u32;
    page[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes the first bytes of all values, then the second bytes of all values, and so on. This places similar bytes
/// next to each other, so that they compress well.
fn split_bytes(values: &[f32], page: &mut Vec<u8>) {
    let (start, count) = (page.len(), values.len());
    page.resize(start + 4 * count, 0);
    let (first, rest) = page[start..].split_at_mut(count);
    let (second, rest) = rest.split_at_mut(count);
    let (third, fourth) = rest.split_at_mut(count);
    for (place, value) in values.iter().enumerate() {
        [first[place], second[place], third[place], fourth[place]] = value.to_le_bytes();
    }
}

/// The distinct values of a column, and for each value of the column its index (code) among them.
struct Dictionary {
    values: Vec<f32>,
    codes: Vec<u32>,
}

impl Dictionary {
    /// Builds the dictionary of a column. Returns `None` if there are too many distinct values to save space.
    fn of(values: &[f32]) -> Option<Self> {
        let max_distinct = values.len() / 3 + 64;
        let mut distinct: Vec<f32> = Vec::new();
        let mut codes = Vec::with_capacity(values.len());
        // A hash table with open addressing. A slot contains the bits of a value and its code plus 1, or 0 if it is
        // free.
        let mut slots = vec![0u64; 1 << 10];
        let mut shift = 64 - 10;
        let hash =
            |bits: u32, shift: u32| (u64::from(bits).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize;
        for value in values {
            let bits = value.to_bits();
            let mut place = hash(bits, shift);
            let code = loop {
                let slot = slots[place];
                if slot == 0 {
                    distinct.push(*value);
                    slots[place] = u64::from(bits) << 32 | distinct.len() as u64;
                    break distinct.len() as u32 - 1;
                }
                if (slot >> 32) as u32 == bits {
                    break slot as u32 - 1;
                }
                place = (place + 1) & (slots.len() - 1);
            };
            codes.push(code);
            if distinct.len() * 2 > slots.len() {
                if distinct.len() > max_distinct {
                    return None;
                }
                shift -= 2;
                let mut larger = vec![0u64; slots.len() * 4];
                for slot in slots.iter().filter(|slot| **slot != 0) {
                    let mut place = hash((slot >> 32) as u32, shift);
                    while larger[place] != 0 {
                        place = (place + 1) & (larger.len() - 1);
                    }
                    larger[place] = *slot;
                }
                slots = larger;
            }
        }
        (distinct.len() <= max_distinct).then_some(Dictionary { values: distinct, codes })
    }

    /// Returns the number of bits per code.
    fn width(&self) -> u32 {
        (self.values.len().max(2) as u32 - 1).ilog2() + 1
    }
}

/// Writes the number of bits per code, followed by the codes in the hybrid encoding.
fn write_codes(codes: &[u32], width: u32, page: &mut Vec<u8>) {
    /// Minimum number of equal codes that are written as a repeated run. Fewer equal codes are bit-packed.
    const MIN_RUN: usize = 24;
    page.push(width as u8);
    let mut unpacked = 0; // index of the first code that has not been written yet
    let mut at = 0;
    while at < codes.len() {
        let run = codes[at..].iter().take_while(|code| **code == codes[at]).count();
        if run >= MIN_RUN {
            // Packed groups consist of eight codes, so the first codes of the run fill up the last group.
            let packed = (at - unpacked).next_multiple_of(8);
            pack(&codes[unpacked..unpacked + packed], width, page);
            write_varint(((at + run - unpacked - packed) as u64) << 1, page);
            page.extend_from_slice(&codes[at].to_le_bytes()[..width.div_ceil(8) as usize]);
            unpacked = at + run;
        }
        at += run;
    }
    pack(&codes[unpacked..], width, page);
}

/// Writes a bit-packed run of codes, padded to a multiple of eight codes.
fn pack(codes: &[u32], width: u32, page: &mut Vec<u8>) {
    if codes.is_empty() {
        return;
    }
    write_varint((codes.len().div_ceil(8) as u64) << 1 | 1, page);
    page.reserve(codes.len() * width as usize / 8 + 16);
    let (mut word, mut filled) = (0u64, 0);
    for code in codes {
        word |= u64::from(*code) << filled;
        filled += width;
        if filled >= 32 {
            page.extend_from_slice(&(word as u32).to_le_bytes());
            word >>= 32;
            filled -= 32;
        }
    }
    let missing = codes.len().next_multiple_of(8) - codes.len();
    let mut left = filled + missing as u32 * width;
    while left > 0 {
        page.push(word as u8);
        word >>= 8;
        left = left.saturating_sub(8);
    }
}

/// Sizes, offsets and number of the pages in a chunk, for the metadata.
#[derive(Default)]
struct PageSizes {
    compressed: usize,
    uncompressed: usize,
    data_offset: u64,
    dictionary_offset: Option<u64>,
    data_pages: i32,
}

impl PageSizes {
    fn stats(&self, encoding: Encoding) -> Vec<PageEncodingStats> {
        let dictionary = self.dictionary_offset.map(|_| PageEncodingStats {
            page_type: PageType::DICTIONARY_PAGE,
            encoding: Encoding::PLAIN,
            count: 1,
        });
        let data = PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count: self.data_pages };
        dictionary.into_iter().chain([data]).collect()
    }
}

struct ChunkWriter<'a> {
    pages: SerializedPageWriter<'a, Vec<u8>>,
    sizes: PageSizes,
}

impl ChunkWriter<'_> {
    fn dictionary_page(&mut self, words: &[f32]) -> Result<()> {
        let plain: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let page = Page::DictionaryPage {
            buf: compressed(&plain)?,
            num_values: words.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        self.sizes.dictionary_offset = Some(self.page(page, plain.len())?);
        Ok(())
    }

    fn data_page(&mut self, plain: Vec<u8>, rows: usize, encoding: Encoding) -> Result<()> {
        let page = Page::DataPage {
            buf: compressed(&plain)?,
            num_values: rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let offset = self.page(page, plain.len())?;
        if self.sizes.data_pages == 0 {
            self.sizes.data_offset = offset;
        }
        self.sizes.data_pages += 1;
        Ok(())
    }

    fn page(&mut self, page: Page, uncompressed: usize) -> Result<u64> {
        let written = self.pages.write_page(CompressedPage::new(page, uncompressed))?;
        self.sizes.compressed += written.compressed_size;
        self.sizes.uncompressed += written.uncompressed_size;
        Ok(written.offset)
    }
}

thread_local! {
    /// One compressor per thread, which is reused because creating it takes longer than compressing a small page.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

fn compressed(plain: &[u8]) -> Result<Bytes> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let external = |error: std::io::Error| ParquetError::External(Box::new(error));
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(external)?),
        };
        Ok(compressor.compress(plain).map_err(external)?.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{FeatureNames, Layout};
    use arrow::array::AsArray;
    use arrow::datatypes::Float32Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::writer::SerializedFileWriter;
    use proptest::prelude::*;

    /// Writes a column and reads it back with the Parquet crate's reader.
    fn round_trip(cells: &[Option<f32>]) -> Vec<Option<f32>> {
        let layout = Layout { features: FeatureNames::Numbered, weight: false, position: false };
        let schema = layout.schema(1);
        let message = parquet::schema::types::Type::group_type_builder("m")
            .with_fields(vec![schema.root_schema_ptr().get_fields()[3].clone()])
            .build()
            .unwrap();
        let message = std::sync::Arc::new(message);
        let column = parquet::schema::types::SchemaDescriptor::new(message.clone()).column(0);
        let mut present = BooleanBufferBuilder::new(0);
        cells.iter().for_each(|cell| present.append(cell.is_some()));
        let values: Vec<f32> = cells.iter().flatten().copied().collect();
        let encoded = encode_floats(column, &values, &present).unwrap();
        let mut writer = SerializedFileWriter::new(Vec::new(), message, Default::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        group.append_column(&encoded.bytes, encoded.close).unwrap();
        group.close().unwrap();
        let file = Bytes::from(writer.into_inner().unwrap());
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(1 << 20).build().unwrap();
        reader
            .flat_map(|batch| {
                batch.unwrap().column(0).as_primitive::<Float32Type>().iter().collect::<Vec<_>>()
            })
            .collect()
    }

    fn bits(cells: &[Option<f32>]) -> Vec<Option<u32>> {
        cells.iter().map(|cell| cell.map(f32::to_bits)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn any_column_reads_back_to_the_bit(runs in prop::collection::vec(
            (prop_oneof![Just(None), Just(Some(0.0f32)), (0u8..9).prop_map(|v| Some(f32::from(v))), prop::num::f32::NORMAL.prop_map(Some)],
             prop_oneof![3 => 1usize..4, 1 => 1usize..90]), 1..120)) {
            let cells: Vec<Option<f32>> = runs.iter().flat_map(|(cell, count)| std::iter::repeat_n(*cell, *count)).collect();
            prop_assert_eq!(bits(&round_trip(&cells)), bits(&cells));
        }
    }

    #[test]
    fn several_pages_and_many_distinct_values_read_back() {
        let few: Vec<Option<f32>> =
            (0..600_001u32).map(|row| (row % 3 != 0).then_some((row / 7 % 50) as f32)).collect();
        assert_eq!(round_trip(&few), few);
        let many: Vec<Option<f32>> =
            (0..600_001u32).map(|row| Some((row.wrapping_mul(2_654_435_761) >> 8) as f32 * 1e-7)).collect();
        assert_eq!(round_trip(&many), many);
        let some: Vec<Option<f32>> =
            (0..80_000u32).map(|row| Some((row.wrapping_mul(2_654_435_761) % 20_000) as f32)).collect();
        assert_eq!(round_trip(&some), some);
        let none: Vec<Option<f32>> = vec![None; 70_000];
        assert_eq!(round_trip(&none), none);
    }
}
