//! Collects blocks, each of which holds the rows of one chunk of input, into row groups. A row group ends at the end
//! of a query, once it has enough rows or values. The boundaries depend only on the rows, not on blocks, threads or
//! memory, so equal rows give equal files.

use crate::rows::Block;
use planetree_base::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// The position in the inputs at which a query starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InputLine {
    /// Index of the input.
    pub input: u32,
    /// Line number, counted from 1.
    pub line: u64,
}

/// Number of rows after which a row group ends. The last query of the row group is completed first.
pub(crate) const GROUP_ROWS: usize = 1 << 16;
/// Number of present feature values after which a row group ends. The last query of the row group is completed first.
pub(crate) const GROUP_ENTRIES: usize = 1 << 23;
/// Bytes of document ids after which a row group ends. The last query of the row group is completed first.
const GROUP_TEXT: usize = 1 << 25;

/// A query within a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupQuery {
    /// The query id.
    pub name: String,
    /// Number of rows.
    pub rows: usize,
}

/// The rows of one row group, which consists of whole queries, before they are encoded.
#[derive(Debug, Default)]
pub(crate) struct RowGroup {
    /// The rows of the group in order. Each element selects a range of rows from a block.
    pub slices: Vec<(Arc<Block>, Range<usize>)>,
    /// The queries, in order.
    pub queries: Vec<GroupQuery>,
    /// Number of the group's first row in the dataset, counted from 0.
    pub first_row: u64,
    /// Number of rows.
    pub rows: usize,
    /// Number of features in the input so far, including earlier row groups.
    pub width: usize,
    entries: usize,
    /// Bytes of document ids.
    text: usize,
    heap: usize,
}

/// Collects blocks into row groups.
pub(crate) struct Grouper {
    partition_rows: usize,
    max_bytes: usize,
    open: RowGroup,
    width: usize,
    /// Number of rows in the current file before the open row group.
    part_rows: usize,
    /// Number of rows in all row groups before the open one.
    rows: u64,
    /// Id of the query whose rows are currently skipped, if any.
    skipped_query: Option<String>,
    /// Whether any query was skipped. If so, the rows that are kept are copied, so that they do not keep their whole
    /// block in memory.
    has_skipped: bool,
}

impl Grouper {
    /// Creates an empty grouper. A file ends after the query that brings it to at least `partition_rows` rows.
    /// `max_bytes` limits the memory of one row group.
    pub(crate) fn new(partition_rows: usize, max_bytes: usize) -> Self {
        let open = RowGroup::default();
        Grouper {
            partition_rows,
            max_bytes,
            open,
            width: 0,
            part_rows: 0,
            rows: 0,
            skipped_query: None,
            has_skipped: false,
        }
    }

    /// Adds a block. `begin` is called with the id and the line of every query that starts, and returns whether to
    /// keep the query. `emit` receives every full row group.
    pub(crate) fn push(
        &mut self,
        block: Arc<Block>,
        begin: &mut dyn FnMut(&str, u64) -> Result<bool>,
        emit: &mut dyn FnMut(RowGroup) -> Result<()>,
    ) -> Result<()> {
        self.width = self.width.max(block.features.width());
        if block.runs.is_empty() && block.rows() > 0 {
            return Err(Error::bug("input", "rows without a query"));
        }
        for run in 0..block.runs.len() {
            let rows = block.runs[run].first_row as usize..block.run_end(run);
            // Decoders ensure that query ids are valid UTF-8.
            let name = std::str::from_utf8(block.run_name(run)).unwrap_or_default();
            let last = self.skipped_query.as_ref().or(self.open.queries.last().map(|query| &query.name));
            if last.is_none_or(|last| last != name) {
                let keep = begin(name, block.runs[run].line)?;
                self.skipped_query = (!keep).then(|| name.to_owned());
                self.has_skipped |= !keep;
                if keep {
                    if self.is_full() {
                        emit(self.take())?;
                    }
                    self.open.queries.push(GroupQuery { name: name.to_owned(), rows: 0 });
                }
            }
            if self.skipped_query.is_some() {
                continue;
            }
            if self.has_skipped {
                self.add(&Arc::new(block.of_run(run)), 0..rows.len());
            } else {
                self.add(&block, rows);
            }
            if self.open.heap > self.max_bytes {
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
        let text = block.documents.bytes_of(rows.clone());
        open.entries += entries;
        open.text += text;
        open.heap += 4 * entries + 32 * rows.len() + text;
        match open.slices.last_mut() {
            Some((last, range)) if Arc::ptr_eq(last, block) && range.end == rows.start => {
                range.end = rows.end
            }
            _ => open.slices.push((block.clone(), rows)),
        }
    }

    fn is_full(&self) -> bool {
        self.open.rows >= GROUP_ROWS
            || self.open.entries >= GROUP_ENTRIES
            || self.open.text >= GROUP_TEXT
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

    /// Returns the last row group, or `None` if it has no rows.
    pub(crate) fn finish(mut self) -> Option<RowGroup> {
        (self.open.rows > 0).then(|| self.take())
    }

    fn too_large(&self) -> Error {
        let query = self.open.queries.last();
        Error::place(
            format_args!("query {:?}", query.map_or("", |query| &query.name)),
            format_args!(
                "the first {} documents do not fit in memory, and a query is never split",
                query.map_or(0, |query| query.rows)
            ),
            "raise --memory-limit",
        )
    }
}
