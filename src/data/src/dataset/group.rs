//! Blocks to row groups: rows are collected until a query ends and enough are together. Where a
//! row group ends depends on the rows alone, not on how the input was cut into blocks, on threads
//! or on memory, so that equal rows make equal files.

use crate::rows::Block;
use planetree_base::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Where a query was met: the input, by its place in the list of inputs, and the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which input.
    pub input: u32,
    /// Line, counted from 1.
    pub line: u64,
}

/// A row group ends at the first query that ends at or after this many rows.
pub const GROUP_ROWS: usize = 1 << 16;
/// ... or at or after this many values that are present.
pub const GROUP_ENTRIES: usize = 1 << 23;

/// A query within a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupQuery {
    /// Its id.
    pub name: String,
    /// How many rows it has.
    pub rows: usize,
}

/// Whole queries, ready to be written.
#[derive(Debug, Default)]
pub struct RowGroup {
    /// Stretches of blocks, in order.
    pub pieces: Vec<(Arc<Block>, Range<usize>)>,
    /// The queries, in order.
    pub queries: Vec<GroupQuery>,
    /// The number of the first row in the dataset.
    pub first_row: u64,
    /// How many rows.
    pub rows: usize,
    /// How many features the input has shown by now: at least as many as these rows have.
    pub width: usize,
    entries: usize,
    heap: usize,
}

/// Collects blocks into row groups.
pub struct Grouper {
    partition_rows: usize,
    most_bytes: usize,
    open: RowGroup,
    width: usize,
    /// Rows of the file that the open group will end in, before the group.
    part_rows: usize,
    /// Rows of all groups before the open one.
    rows: u64,
    /// The query whose rows are being left out.
    left_out: Option<String>,
    /// Whether any was: then rows that stay are copied, since few of a block may.
    leaves_out: bool,
}

impl Grouper {
    /// A file ends with the query that reaches `partition_rows`; `most_bytes` is what one group may
    /// hold in memory.
    pub fn new(partition_rows: usize, most_bytes: usize) -> Self {
        let open = RowGroup::default();
        Grouper {
            partition_rows,
            most_bytes,
            open,
            width: 0,
            part_rows: 0,
            rows: 0,
            left_out: None,
            leaves_out: false,
        }
    }

    /// Adds a block. `begin` is told of every query that begins and says whether it stays; `emit` gets
    /// every full group.
    pub fn push(
        &mut self,
        block: Arc<Block>,
        begin: &mut dyn FnMut(&str, u64) -> Result<bool>,
        emit: &mut dyn FnMut(RowGroup) -> Result<()>,
    ) -> Result<()> {
        self.width = self.width.max(block.features.width());
        if block.runs.is_empty() && block.rows() > 0 {
            return Err(Error::place("input", "rows without a query", "please report this as a bug"));
        }
        for run in 0..block.runs.len() {
            let rows = block.runs[run].first_row as usize..block.run_end(run);
            // Decoders hand on only names that are UTF-8.
            let name = std::str::from_utf8(block.run_name(run)).unwrap_or_default();
            let last = self.left_out.as_ref().or(self.open.queries.last().map(|query| &query.name));
            if last.is_none_or(|last| last != name) {
                let stays = begin(name, block.runs[run].line)?;
                self.left_out = (!stays).then(|| name.to_owned());
                self.leaves_out |= !stays;
                if stays {
                    if self.is_full() {
                        emit(self.take())?;
                    }
                    self.open.queries.push(GroupQuery { name: name.to_owned(), rows: 0 });
                }
            }
            if self.left_out.is_some() {
                continue;
            }
            if self.leaves_out {
                self.add(&Arc::new(block.of_run(run)), 0..rows.len());
            } else {
                self.add(&block, rows);
            }
            if self.open.heap > self.most_bytes {
                return Err(self.too_large());
            }
        }
        Ok(())
    }

    fn add(&mut self, block: &Arc<Block>, rows: Range<usize>) {
        let open = &mut self.open;
        open.rows += rows.len();
        if let Some(query) = open.queries.last_mut() {
            query.rows += rows.len();
        }
        let entries = block.features.entries_of_rows(rows.clone());
        open.entries += entries;
        open.heap += 4 * entries + 32 * rows.len();
        match open.pieces.last_mut() {
            Some((last, range)) if Arc::ptr_eq(last, block) && range.end == rows.start => {
                range.end = rows.end
            }
            _ => open.pieces.push((block.clone(), rows)),
        }
    }

    fn is_full(&self) -> bool {
        self.open.rows >= GROUP_ROWS
            || self.open.entries >= GROUP_ENTRIES
            || self.part_rows + self.open.rows >= self.partition_rows
    }

    fn take(&mut self) -> RowGroup {
        self.part_rows += self.open.rows;
        if self.part_rows >= self.partition_rows {
            self.part_rows = 0;
        }
        let first_row = self.rows;
        self.rows += self.open.rows as u64;
        RowGroup { first_row, width: self.width, ..std::mem::take(&mut self.open) }
    }

    /// The last group, if there are rows in it.
    pub fn finish(mut self) -> Option<RowGroup> {
        (self.open.rows > 0).then(|| self.take())
    }

    fn too_large(&self) -> Error {
        let query = self.open.queries.last();
        Error::place(
            format_args!("query {:?}", query.map_or("", |query| &query.name)),
            format_args!(
                "its {} documents so far do not fit in memory, and a query is never split",
                query.map_or(0, |query| query.rows)
            ),
            "raise --memory-limit",
        )
    }
}
