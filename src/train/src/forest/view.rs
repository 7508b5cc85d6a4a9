//! Gives access to the codes (bin numbers) of one partition: by column for large nodes, and by row for blocks.

use crate::bins::{BinLayout, BinnedData, Codes, FeatureCodes, GroupCodes, GroupKind, LANES};
use planetree_data::source::LabelledRows;

/// Position of each feature's code in a row that is copied to a block (`block.rs`).
#[derive(Debug, Clone)]
pub(super) struct CodeLanes {
    /// Position of each feature; `u32::MAX` for constant features.
    lanes: Vec<u32>,
    /// Number of codes per row.
    pub stride: usize,
    /// Whether all codes are bytes, so that rows can be copied directly.
    pub bytes: bool,
}

impl CodeLanes {
    /// Assigns positions to the features of a layout.
    pub(super) fn of(layout: &BinLayout) -> Self {
        let bytes = layout.groups.iter().all(|group| matches!(group.kind, GroupKind::Dense));
        let mut lanes = vec![u32::MAX; layout.places.len()];
        let mut stride = 0;
        for group in &layout.groups {
            for (lane, feature) in group.features.iter().enumerate() {
                lanes[*feature as usize] = (stride + lane) as u32;
            }
            stride += if bytes { group.blocks() * LANES } else { group.features.len() };
        }
        CodeLanes { lanes, stride, bytes }
    }

    /// Returns the number of bytes per row.
    pub(super) fn row_bytes(&self) -> usize {
        self.stride * if self.bytes { 1 } else { 4 }
    }

    /// Returns whether a feature has a position, which all features have except constant ones.
    pub(super) fn has(&self, feature: u32) -> bool {
        self.lanes[feature as usize] != u32::MAX
    }

    /// Returns the position of a feature.
    #[inline]
    pub(super) fn of_feature(&self, feature: u32) -> usize {
        self.lanes[feature as usize] as usize
    }
}

/// The codes of one partition.
pub(super) struct PartitionView<'a> {
    /// Number of the partition's first row in the dataset.
    pub first: u32,
    /// Number of rows in the partition.
    pub rows: u32,
    /// Column of each feature; `None` for constant features.
    columns: Vec<Option<FeatureCodes<'a>>>,
    groups: Vec<GroupCodes<'a>>,
    lanes: &'a CodeLanes,
}

impl<'a> PartitionView<'a> {
    /// Creates a view of a partition.
    pub(super) fn of(data: &BinnedData, partition: usize, codes: &'a Codes, lanes: &'a CodeLanes) -> Self {
        let binning = &data.binning;
        let LabelledRows { first, .. } = data.rows[partition];
        let rows = data.rows[partition].len();
        let places = binning.layout.places.iter().zip(&binning.features);
        PartitionView {
            first: first as u32, // training data has fewer than 2^28 rows
            rows: rows as u32,
            columns: places.map(|(place, bins)| place.map(|place| codes.column(place, bins))).collect(),
            groups: (0..binning.layout.groups.len()).map(|group| codes.group(group)).collect(),
            lanes,
        }
    }

    /// Returns which of the given row numbers are in this partition, as a range of indices into `rows`. The row
    /// numbers must be ascending.
    pub(super) fn part(&self, rows: &[u32]) -> std::ops::Range<usize> {
        let start = rows.partition_point(|row| *row < self.first);
        let end = rows.partition_point(|row| *row < self.first + self.rows);
        start..end
    }

    /// Returns whether copying `rows` whole rows touches fewer cache lines than scanning the columns of `features`
    /// features.
    pub(super) fn is_sparse(&self, rows: usize, features: usize) -> bool {
        const LINE: usize = 64;
        self.lanes.bytes && rows * LINE * self.lanes.stride.div_ceil(LINE) < features * self.rows as usize
    }

    /// Returns the column of a feature; `None` if the feature is constant.
    #[inline]
    pub(super) fn column(&self, feature: u32) -> Option<&FeatureCodes<'a>> {
        self.columns[feature as usize].as_ref()
    }

    /// Appends the codes of rows as bytes. All rows must be in this partition.
    pub(super) fn append_bytes(&self, rows: &[u32], to: &mut Vec<u8>) {
        let start = to.len();
        to.resize(start + rows.len() * self.lanes.stride, 0);
        let mut offset = 0;
        for group in &self.groups {
            let GroupCodes::Blocks { blocks, per_row } = group else { continue };
            let bytes = blocks.as_flattened();
            let width = per_row * LANES;
            let places = to[start..].chunks_exact_mut(self.lanes.stride);
            for (row, place) in rows.iter().zip(places) {
                let from = (row - self.first) as usize * width;
                place[offset..offset + width].copy_from_slice(&bytes[from..from + width]);
            }
            offset += width;
        }
    }

    /// Appends the codes of rows as 32-bit integers. All rows must be in this partition.
    pub(super) fn append_codes(&self, rows: &[u32], to: &mut Vec<u32>) {
        let start = to.len();
        to.resize(start + rows.len() * self.lanes.stride, 0);
        for (feature, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let lane = self.lanes.of_feature(feature as u32);
            for (place, row) in rows.iter().enumerate() {
                to[start + place * self.lanes.stride + lane] = column.code(row - self.first);
            }
        }
    }
}
