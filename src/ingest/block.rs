//! Rows as the decoders hand them on: whole rows of one chunk of input, features turned into
//! columns, queries as runs.
//!
//! Vocabulary: a *block* is the rows of one chunk of text; a *run* is a stretch of rows of one
//! query; an *entry* is one present value. Everything here costs by entries, not by cells.

use super::fault::{FaultKind, Repairs};

/// A stretch of consecutive rows of one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryRun {
    /// First row of the stretch, within the block.
    pub first_row: u32,
    /// Where its name ends in [`Block::query_names`]; it starts where the run before it ends.
    pub name_end: u32,
    /// Line of the first row.
    pub line: u64,
}

/// Strings of rows, null where a row has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    present: Vec<bool>,
}

impl Strings {
    /// Appends one row's string.
    pub fn push(&mut self, text: Option<&[u8]>) {
        self.bytes.extend_from_slice(text.unwrap_or_default());
        // A block is cut from a chunk of a few MiB, far below 4 GiB.
        self.ends.push(self.bytes.len() as u32);
        self.present.push(text.is_some());
    }

    /// The string of a row.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        self.present[row].then(|| &self.bytes[start..self.ends[row] as usize])
    }

    fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.present.truncate(rows);
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }
}

/// The features of a block, column by column, present values only.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    rows: usize,
    /// How many values each row and all before it have.
    row_ends: Vec<u32>,
    /// Where each column's values start; one more than there are columns.
    starts: Vec<u32>,
    values: Vec<f32>,
    /// How each column says which rows have a value.
    presence: Vec<Presence>,
    /// A bit a row, the lowest first, as Arrow and Parquet have them.
    bitmaps: Vec<u8>,
    /// Rows of columns that have few values.
    row_lists: Vec<u32>,
}

/// Where the rows of a column's values are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Presence {
    /// Every row has one.
    All,
    /// A bitmap starts here.
    Bitmap(usize),
    /// A list of rows starts here.
    List(usize),
}

/// One feature's part of a block.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// The values that are present, in row order.
    pub values: &'a [f32],
    /// Which rows have one.
    pub present: Present<'a>,
}

/// Which rows of a block have a value.
#[derive(Debug, Clone, Copy)]
pub enum Present<'a> {
    /// All of them.
    All,
    /// Those whose bit is set, the lowest bit first.
    Bits(&'a [u8]),
    /// These, ascending.
    Rows(&'a [u32]),
}

impl Present<'_> {
    /// Whether a row has a value.
    pub fn has(&self, row: usize) -> bool {
        match self {
            Present::All => true,
            Present::Bits(bits) => bits.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1),
            Present::Rows(rows) => rows.binary_search(&(row as u32)).is_ok(),
        }
    }
}

impl Columns {
    /// How many features the block has seen.
    pub fn width(&self) -> usize {
        self.presence.len()
    }

    /// How many values are present.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// How many values some rows have.
    pub fn entries_of_rows(&self, rows: std::ops::Range<usize>) -> usize {
        let before = |row: usize| if row == 0 { 0 } else { self.row_ends[row - 1] as usize };
        before(rows.end) - before(rows.start)
    }

    /// One feature; past the width it is absent everywhere.
    pub fn column(&self, feature: usize) -> Column<'_> {
        if feature >= self.width() {
            return Column { values: &[], present: Present::Rows(&[]) };
        }
        let values = &self.values[self.starts[feature] as usize..self.starts[feature + 1] as usize];
        let present = match self.presence[feature] {
            Presence::All => Present::All,
            Presence::Bitmap(start) => Present::Bits(&self.bitmaps[start..start + self.rows.div_ceil(8)]),
            Presence::List(start) => Present::Rows(&self.row_lists[start..start + values.len()]),
        };
        Column { values, present }
    }
}

/// The rows of one chunk of input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Block {
    /// One label a row; NaN is unlabelled.
    pub labels: Vec<f32>,
    /// The queries in order; empty when the input names none and a side file counts them.
    pub runs: Vec<QueryRun>,
    /// The names of all runs, end to end.
    pub query_names: Vec<u8>,
    /// One document id a row.
    pub documents: Strings,
    /// One weight a row, if the input has them.
    pub weights: Option<Vec<f32>>,
    /// One position a row, if the input has them.
    pub positions: Option<Vec<Option<i32>>>,
    /// The features.
    pub features: Columns,
    /// The distinct words of columns of categories, by feature, in order of appearance; the
    /// values of such a column are places in its list.
    pub categories: Vec<(u32, Vec<String>)>,
    /// Lines that were repaired or left out.
    pub repairs: Repairs,
}

impl Block {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// The name of a run.
    pub fn run_name(&self, run: usize) -> &[u8] {
        let start = if run == 0 { 0 } else { self.runs[run - 1].name_end as usize };
        &self.query_names[start..self.runs[run].name_end as usize]
    }

    /// One past the last row of a run.
    pub fn run_end(&self, run: usize) -> usize {
        self.runs.get(run + 1).map_or(self.rows(), |next| next.first_row as usize)
    }

    /// Rewrites the values of a column of categories, code by code.
    pub fn recode(&mut self, feature: u32, codes: &[f32]) {
        let feature = feature as usize;
        let (start, end) = (self.features.starts[feature], self.features.starts[feature + 1]);
        for value in &mut self.features.values[start as usize..end as usize] {
            *value = codes[*value as usize];
        }
    }
}

/// The rows of a block with their entries row by row, for those who put rows in another order.
#[derive(Debug, Default)]
pub struct Rows {
    /// Everything but the features.
    pub block: Block,
    indices: Vec<u32>,
    values: Vec<f32>,
    row_ends: Vec<u32>,
}

impl Rows {
    /// The entries of a row: which features, and their values (NaN for missing).
    pub fn entries(&self, row: usize) -> (&[u32], &[f32]) {
        let start = if row == 0 { 0 } else { self.row_ends[row - 1] as usize };
        let range = start..self.row_ends[row] as usize;
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Rewrites the values of a column of categories, code by code.
    pub fn recode(&mut self, feature: u32, codes: &[f32]) {
        for (index, value) in self.indices.iter().zip(&mut self.values) {
            if *index == feature && !value.is_nan() {
                *value = codes[*value as usize];
            }
        }
    }
}

/// Collects rows as they are read, row by row; [`BlockBuilder::finish`] turns them into columns.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    block: Block,
    /// The open row's and all earlier rows' entries.
    indices: Vec<u32>,
    values: Vec<f32>,
    row_ends: Vec<u32>,
    /// What was repaired in the open row.
    open_repairs: Vec<FaultKind>,
    /// Whether any value is NaN, that is, written as missing.
    some_missing: bool,
    width: u32,
}

impl BlockBuilder {
    /// Adds an entry to the open row; NaN says "written, but missing".
    #[inline(always)]
    pub fn push_entry(&mut self, index: u32, value: f32) {
        self.indices.push(index);
        self.values.push(value);
    }

    /// Adds an entry without a value, so that a repeated index is still noticed.
    pub fn push_missing(&mut self, index: u32) {
        self.some_missing = true;
        self.push_entry(index, f32::NAN);
    }

    /// Makes room for the entries and rows of a chunk of `bytes` of text.
    pub fn reserve(&mut self, bytes: usize) {
        // "1:0 " is the shortest entry that is common; longer estimates only grow once.
        self.indices.reserve(bytes / 6);
        self.values.reserve(bytes / 6);
    }

    /// The entries of the open row so far.
    pub fn open_row(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let start = self.open_row_start();
        self.indices[start..].iter().copied().zip(self.values[start..].iter().copied())
    }

    /// Puts other entries in the place of the open row's.
    pub fn replace_open_row(&mut self, entries: impl Iterator<Item = (u32, f32)>) {
        self.abandon_row();
        for (index, value) in entries {
            self.push_entry(index, value);
        }
    }

    fn open_row_start(&self) -> usize {
        self.row_ends.last().map_or(0, |end| *end as usize)
    }

    /// Drops the entries of the open row.
    fn abandon_row(&mut self) {
        let start = self.open_row_start();
        self.indices.truncate(start);
        self.values.truncate(start);
        self.block.documents.truncate(self.row_ends.len());
    }

    /// Closes the open row.
    pub fn finish_row(&mut self, label: f32, document: Option<&[u8]>) {
        for kind in self.open_repairs.drain(..) {
            self.block.repairs.add(kind);
        }
        self.block.labels.push(label);
        self.block.documents.push(document);
        self.row_ends.push(self.indices.len() as u32);
    }

    /// Says which query the next row belongs to; opens a new run if it differs from the last.
    #[inline]
    pub fn query(&mut self, name: &[u8], line: u64) {
        let block = &mut self.block;
        if let Some(last) = block.runs.len().checked_sub(1)
            && block.run_name(last) == name
        {
            return;
        }
        block.query_names.extend_from_slice(name);
        block.runs.push(QueryRun {
            first_row: block.labels.len() as u32,
            name_end: block.query_names.len() as u32,
            line,
        });
    }

    /// Takes back the run of an abandoned row, if that row opened it.
    fn abandon_query(&mut self) {
        let rows = self.block.labels.len() as u32;
        if self.block.runs.last().is_some_and(|run| run.first_row == rows) {
            self.block.runs.pop();
            let end = self.block.runs.last().map_or(0, |run| run.name_end as usize);
            self.block.query_names.truncate(end);
        }
    }

    /// Adds the weight of the row just finished.
    pub fn weight(&mut self, weight: f32) {
        self.block.weights.get_or_insert_default().push(weight);
    }

    /// Adds the position of the row just finished.
    pub fn position(&mut self, position: Option<i32>) {
        self.block.positions.get_or_insert_default().push(position);
    }

    /// Counts a repair in the open row.
    pub fn repaired(&mut self, kind: FaultKind) {
        self.open_repairs.push(kind);
    }

    /// Leaves the open row out, query and all, and counts why.
    pub fn skip_row(&mut self, kind: FaultKind) {
        self.abandon_row();
        self.abandon_query();
        self.open_repairs.clear();
        self.block.repairs.add(kind);
    }

    /// Says that the input has at least this many features.
    pub fn at_least_width(&mut self, width: u32) {
        self.width = self.width.max(width);
    }

    /// Says what the words behind a column's codes are.
    pub fn set_categories(&mut self, categories: Vec<(u32, Vec<String>)>) {
        self.block.categories = categories;
    }

    /// Turns the rows into a block. The builder is empty afterwards and keeps its buffers for the
    /// next chunk.
    pub fn finish(&mut self) -> Block {
        let mut block = std::mem::take(&mut self.block);
        block.features = self.transpose(block.labels.len());
        block.features.row_ends = self.present_ends();
        self.row_ends.clear();
        self.indices.clear();
        self.values.clear();
        self.some_missing = false;
        block
    }

    /// How many values each row and all before it have, missing ones not counted.
    fn present_ends(&mut self) -> Vec<u32> {
        if !self.some_missing {
            return std::mem::take(&mut self.row_ends);
        }
        let (mut entry, mut present) = (0, 0);
        let count = |end: &u32| {
            let values = &self.values[entry..*end as usize];
            present += values.iter().filter(|value| !value.is_nan()).count() as u32;
            entry = *end as usize;
            present
        };
        self.row_ends.iter().map(count).collect()
    }

    /// Hands the rows over as they are, not turned into columns.
    pub fn finish_rows(&mut self) -> Rows {
        self.some_missing = false;
        Rows {
            block: std::mem::take(&mut self.block),
            indices: std::mem::take(&mut self.indices),
            values: std::mem::take(&mut self.values),
            row_ends: std::mem::take(&mut self.row_ends),
        }
    }

    /// Rows to columns by counting: how many entries each feature has, where they start, and
    /// then every entry to its place.
    fn transpose(&self, rows: usize) -> Columns {
        let seen = self.indices.iter().max().map_or(0, |most| most + 1);
        let width = seen.max(self.width) as usize;
        let mut starts = vec![0u32; width + 1];
        if self.some_missing {
            for (index, value) in self.indices.iter().zip(&self.values) {
                starts[*index as usize + 1] += u32::from(!value.is_nan());
            }
        } else {
            for index in &self.indices {
                starts[*index as usize + 1] += 1;
            }
        }
        let mut presence = Vec::with_capacity(width);
        let (mut bitmap_bytes, mut listed_rows) = (0, 0);
        for feature in 0..width {
            let count = starts[feature + 1] as usize;
            // A list costs four bytes a value, a bitmap a bit a row.
            presence.push(if count == rows {
                Presence::All
            } else if count * 32 < rows {
                listed_rows += count;
                Presence::List(listed_rows - count)
            } else {
                bitmap_bytes += rows.div_ceil(8);
                Presence::Bitmap(bitmap_bytes - rows.div_ceil(8))
            });
            starts[feature + 1] += starts[feature];
        }
        let mut columns = Columns {
            rows,
            row_ends: Vec::new(),
            values: vec![0.0; starts[width] as usize],
            presence,
            bitmaps: vec![0; bitmap_bytes],
            row_lists: vec![0; listed_rows],
            starts,
        };
        let mut next: Vec<u32> = columns.starts[..width].to_vec();
        let mut entry = 0;
        for (row, end) in self.row_ends.iter().enumerate() {
            let end = *end as usize;
            for (index, value) in self.indices[entry..end].iter().zip(&self.values[entry..end]) {
                let index = *index as usize;
                if self.some_missing && value.is_nan() {
                    continue;
                }
                let place = next[index];
                columns.values[place as usize] = *value;
                next[index] += 1;
                match columns.presence[index] {
                    Presence::All => {}
                    Presence::Bitmap(start) => columns.bitmaps[start + row / 8] |= 1 << (row % 8),
                    Presence::List(start) => {
                        columns.row_lists[start + (place - columns.starts[index]) as usize] = row as u32;
                    }
                }
            }
            entry = end;
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The slow twin: look every cell up in the rows.
        #[test]
        fn columns_hold_the_cells_of_the_rows(rows in prop::collection::vec(
            prop::collection::btree_map(0u32..20, prop::option::of(-9i8..9), 0..12), 0..150)) {
            let mut builder = BlockBuilder::default();
            for row in &rows {
                for (index, value) in row {
                    match value {
                        Some(value) => builder.push_entry(*index, f32::from(*value)),
                        None => builder.push_missing(*index),
                    }
                }
                builder.finish_row(0.0, None);
            }
            let block = builder.finish();
            for feature in 0..25 {
                let expected: Vec<Option<f32>> = rows.iter()
                    .map(|row| row.get(&(feature as u32)).copied().flatten().map(f32::from)).collect();
                let column = block.features.column(feature);
                let mut values = column.values.iter();
                let got: Vec<Option<f32>> = (0..rows.len()).map(|row| {
                    let present = column.present.has(row);
                    if present { values.next().copied() } else { None }
                }).collect();
                prop_assert_eq!(got, expected);
                prop_assert!(values.next().is_none());
            }
        }
    }

    #[test]
    fn an_abandoned_row_leaves_no_trace() {
        let mut builder = BlockBuilder::default();
        builder.query(b"a", 1);
        builder.push_entry(0, 1.0);
        builder.finish_row(1.0, Some(b"d"));
        let mut clean = BlockBuilder::default();
        clean.query(b"a", 1);
        clean.push_entry(0, 1.0);
        clean.finish_row(1.0, Some(b"d"));
        builder.query(b"b", 2);
        builder.push_entry(5, 1.0);
        builder.repaired(FaultKind::ValueEmpty);
        builder.skip_row(FaultKind::NotText);
        clean.block.repairs.add(FaultKind::NotText);
        assert_eq!(builder.finish(), clean.finish());
    }
}
