//! Stores decoded rows in columnar form.
//!
//! A *block* consists of the rows of one chunk of input. A *run* is a sequence of consecutive rows of one query. An
//! *entry* is one feature value that is present in a row. Memory and time are proportional to the number of entries,
//! not to the number of rows times features.

use super::fault::RepairCounts;
use std::ops::Range;

/// The index of a feature, counted from 0, and its value in a row. NaN means that the input explicitly marks the
/// value as missing.
pub(crate) type SparseEntry = (u32, f32);

/// Consecutive rows of one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryRun {
    /// Index of the run's first row within the block.
    pub first_row: u32,
    /// End of the query id in [`Block::query_names`]. The id starts where the id of the previous run ends.
    pub name_end: u32,
    /// Input line of the run's first row, counted from 1.
    pub line: u64,
}

/// One optional string per row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NullableStrings {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    present: Vec<bool>,
}

impl NullableStrings {
    /// Appends the string of the next row.
    pub fn push(&mut self, text: Option<&[u8]>) {
        self.bytes.extend_from_slice(text.unwrap_or_default());
        // This cannot overflow, because a block comes from a chunk of a few MiB.
        self.ends.push(self.bytes.len() as u32);
        self.present.push(text.is_some());
    }

    /// Returns the string of a row, or `None` if the row has none.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        self.present[row].then(|| &self.bytes[start..self.ends[row] as usize])
    }

    /// Returns the bytes of all strings of some rows.
    pub(crate) fn bytes_of(&self, rows: Range<usize>) -> usize {
        let end_before = |row: usize| if row == 0 { 0 } else { self.ends[row - 1] as usize };
        end_before(rows.end) - end_before(rows.start)
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.present.truncate(rows);
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }
}

/// The features of a block in columnar form. Only present values are stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeatureColumns {
    pub(super) rows: usize,
    /// For each row, the number of values in this row and all previous rows.
    pub(super) row_ends: Vec<u32>,
    /// Offset of each column's first value in `values`, followed by the total number of values.
    pub(super) starts: Vec<u32>,
    pub(super) values: Vec<f32>,
    /// For each column, the representation of the rows that have a value.
    pub(super) presence: Vec<StoredPresence>,
    /// Bitmaps of columns, with one bit per row, least significant bit first, as in Arrow and Parquet.
    pub(super) bitmaps: Vec<u8>,
    /// For columns with few values, the indices of the rows that have a value.
    pub(super) row_lists: Vec<u32>,
}

/// The representation of the rows that have a value in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum StoredPresence {
    /// Every row has a value.
    All,
    /// A bitmap, which starts at this offset of `bitmaps`.
    Bitmap(usize),
    /// A list of row indices, which starts at this offset of `row_lists`.
    List(usize),
}

/// The values of one feature in a block.
#[derive(Debug, Clone, Copy)]
pub struct FeatureColumn<'a> {
    /// The present values, in row order.
    pub values: &'a [f32],
    /// The rows that have a value.
    pub present: PresentRows<'a>,
}

/// The rows of a block that have a value.
#[derive(Debug, Clone, Copy)]
pub enum PresentRows<'a> {
    /// All rows.
    All,
    /// The rows whose bit is set, least significant bit first.
    Bits(&'a [u8]),
    /// These rows, in ascending order.
    Rows(&'a [u32]),
}

impl PresentRows<'_> {
    /// Checks whether a row has a value.
    pub fn has(&self, row: usize) -> bool {
        match self {
            PresentRows::All => true,
            PresentRows::Bits(bits) => bits.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1),
            PresentRows::Rows(rows) => rows.binary_search(&(row as u32)).is_ok(),
        }
    }
}

impl FeatureColumns {
    /// Returns the number of feature columns: the largest index of a feature in this block plus 1, or more if the
    /// builder set a minimum.
    pub fn width(&self) -> usize {
        self.presence.len()
    }

    /// Returns the number of values that are present in all rows and columns.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Returns the number of values that are present in a range of rows.
    pub(crate) fn entries_of_rows(&self, rows: Range<usize>) -> usize {
        let before = |row: usize| if row == 0 { 0 } else { self.row_ends[row - 1] as usize };
        before(rows.end) - before(rows.start)
    }

    /// Returns the column of a feature. A feature whose index is not below [`FeatureColumns::width`] is absent in
    /// every row.
    pub fn column(&self, feature: usize) -> FeatureColumn<'_> {
        if feature >= self.width() {
            return FeatureColumn { values: &[], present: PresentRows::Rows(&[]) };
        }
        let values = &self.values[self.starts[feature] as usize..self.starts[feature + 1] as usize];
        let present = match self.presence[feature] {
            StoredPresence::All => PresentRows::All,
            StoredPresence::Bitmap(start) => {
                PresentRows::Bits(&self.bitmaps[start..start + self.rows.div_ceil(8)])
            }
            StoredPresence::List(start) => PresentRows::Rows(&self.row_lists[start..start + values.len()]),
        };
        FeatureColumn { values, present }
    }

    /// Copies a range of rows.
    fn of_rows(&self, rows: Range<usize>) -> FeatureColumns {
        let before = self.entries_of_rows(0..rows.start) as u32;
        let row_ends = self.row_ends[rows.clone()].iter().map(|end| end - before).collect();
        let mut copy =
            FeatureColumns { rows: rows.len(), row_ends, starts: vec![0], ..FeatureColumns::default() };
        for feature in 0..self.width() {
            let FeatureColumn { values, present } = self.column(feature);
            let has = |row: &usize| present.has(*row);
            let (first, list): (usize, Vec<u32>) = match present {
                PresentRows::All => (rows.start, (0..rows.len() as u32).collect()),
                PresentRows::Rows(all) => {
                    let place = |row: usize| all.partition_point(|present| (*present as usize) < row);
                    let (first, end) = (place(rows.start), place(rows.end));
                    (first, all[first..end].iter().map(|row| row - rows.start as u32).collect())
                }
                PresentRows::Bits(_) => {
                    let first = (0..rows.start).filter(has).count();
                    (first, rows.clone().filter(has).map(|row| (row - rows.start) as u32).collect())
                }
            };
            copy.values.extend_from_slice(&values[first..first + list.len()]);
            copy.starts.push(copy.values.len() as u32);
            copy.presence.push(if list.len() == rows.len() {
                StoredPresence::All
            } else {
                let start = copy.row_lists.len();
                copy.row_lists.extend(list);
                StoredPresence::List(start)
            });
        }
        copy
    }
}

/// The rows of one chunk of input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Block {
    /// One label per row; NaN for unlabelled rows.
    pub labels: Vec<f32>,
    /// The runs of queries, in row order. Empty if the input has no query ids, because a side file has the query
    /// sizes.
    pub runs: Vec<QueryRun>,
    /// The concatenated query ids of all runs.
    pub query_names: Vec<u8>,
    /// The document id of each row, if it has one.
    pub documents: NullableStrings,
    /// One weight per row; `None` if the input has no weights.
    pub weights: Option<Vec<f32>>,
    /// One optional position per row; `None` if the input has no positions.
    pub positions: Option<Vec<Option<i32>>>,
    /// The feature values.
    pub features: FeatureColumns,
    /// For each categorical feature, its index and its distinct categories in order of appearance. The values of such
    /// a feature are indices into this list.
    pub categories: Vec<(u32, Vec<String>)>,
    /// Numbers of repaired and skipped lines.
    pub repairs: RepairCounts,
}

impl Block {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// Returns the query id of a run.
    pub fn run_name(&self, run: usize) -> &[u8] {
        let start = if run == 0 { 0 } else { self.runs[run - 1].name_end as usize };
        &self.query_names[start..self.runs[run].name_end as usize]
    }

    /// Returns the index after the last row of a run.
    pub(crate) fn run_end(&self, run: usize) -> usize {
        self.runs.get(run + 1).map_or(self.rows(), |next| next.first_row as usize)
    }

    /// Copies the rows of one run to a new block, so that the rest of this block can be freed. The values of
    /// categorical features must already have been replaced by [`Block::recode`].
    pub(crate) fn of_run(&self, run: usize) -> Block {
        let rows = self.runs[run].first_row as usize..self.run_end(run);
        let name = self.run_name(run);
        let mut documents = NullableStrings::default();
        rows.clone().for_each(|row| documents.push(self.documents.get(row)));
        Block {
            labels: self.labels[rows.clone()].to_vec(),
            runs: vec![QueryRun { first_row: 0, name_end: name.len() as u32, line: self.runs[run].line }],
            query_names: name.to_vec(),
            documents,
            weights: self.weights.as_ref().map(|weights| weights[rows.clone()].to_vec()),
            positions: self.positions.as_ref().map(|positions| positions[rows.clone()].to_vec()),
            features: self.features.of_rows(rows),
            categories: Vec::new(),
            repairs: RepairCounts::default(),
        }
    }

    /// Replaces each value of a categorical feature by `codes[value]`.
    pub(crate) fn recode(&mut self, feature: u32, codes: &[f32]) {
        let feature = feature as usize;
        let (start, end) = (self.features.starts[feature], self.features.starts[feature + 1]);
        for value in &mut self.features.values[start as usize..end as usize] {
            *value = codes[*value as usize];
        }
    }
}

/// A block whose feature values are stored row by row, for code that reorders rows.
#[derive(Debug, Default)]
pub(crate) struct RowMajorBlock {
    /// The rows without their features.
    pub block: Block,
    pub(super) entries: Vec<SparseEntry>,
    pub(super) row_ends: Vec<u32>,
}

impl RowMajorBlock {
    /// Returns the entries of a row. The value of an entry is NaN if the input explicitly marks it as missing.
    pub(crate) fn entries(&self, row: usize) -> &[SparseEntry] {
        let start = if row == 0 { 0 } else { self.row_ends[row - 1] as usize };
        &self.entries[start..self.row_ends[row] as usize]
    }

    /// Replaces each value of a categorical feature by `codes[value]`. Missing values are not changed.
    pub(crate) fn recode(&mut self, feature: u32, codes: &[f32]) {
        for (index, value) in &mut self.entries {
            if *index == feature && !value.is_nan() {
                *value = codes[*value as usize];
            }
        }
    }
}
