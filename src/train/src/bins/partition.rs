//! Stores the codes (bin numbers) of one partition as Arrow arrays: one column per group of features, followed by an
//! extra column for each feature of a dense or joint group. The kinds of groups are explained in `layout.rs`.

use super::binning::Binning;
use super::cuts::FeatureBins;
use super::layout::{BinLayout, FeaturePlace, Group, GroupKind, LANES, RowSlot, STRIDE};
use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, ListArray, RecordBatch, UInt8Array, UInt16Array,
    UInt32Array,
};
use arrow::buffer::{MutableBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt8Type, UInt16Type, UInt32Type};
use std::sync::Arc;

/// The codes of a partition.
#[derive(Debug, Clone)]
pub struct Codes {
    /// The Arrow data, shared by all clones.
    batch: Arc<RecordBatch>,
    /// Columns of the partition that `batch` contains, in this order; `None` if it contains all columns.
    held: Option<Vec<usize>>,
}

/// The codes of one group.
#[derive(Debug, Clone, Copy)]
pub enum GroupCodes<'a> {
    /// Byte blocks of a dense or joint group.
    Blocks {
        /// All blocks, row after row.
        blocks: &'a [[u8; LANES]],
        /// Blocks per row.
        per_row: usize,
    },
    /// Entries of a sparse group. Row `i` has the entries `offsets[i]..offsets[i + 1]` in ascending order. An entry is
    /// `lane * STRIDE + code`.
    Sparse {
        /// Index of each row's first entry. The last element is the number of entries.
        offsets: &'a [i32],
        /// All entries.
        entries: &'a [u16],
    },
    /// A column with one byte per row.
    Bytes(&'a [u8]),
    /// A column with two bytes per row.
    Words(&'a [u16]),
    /// A column with four bytes per row.
    Longs(&'a [u32]),
}

/// The codes of one feature, for lookups by row.
#[derive(Debug, Clone, Copy)]
pub struct FeatureCodes<'a> {
    codes: GroupCodes<'a>,
    lane: usize,
    slot: Option<RowSlot>,
    common: u32,
}

impl FeatureCodes<'_> {
    /// Returns the code of a row.
    #[inline]
    pub fn code(&self, row: u32) -> u32 {
        let row = row as usize;
        match self.codes {
            GroupCodes::Blocks { blocks, per_row } => match self.slot {
                Some(slot) => code_in(&blocks[row * per_row..][..per_row], slot),
                None => unreachable!("dense and joint features have columns or slots"),
            },
            GroupCodes::Sparse { offsets, entries } => {
                let entries = &entries[offsets[row] as usize..offsets[row + 1] as usize];
                let first = (self.lane * STRIDE) as u16;
                // Counting all smaller entries is faster than stopping at the first larger one: lists are short, and
                // this loop has no branches.
                let before: usize = entries.iter().map(|entry| usize::from(*entry < first)).sum();
                match entries.get(before) {
                    Some(entry) if *entry < first + STRIDE as u16 => u32::from(entry - first),
                    _ => self.common,
                }
            }
            GroupCodes::Bytes(codes) => u32::from(codes[row]),
            GroupCodes::Words(codes) => u32::from(codes[row]),
            GroupCodes::Longs(codes) => codes[row],
        }
    }

    /// Returns the codes as bytes, for specialised loops; `None` if they are not stored as bytes.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self.codes {
            GroupCodes::Bytes(codes) => Some(codes),
            _ => None,
        }
    }
}

/// Returns the code of a feature in a row of a dense or joint group.
#[inline]
fn code_in(row: &[[u8; LANES]], slot: RowSlot) -> u32 {
    let (row, byte) = (row.as_flattened(), usize::from(slot.byte));
    match slot.digit {
        None => u32::from(row[byte]),
        Some(digit) => {
            let joint = u16::from_le_bytes([row[byte], row[byte + 1]]);
            u32::from(joint / digit.unit % digit.radix)
        }
    }
}

impl Codes {
    /// Wraps the batch of a partition. It has one column per group, followed by the extra columns of single features.
    pub fn new(batch: RecordBatch) -> Self {
        Codes { batch: Arc::new(batch), held: None }
    }

    /// Wraps a batch that contains only the columns `held`.
    pub fn some(batch: RecordBatch, held: Vec<usize>) -> Self {
        Codes { batch: Arc::new(batch), held: Some(held) }
    }

    /// Returns the underlying Arrow batch.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Returns the codes in a column, which belongs to a group or to a single feature.
    pub fn group(&self, column: usize) -> GroupCodes<'_> {
        let place = match &self.held {
            None => column,
            Some(held) => held.iter().position(|held| *held == column).expect("the column was requested"),
        };
        let column = self.batch.column(place);
        match column.data_type() {
            DataType::FixedSizeBinary(bytes) => {
                let blocks = column.as_fixed_size_binary().value_data().as_chunks().0;
                GroupCodes::Blocks { blocks, per_row: *bytes as usize / LANES }
            }
            DataType::List(_) => {
                let list = column.as_list::<i32>();
                let entries = list.values().as_primitive::<UInt16Type>().values();
                GroupCodes::Sparse { offsets: list.value_offsets(), entries }
            }
            DataType::UInt8 => GroupCodes::Bytes(column.as_primitive::<UInt8Type>().values()),
            DataType::UInt16 => GroupCodes::Words(column.as_primitive::<UInt16Type>().values()),
            _ => GroupCodes::Longs(column.as_primitive::<UInt32Type>().values()),
        }
    }

    /// Returns the codes of one feature, for lookups by row.
    pub fn column(&self, place: FeaturePlace, bins: &FeatureBins) -> FeatureCodes<'_> {
        let FeaturePlace { lane, slot, .. } = place;
        FeatureCodes { codes: self.group(place.column), lane, slot, common: bins.common_code }
    }
}

/// Returns the Arrow schema of a partition's batch.
pub(super) fn schema(layout: &BinLayout) -> SchemaRef {
    let field = |(place, group): (usize, &Group)| {
        let kind = match group.kind {
            GroupKind::Dense | GroupKind::Joint => DataType::FixedSizeBinary((group.blocks() * LANES) as i32),
            GroupKind::Sparse => DataType::List(entry_field()),
            GroupKind::Column(1) => DataType::UInt8,
            GroupKind::Column(2) => DataType::UInt16,
            GroupKind::Column(_) => DataType::UInt32,
        };
        Field::new(format!("group{place}"), kind, false)
    };
    let groups = layout.groups.iter().enumerate().map(field);
    let columns =
        layout.columns.iter().map(|feature| Field::new(format!("feature{feature}"), DataType::UInt8, false));
    Arc::new(Schema::new(groups.chain(columns).collect::<Vec<_>>()))
}

fn entry_field() -> Arc<Field> {
    Arc::new(Field::new("entry", DataType::UInt16, false))
}

/// Codes of one feature, in the narrowest integer type that fits.
pub(super) enum CodeColumn {
    /// For up to 256 codes.
    Bytes(Vec<u8>),
    /// For up to 65,536 codes.
    Words(Vec<u16>),
    /// For more than 65,536 codes.
    Longs(Vec<u32>),
}

impl CodeColumn {
    /// Encodes a column of values; NaN means missing.
    pub(super) fn encode(bins: &FeatureBins, values: &[f32]) -> Self {
        let codes = values.iter().map(|value| bins.code_of(*value));
        match bins.codes() {
            0..=0x100 => {
                let mut bytes = Vec::with_capacity(values.len());
                bins.encode_bytes(values, &mut bytes);
                CodeColumn::Bytes(bytes)
            }
            0x101..=0x1_0000 => CodeColumn::Words(codes.map(|code| code as u16).collect()),
            _ => CodeColumn::Longs(codes.collect()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            CodeColumn::Bytes(bytes) => bytes,
            _ => unreachable!("features of dense and sparse groups have at most 256 codes"),
        }
    }

    fn into_array(self) -> ArrayRef {
        match self {
            CodeColumn::Bytes(codes) => Arc::new(UInt8Array::from(codes)),
            CodeColumn::Words(codes) => Arc::new(UInt16Array::from(codes)),
            CodeColumn::Longs(codes) => Arc::new(UInt32Array::from(codes)),
        }
    }
}

/// Assembles the columns of a group. Returns the group's own column and, if the group is dense or joint and the layout
/// has extra columns, one for each feature. `take` returns the codes of a feature.
pub(super) fn assemble(
    group: &Group,
    rows: usize,
    binning: &Binning,
    mut take: impl FnMut(u32) -> CodeColumn,
) -> (ArrayRef, Vec<ArrayRef>) {
    let mut columns: Vec<CodeColumn> = group.features.iter().map(|feature| take(*feature)).collect();
    let features = &binning.features;
    let extra = |columns: Vec<CodeColumn>| match binning.layout.columns.is_empty() {
        true => Vec::new(),
        false => columns.into_iter().map(CodeColumn::into_array).collect(),
    };
    match group.kind {
        GroupKind::Dense => (interleave(&columns, rows, group.blocks() * LANES), extra(columns)),
        GroupKind::Joint => {
            let codes: Vec<usize> =
                group.features.iter().map(|feature| features[*feature as usize].codes()).collect();
            (join(&columns, &codes, group, rows), extra(columns))
        }
        GroupKind::Sparse => {
            let common: Vec<u8> =
                group.features.iter().map(|feature| features[*feature as usize].common_code as u8).collect();
            (list_entries(&columns, &common, rows), Vec::new())
        }
        GroupKind::Column(_) => (columns.swap_remove(0).into_array(), Vec::new()),
    }
}

/// Number of rows whose codes are interleaved at a time, few enough to stay in the cache.
const CHUNK: usize = 256;

fn interleave(columns: &[CodeColumn], rows: usize, row_bytes: usize) -> ArrayRef {
    // Arrow buffers are aligned to cache lines, so a row of 64 bytes occupies exactly one line.
    let mut bytes = MutableBuffer::from_len_zeroed(rows * row_bytes);
    for (chunk, out) in bytes.as_slice_mut().chunks_mut(CHUNK * row_bytes).enumerate() {
        let first = chunk * CHUNK;
        for (lane, column) in columns.iter().enumerate() {
            let codes = &column.bytes()[first..];
            for (row, code) in out.chunks_exact_mut(row_bytes).zip(codes) {
                row[lane] = *code;
            }
        }
    }
    Arc::new(FixedSizeBinaryArray::new(row_bytes as i32, bytes.into(), None))
}

/// Combines the codes of each lane's features into joint codes, row by row. `codes` is the number of codes of each
/// feature.
fn join(columns: &[CodeColumn], codes: &[usize], group: &Group, rows: usize) -> ArrayRef {
    let row_bytes = group.blocks() * LANES;
    let mut bytes = MutableBuffer::from_len_zeroed(rows * row_bytes);
    let mut joint = [0u16; CHUNK];
    for (chunk, out) in bytes.as_slice_mut().chunks_mut(CHUNK * row_bytes).enumerate() {
        let first = chunk * CHUNK;
        for (lane, members) in group.lanes.iter().enumerate() {
            joint.fill(0);
            // The last feature of the lane is the most significant digit.
            for feature in members.clone().rev() {
                let codes_of_feature = codes[feature] as u16;
                for (joint, code) in joint.iter_mut().zip(&columns[feature].bytes()[first..]) {
                    *joint = *joint * codes_of_feature + u16::from(*code);
                }
            }
            for (row, joint) in out.chunks_exact_mut(row_bytes).zip(joint) {
                row[2 * lane..2 * lane + 2].copy_from_slice(&joint.to_le_bytes());
            }
        }
    }
    Arc::new(FixedSizeBinaryArray::new(row_bytes as i32, bytes.into(), None))
}

fn list_entries(columns: &[CodeColumn], common: &[u8], rows: usize) -> ArrayRef {
    let columns: Vec<&[u8]> = columns.iter().map(CodeColumn::bytes).collect();
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0i32);
    let mut entries: Vec<u16> = Vec::new();
    let mut used = 0;
    for row in 0..rows {
        entries.resize(used + columns.len(), 0);
        // Avoid branches: write every entry, but advance only if its code is not the common one.
        for (lane, (column, common)) in columns.iter().zip(common).enumerate() {
            let code = column[row];
            entries[used] = (lane * STRIDE) as u16 + u16::from(code);
            used += usize::from(code != *common);
            if used == entries.len() {
                entries.push(0);
            }
        }
        offsets.push(used as i32);
    }
    entries.truncate(used);
    entries.shrink_to_fit();
    let values = Arc::new(UInt16Array::new(ScalarBuffer::from(entries), None));
    Arc::new(ListArray::new(entry_field(), OffsetBuffer::new(ScalarBuffer::from(offsets)), values, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bins::summary::ValueDistribution;
    use crate::config::MissingPolicy;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_layout_returns_every_code(
            values in prop::collection::vec(prop::collection::vec(prop_oneof![3 => Just(0f32), 1 => -20f32..20.0, 1 => Just(f32::NAN)], 50), 1..90),
        ) {
            let features: Vec<FeatureBins> = values.iter()
                .map(|column| FeatureBins::equal_depth(&ValueDistribution::of(column, None), MissingPolicy::Learned, 20)).collect();
            let grouped = BinLayout::grouped(&features);
            for layout in [grouped.clone().compact(&features), grouped, BinLayout::columns(&features)] {
                let binning = Binning { layout, features: features.clone(), by_query: false };
                let encoded = values.iter().zip(&features).map(|(values, bins)| Some(CodeColumn::encode(bins, values)));
                let codes = binning.assemble_codes(encoded.collect(), 50);
                for (feature, place) in binning.layout.places.iter().enumerate() {
                    let Some(place) = place else {
                        prop_assert!(features[feature].is_constant());
                        continue;
                    };
                    let column = codes.column(*place, &features[feature]);
                    for row in 0..50u32 {
                        prop_assert_eq!(column.code(row), features[feature].code_of(values[feature][row as usize]));
                    }
                }
            }
        }
    }
}
