//! The codes of one partition as a forest looks at them: column by column for nodes of many rows, row by row
//! for blocks of few.

use crate::bins::{BinnedData, Codes, Column, GroupCodes, GroupKind, LANES, Layout};
use planetree_data::source::Rows;

/// Where every feature is in a row of a block.
#[derive(Debug, Clone)]
pub struct Lanes {
    /// By feature; constant ones have none.
    lanes: Vec<u32>,
    /// Codes of a row.
    pub stride: usize,
    /// Whether a code is a byte, and rows can be copied as they are.
    pub bytes: bool,
}

impl Lanes {
    /// The lanes of a layout.
    pub fn of(layout: &Layout) -> Self {
        let bytes = layout.groups.iter().all(|group| matches!(group.kind, GroupKind::Dense));
        let mut lanes = vec![u32::MAX; layout.places.len()];
        let mut stride = 0;
        for group in &layout.groups {
            for (lane, feature) in group.features.iter().enumerate() {
                lanes[*feature as usize] = (stride + lane) as u32;
            }
            stride += if bytes { group.blocks() * LANES } else { group.features.len() };
        }
        Lanes { lanes, stride, bytes }
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.stride * if self.bytes { 1 } else { 4 }
    }

    /// Whether a feature varies, so that it has a lane.
    pub fn has(&self, feature: u32) -> bool {
        self.lanes[feature as usize] != u32::MAX
    }

    /// The lane of a feature.
    #[inline]
    pub fn of_feature(&self, feature: u32) -> usize {
        self.lanes[feature as usize] as usize
    }
}

/// The codes of one partition.
pub struct View<'a> {
    /// The number of its first row in the dataset.
    pub first: u32,
    /// How many rows it has.
    pub rows: u32,
    /// By feature; constant ones have none.
    columns: Vec<Option<Column<'a>>>,
    groups: Vec<GroupCodes<'a>>,
    lanes: &'a Lanes,
}

impl<'a> View<'a> {
    /// The codes of a partition.
    pub fn of(data: &BinnedData, partition: usize, codes: &'a Codes, lanes: &'a Lanes) -> Self {
        let binning = &data.binning;
        let Rows { first, .. } = data.rows[partition];
        let rows = data.rows[partition].len();
        let places = binning.layout.places.iter().zip(&binning.features);
        View {
            first: first as u32, // a training has fewer than 2^28 rows
            rows: rows as u32,
            columns: places.map(|(place, bins)| place.map(|place| codes.column(place, bins))).collect(),
            groups: (0..binning.layout.groups.len()).map(|group| codes.group(group)).collect(),
            lanes,
        }
    }

    /// The part of some rows, given by ascending numbers, that lies in this partition.
    pub fn part(&self, rows: &[u32]) -> std::ops::Range<usize> {
        let start = rows.partition_point(|row| *row < self.first);
        let end = rows.partition_point(|row| *row < self.first + self.rows);
        start..end
    }

    /// Whether so many of its rows lie so far apart that fetching whole rows touches fewer lines of the cache than
    /// going down the columns of so many features.
    pub fn is_sparse(&self, rows: usize, features: usize) -> bool {
        const LINE: usize = 64;
        self.lanes.bytes && rows * LINE * self.lanes.stride.div_ceil(LINE) < features * self.rows as usize
    }

    /// A feature's column.
    #[inline]
    pub fn column(&self, feature: u32) -> Option<&Column<'a>> {
        self.columns[feature as usize].as_ref()
    }

    /// Appends rows of bytes, all of them in this partition.
    pub fn append_bytes(&self, rows: &[u32], to: &mut Vec<u8>) {
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

    /// Appends rows of codes of any size, all of them in this partition.
    pub fn append_codes(&self, rows: &[u32], to: &mut Vec<u32>) {
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
