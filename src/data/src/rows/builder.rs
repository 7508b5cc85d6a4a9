//! Collects rows one by one and transposes them to columns.

use super::block::{Block, FeatureColumns, QueryRun, RowMajorBlock, SparseEntry, StoredPresence};
use super::fault::FaultKind;

/// Collects rows one by one. The *open row* is the row that is being added. [`BlockBuilder::finish`] transposes all
/// rows to columns.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    block: Block,
    /// Entries of all rows, including the open row.
    entries: Vec<SparseEntry>,
    row_ends: Vec<u32>,
    /// Faults that were repaired in the open row.
    open_repairs: Vec<FaultKind>,
    /// Whether any value is NaN, which means that the input explicitly marks it as missing.
    some_missing: bool,
    width: u32,
}

impl BlockBuilder {
    /// Adds a value to the open row. `index` is the index of the feature, counted from 0.
    #[inline(always)]
    pub fn push_entry(&mut self, index: u32, value: f32) {
        self.entries.push((index, value));
    }

    /// Adds an explicitly missing value to the open row. It is stored as an entry, so that a repeated feature index
    /// is still detected.
    pub(crate) fn push_missing(&mut self, index: u32) {
        self.some_missing = true;
        self.push_entry(index, f32::NAN);
    }

    /// Reserves memory for the entries in a chunk of text of `bytes` bytes.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        // Most entries have at least six bytes. If they are shorter, such as "1:0 ", the vector grows once.
        self.entries.reserve(bytes / 6);
    }

    /// Returns the entries that have been added to the open row so far.
    pub(crate) fn open_row(&self) -> &[SparseEntry] {
        &self.entries[self.open_row_start()..]
    }

    /// Moves the entries of all rows out of the builder, so that a hot loop can append to them directly. The caller
    /// must give them back with [`BlockBuilder::restore_entries`].
    #[inline(always)]
    pub(crate) fn take_entries(&mut self) -> Vec<SparseEntry> {
        std::mem::take(&mut self.entries)
    }

    /// Gives back the entries that were taken with [`BlockBuilder::take_entries`].
    #[inline(always)]
    pub(crate) fn restore_entries(&mut self, entries: Vec<SparseEntry>) {
        self.entries = entries;
    }

    /// Replaces the entries of the open row.
    pub(crate) fn replace_open_row(&mut self, entries: impl Iterator<Item = SparseEntry>) {
        self.abandon_row();
        for (index, value) in entries {
            self.push_entry(index, value);
        }
    }

    fn open_row_start(&self) -> usize {
        self.row_ends.last().map_or(0, |end| *end as usize)
    }

    /// Discards the entries of the open row.
    fn abandon_row(&mut self) {
        let start = self.open_row_start();
        self.entries.truncate(start);
        self.block.documents.truncate(self.row_ends.len());
    }

    /// Completes the open row. The label is NaN for an unlabelled row.
    pub fn finish_row(&mut self, label: f32, document: Option<&[u8]>) {
        for kind in self.open_repairs.drain(..) {
            self.block.repairs.add(kind);
        }
        self.block.labels.push(label);
        self.block.documents.push(document);
        self.row_ends.push(self.entries.len() as u32);
    }

    /// Sets the query of the open row. Starts a new run if the query differs from that of the previous row.
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

    /// Removes the run that the discarded row has started, if any.
    fn abandon_query(&mut self) {
        let rows = self.block.labels.len() as u32;
        if self.block.runs.last().is_some_and(|run| run.first_row == rows) {
            self.block.runs.pop();
            let end = self.block.runs.last().map_or(0, |run| run.name_end as usize);
            self.block.query_names.truncate(end);
        }
    }

    /// Adds the weight of the row that was completed last.
    pub fn weight(&mut self, weight: f32) {
        self.block.weights.get_or_insert_default().push(weight);
    }

    /// Adds the position of the row that was completed last.
    pub fn position(&mut self, position: Option<i32>) {
        self.block.positions.get_or_insert_default().push(position);
    }

    /// Counts a fault that was repaired in the open row.
    pub fn repaired(&mut self, kind: FaultKind) {
        self.open_repairs.push(kind);
    }

    /// Discards the open row and counts the fault. If the row is the first of its query, the query is removed, too.
    pub(crate) fn skip_row(&mut self, kind: FaultKind) {
        self.abandon_row();
        self.abandon_query();
        self.open_repairs.clear();
        self.block.repairs.add(kind);
    }

    /// Sets the minimum number of feature columns.
    pub(crate) fn at_least_width(&mut self, width: u32) {
        self.width = self.width.max(width);
    }

    /// Sets the index and the categories of each categorical feature.
    pub(crate) fn set_categories(&mut self, categories: Vec<(u32, Vec<String>)>) {
        self.block.categories = categories;
    }

    /// Makes the zeros of the features that `is_listed` selects missing values. Categorical features keep theirs,
    /// which are codes.
    pub(crate) fn zeros_to_missing(&mut self, is_listed: impl Fn(u32) -> bool) {
        let categories = &self.block.categories;
        let is_word = |index: u32| categories.iter().any(|(feature, _)| *feature == index);
        for (index, value) in &mut self.entries {
            if *value == 0.0 && is_listed(*index) && !is_word(*index) {
                *value = f32::NAN;
                self.some_missing = true;
            }
        }
    }

    /// Keeps the entries of some features of all rows. `place_of` returns the new index of a feature that is kept, in the
    /// order of the indices. Returns the number of features before.
    pub(crate) fn choose_features(&mut self, place_of: impl Fn(u32) -> Option<u32>) -> u32 {
        let (mut read, mut written, mut width) = (0usize, 0usize, 0u32);
        for end in &mut self.row_ends {
            for entry in read..*end as usize {
                let (index, value) = self.entries[entry];
                width = width.max(index + 1);
                if let Some(place) = place_of(index) {
                    self.entries[written] = (place, value);
                    written += 1;
                }
            }
            read = *end as usize;
            *end = written as u32;
        }
        self.entries.truncate(written);
        width
    }

    /// Returns the number of rows without a label.
    fn unlabelled_rows(&self) -> usize {
        self.block.labels.iter().filter(|label| label.is_nan()).count()
    }

    /// Replaces missing labels by 0. Returns their number.
    pub(crate) fn label_unlabelled(&mut self) -> usize {
        let count = self.unlabelled_rows();
        self.block.labels.iter_mut().filter(|label| label.is_nan()).for_each(|label| *label = 0.0);
        count
    }

    /// Removes the rows without labels, and the queries of which no row is left. Returns the number of these rows.
    pub(crate) fn drop_unlabelled(&mut self) -> usize {
        let count = self.unlabelled_rows();
        if count == 0 {
            return 0;
        }
        let whole = std::mem::take(&mut self.block);
        let (entries, row_ends) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.row_ends));
        for run in 0..whole.runs.len() {
            for row in whole.runs[run].first_row as usize..whole.run_end(run) {
                if whole.labels[row].is_nan() {
                    continue;
                }
                self.query(whole.run_name(run), whole.runs[run].line);
                let start = if row == 0 { 0 } else { row_ends[row - 1] as usize };
                self.entries.extend_from_slice(&entries[start..row_ends[row] as usize]);
                self.finish_row(whole.labels[row], whole.documents.get(row));
                whole.weights.iter().for_each(|weights| self.weight(weights[row]));
                whole.positions.iter().for_each(|positions| self.position(positions[row]));
            }
        }
        self.block.categories = whole.categories;
        self.block.repairs = whole.repairs;
        // Columns that occur in dropped rows only stay, so that the features do not depend on the labels.
        let width = entries.iter().map(|(index, _)| index + 1).max().unwrap_or(0);
        self.at_least_width(width);
        count
    }

    /// Builds a block from the collected rows. Afterwards, the builder is empty, but keeps its buffers for the next
    /// chunk.
    pub fn finish(&mut self) -> Block {
        let mut block = std::mem::take(&mut self.block);
        block.features = self.transpose(block.labels.len());
        block.features.row_ends = self.present_ends();
        self.row_ends.clear();
        self.entries.clear();
        self.some_missing = false;
        block
    }

    /// Returns for each row the number of present values in this row and all previous rows.
    fn present_ends(&mut self) -> Vec<u32> {
        if !self.some_missing {
            return std::mem::take(&mut self.row_ends);
        }
        let (mut entry, mut present) = (0, 0);
        let count = |end: &u32| {
            let row = &self.entries[entry..*end as usize];
            present += row.iter().filter(|(_, value)| !value.is_nan()).count() as u32;
            entry = *end as usize;
            present
        };
        self.row_ends.iter().map(count).collect()
    }

    /// Returns the collected rows in row order, without transposing them.
    pub(crate) fn finish_rows(&mut self) -> RowMajorBlock {
        self.some_missing = false;
        RowMajorBlock {
            block: std::mem::take(&mut self.block),
            entries: std::mem::take(&mut self.entries),
            row_ends: std::mem::take(&mut self.row_ends),
        }
    }

    /// Transposes rows to columns with a counting sort: first counts the entries of each feature, which gives the
    /// start of each column, and then copies every entry to its column.
    fn transpose(&self, rows: usize) -> FeatureColumns {
        let seen = self.entries.iter().map(|(index, _)| index + 1).max().unwrap_or(0);
        let width = seen.max(self.width) as usize;
        let mut starts = vec![0u32; width + 1];
        if self.some_missing {
            for (index, value) in &self.entries {
                starts[*index as usize + 1] += u32::from(!value.is_nan());
            }
        } else {
            for (index, _) in &self.entries {
                starts[*index as usize + 1] += 1;
            }
        }
        let mut presence = Vec::with_capacity(width);
        let (mut bitmap_bytes, mut listed_rows) = (0, 0);
        for feature in 0..width {
            let count = starts[feature + 1] as usize;
            // Choose the smaller representation: a list needs four bytes per value, and a bitmap one bit per row.
            presence.push(if count == rows {
                StoredPresence::All
            } else if count * 32 < rows {
                listed_rows += count;
                StoredPresence::List(listed_rows - count)
            } else {
                bitmap_bytes += rows.div_ceil(8);
                StoredPresence::Bitmap(bitmap_bytes - rows.div_ceil(8))
            });
            starts[feature + 1] += starts[feature];
        }
        let mut columns = FeatureColumns {
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
            for (index, value) in &self.entries[entry..end] {
                let index = *index as usize;
                if self.some_missing && value.is_nan() {
                    continue;
                }
                let place = next[index];
                columns.values[place as usize] = *value;
                next[index] += 1;
                match columns.presence[index] {
                    StoredPresence::All => {}
                    StoredPresence::Bitmap(start) => columns.bitmaps[start + row / 8] |= 1 << (row % 8),
                    StoredPresence::List(start) => {
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
        /// Compares the columns with a naive implementation that looks up every cell in the rows.
        #[test]
        fn columns_hold_the_cells_of_the_rows(rows in prop::collection::vec(
            prop::collection::btree_map(0u32..20, prop::option::of(-9i8..9), 0..12), 0..150)) {
            let mut builder = BlockBuilder::default();
            for (number, row) in rows.iter().enumerate() {
                builder.query(&[b'a' + (number / 9) as u8], number as u64);
                for (index, value) in row {
                    match value {
                        Some(value) => builder.push_entry(*index, f32::from(*value)),
                        None => builder.push_missing(*index),
                    }
                }
                builder.finish_row(0.0, None);
            }
            let block = builder.finish();
            let cells = |block: &Block, feature: usize| {
                let column = block.features.column(feature);
                let mut values = column.values.iter();
                let cells: Vec<Option<f32>> = (0..block.rows()).map(|row| {
                    let present = column.present.has(row);
                    if present { values.next().copied() } else { None }
                }).collect();
                assert!(values.next().is_none());
                cells
            };
            for feature in 0..25 {
                let expected: Vec<Option<f32>> = rows.iter()
                    .map(|row| row.get(&(feature as u32)).copied().flatten().map(f32::from)).collect();
                prop_assert_eq!(cells(&block, feature), &expected[..]);
                for run in 0..block.runs.len() {
                    let part = block.of_run(run);
                    let rows = block.runs[run].first_row as usize..block.run_end(run);
                    prop_assert_eq!(part.run_name(0), block.run_name(run));
                    prop_assert_eq!(part.features.entries(), block.features.entries_of_rows(rows.clone()));
                    prop_assert_eq!(cells(&part, feature), &expected[rows]);
                }
            }
        }
    }

    #[test]
    fn dropped_rows_leave_their_columns_only() {
        let rows = [(1.0, "a"), (f32::NAN, "a"), (f32::NAN, "b"), (0.0, "c"), (f32::NAN, "c"), (2.0, "c")];
        let build = |dropped: bool| {
            let mut builder = BlockBuilder::default();
            for (number, (label, query)) in (0u32..).zip(rows) {
                if dropped && label.is_nan() {
                    continue;
                }
                builder.query(query.as_bytes(), if query == "c" { 4 } else { 1 });
                builder.push_entry(number % 2, number as f32);
                builder.finish_row(label, Some(query.as_bytes()));
                builder.weight(number as f32);
            }
            builder
        };
        let (mut all, mut few) = (build(false), build(true));
        assert_eq!((all.drop_unlabelled(), few.drop_unlabelled()), (3, 0));
        assert_eq!(all.finish(), few.finish());
        let mut labelled = build(false);
        assert_eq!(labelled.label_unlabelled(), 3);
        assert_eq!(labelled.finish().labels, [1.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
    }

    #[test]
    fn chosen_features_are_those_of_rows_without_the_others() {
        // Features 1 and 4 are left out; 4 is the last one.
        let place_of = |feature: u32| [Some(0), None, Some(1), Some(2), None][feature as usize];
        let rows: [&[u32]; 4] = [&[0, 1, 3], &[], &[4, 1], &[2, 0, 4]];
        let (mut all, mut few) = (BlockBuilder::default(), BlockBuilder::default());
        for row in rows {
            all.query(b"q", 1);
            few.query(b"q", 1);
            for feature in row {
                all.push_entry(*feature, *feature as f32);
                if let Some(place) = place_of(*feature) {
                    few.push_entry(place, *feature as f32);
                }
            }
            all.finish_row(1.0, None);
            few.finish_row(1.0, None);
        }
        assert_eq!(all.choose_features(place_of), 5);
        assert_eq!(all.finish(), few.finish());
    }

    #[test]
    fn a_skipped_row_leaves_no_trace() {
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
