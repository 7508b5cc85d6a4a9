//! Decoded rows: the rows of one chunk of input, with features in columns and queries as runs.
//!
//! Vocabulary: a *block* is the rows of one chunk of input; a *run* is a sequence of consecutive rows of one
//! query; an *entry* is one present value. All costs here are proportional to entries, not to cells.

use super::fault::RepairCounts;
use std::ops::Range;

/// A feature, counted from 0, and its value in a row. NaN marks a value that is written in the input, but
/// missing.
pub type SparseEntry = (u32, f32);

/// Consecutive rows of one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryRun {
    /// First row of the run within the block.
    pub first_row: u32,
    /// End of the query's name in [`Block::query_names`]; the name starts where that of the previous run
    /// ends.
    pub name_end: u32,
    /// Input line of the first row.
    pub line: u64,
}

/// One string per row; null if a row has none.
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
        // Cannot overflow: a block comes from a chunk of a few MiB.
        self.ends.push(self.bytes.len() as u32);
        self.present.push(text.is_some());
    }

    /// The string of a row.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        self.present[row].then(|| &self.bytes[start..self.ends[row] as usize])
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
    /// For each row, the number of values in it and all previous rows.
    pub(super) row_ends: Vec<u32>,
    /// Offset of each column's values; has one more element than there are columns.
    pub(super) starts: Vec<u32>,
    pub(super) values: Vec<f32>,
    /// How each column records which rows have a value.
    pub(super) presence: Vec<StoredPresence>,
    /// One bit per row, least significant first, as in Arrow and Parquet.
    pub(super) bitmaps: Vec<u8>,
    /// Row numbers of columns with few values.
    pub(super) row_lists: Vec<u32>,
}

/// How a column records which rows have a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum StoredPresence {
    /// Every row has a value.
    All,
    /// As a bitmap that starts at this offset.
    Bitmap(usize),
    /// As a list of rows that starts at this offset.
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
    /// Whether a row has a value.
    pub fn has(&self, row: usize) -> bool {
        match self {
            PresentRows::All => true,
            PresentRows::Bits(bits) => bits.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1),
            PresentRows::Rows(rows) => rows.binary_search(&(row as u32)).is_ok(),
        }
    }
}

impl FeatureColumns {
    /// Number of features seen in this block.
    pub fn width(&self) -> usize {
        self.presence.len()
    }

    /// Number of present values.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Number of present values in a range of rows.
    pub fn entries_of_rows(&self, rows: Range<usize>) -> usize {
        let before = |row: usize| if row == 0 { 0 } else { self.row_ends[row - 1] as usize };
        before(rows.end) - before(rows.start)
    }

    /// The column of a feature. A feature beyond the width is absent in every row.
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
    /// The queries in order; empty if the input has no query ids and a side file has the query sizes.
    pub runs: Vec<QueryRun>,
    /// The names of all runs, concatenated.
    pub query_names: Vec<u8>,
    /// One document id per row.
    pub documents: NullableStrings,
    /// One weight per row, if the input has weights.
    pub weights: Option<Vec<f32>>,
    /// One position per row, if the input has positions.
    pub positions: Option<Vec<Option<i32>>>,
    /// The feature values.
    pub features: FeatureColumns,
    /// The distinct categories of each categorical feature, in order of appearance. The values of such a
    /// feature are indices into its list.
    pub categories: Vec<(u32, Vec<String>)>,
    /// Counts of repaired and skipped lines.
    pub repairs: RepairCounts,
}

impl Block {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// The query id of a run.
    pub fn run_name(&self, run: usize) -> &[u8] {
        let start = if run == 0 { 0 } else { self.runs[run - 1].name_end as usize };
        &self.query_names[start..self.runs[run].name_end as usize]
    }

    /// One past the last row of a run.
    pub fn run_end(&self, run: usize) -> usize {
        self.runs.get(run + 1).map_or(self.rows(), |next| next.first_row as usize)
    }

    /// Copies the rows of one run, so that the rest of the block can be freed. Categories must have been
    /// recoded.
    pub fn of_run(&self, run: usize) -> Block {
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

    /// Replaces the values of a categorical feature, using them as indices into `codes`.
    pub fn recode(&mut self, feature: u32, codes: &[f32]) {
        let feature = feature as usize;
        let (start, end) = (self.features.starts[feature], self.features.starts[feature + 1]);
        for value in &mut self.features.values[start as usize..end as usize] {
            *value = codes[*value as usize];
        }
    }
}

/// A block whose entries are in row order, for code that reorders rows.
#[derive(Debug, Default)]
pub struct RowMajorBlock {
    /// Everything except the features.
    pub block: Block,
    pub(super) entries: Vec<SparseEntry>,
    pub(super) row_ends: Vec<u32>,
}

impl RowMajorBlock {
    /// The entries of a row; NaN for missing values.
    pub fn entries(&self, row: usize) -> &[SparseEntry] {
        let start = if row == 0 { 0 } else { self.row_ends[row - 1] as usize };
        &self.entries[start..self.row_ends[row] as usize]
    }

    /// Replaces the values of a categorical feature, using them as indices into `codes`.
    pub fn recode(&mut self, feature: u32, codes: &[f32]) {
        for (index, value) in &mut self.entries {
            if *index == feature && !value.is_nan() {
                *value = codes[*value as usize];
            }
        }
    }
}
