//! Rows as the decoders hand them on: whole rows of one chunk of input, features turned into
//! columns, queries as runs.
//!
//! Vocabulary: a *block* is the rows of one chunk of text; a *run* is a stretch of rows of one
//! query; an *entry* is one present value. Everything here costs by entries, not by cells.

use super::fault::Repairs;
use std::ops::Range;

/// One value of a row: which feature, counted from 0, and the value; NaN is written but missing.
pub type Entry = (u32, f32);

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

    pub(super) fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.present.truncate(rows);
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }
}

/// The features of a block, column by column, present values only.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    pub(super) rows: usize,
    /// How many values each row and all before it have.
    pub(super) row_ends: Vec<u32>,
    /// Where each column's values start; one more than there are columns.
    pub(super) starts: Vec<u32>,
    pub(super) values: Vec<f32>,
    /// How each column says which rows have a value.
    pub(super) presence: Vec<Presence>,
    /// A bit a row, the lowest first, as Arrow and Parquet have them.
    pub(super) bitmaps: Vec<u8>,
    /// Rows of columns that have few values.
    pub(super) row_lists: Vec<u32>,
}

/// Where the rows of a column's values are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Presence {
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
    pub fn entries_of_rows(&self, rows: Range<usize>) -> usize {
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

    /// Some rows by themselves.
    fn of_rows(&self, rows: Range<usize>) -> Columns {
        let before = self.entries_of_rows(0..rows.start) as u32;
        let row_ends = self.row_ends[rows.clone()].iter().map(|end| end - before).collect();
        let mut copy = Columns { rows: rows.len(), row_ends, starts: vec![0], ..Columns::default() };
        for feature in 0..self.width() {
            let Column { values, present } = self.column(feature);
            let has = |row: &usize| present.has(*row);
            let (first, list): (usize, Vec<u32>) = match present {
                Present::All => (rows.start, (0..rows.len() as u32).collect()),
                Present::Rows(all) => {
                    let place = |row: usize| all.partition_point(|present| (*present as usize) < row);
                    let (first, end) = (place(rows.start), place(rows.end));
                    (first, all[first..end].iter().map(|row| row - rows.start as u32).collect())
                }
                Present::Bits(_) => {
                    let first = (0..rows.start).filter(has).count();
                    (first, rows.clone().filter(has).map(|row| (row - rows.start) as u32).collect())
                }
            };
            copy.values.extend_from_slice(&values[first..first + list.len()]);
            copy.starts.push(copy.values.len() as u32);
            copy.presence.push(if list.len() == rows.len() {
                Presence::All
            } else {
                let start = copy.row_lists.len();
                copy.row_lists.extend(list);
                Presence::List(start)
            });
        }
        copy
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

    /// The rows of one run by themselves, which do not keep those of others in memory. Words have their codes by now.
    pub fn of_run(&self, run: usize) -> Block {
        let rows = self.runs[run].first_row as usize..self.run_end(run);
        let name = self.run_name(run);
        let mut documents = Strings::default();
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
            repairs: Repairs::default(),
        }
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
    pub(super) entries: Vec<Entry>,
    pub(super) row_ends: Vec<u32>,
}

impl Rows {
    /// The entries of a row, NaN for missing.
    pub fn entries(&self, row: usize) -> &[Entry] {
        let start = if row == 0 { 0 } else { self.row_ends[row - 1] as usize };
        &self.entries[start..self.row_ends[row] as usize]
    }

    /// Rewrites the values of a column of categories, code by code.
    pub fn recode(&mut self, feature: u32, codes: &[f32]) {
        for (index, value) in &mut self.entries {
            if *index == feature && !value.is_nan() {
                *value = codes[*value as usize];
            }
        }
    }
}
