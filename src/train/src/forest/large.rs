//! Splits large nodes. For each sampled feature, the rows of a node are summed by code (bin number), partition by
//! partition. Then the rows are moved to the children, also partition by partition. Several nodes, of one or more
//! trees, can share one scan of the partitions.

use super::block::{Children, ForestContext, OpenForestNode};
use super::criterion::Criterion;
use super::cut::{BestForestCut, CodeExtremes, FoundCut, sums_of};
use super::features::{Drawn, TreeFeatures};
use super::view::{CodeLanes, PartitionView};
use crate::driver::ForestTree;
use std::ops::Range;

/// Number of different codes that fit in one byte.
const CODES: usize = 256;
/// Number of rows that are summed at a time if their codes are read column by column.
const AT_A_TIME: usize = 2048;
/// Number of rows that are summed at a time if the codes of whole rows are copied.
const ROWS_AT_A_TIME: usize = 128;

/// A large node whose split is being searched.
pub(super) struct LargeNode<K: Criterion> {
    open: OpenForestNode<K::Sums>,
    /// Features that are summed in the current scan, with their sums.
    pending: Vec<(Drawn, FeatureTally<K>)>,
    /// Number of features that were summed in earlier scans.
    scanned: usize,
    /// The best cut so far.
    cut: Option<FoundCut<K::Sums>>,
    /// Gain of the best cut.
    gain: f64,
    /// Whether rows differ in a feature that was scanned.
    varies: bool,
    /// Whether the search for a cut is complete.
    done: bool,
    /// Number of rows moved to the children so far: left, right, middle.
    sides: [usize; 3],
}

/// The rows of a node, grouped by the codes of one feature.
enum FeatureTally<K: Criterion> {
    /// Sums for each code, if all codes of the feature fit in one byte.
    Cells(Box<[K::Sums; CODES]>),
    /// Code and target of each row, in no particular order.
    Rows(Vec<(u32, K::Row)>),
}

/// Buffers that each thread reuses.
pub(super) struct Buffers<K: Criterion> {
    places: Vec<u32>,
    bytes: Vec<u8>,
    targets: Vec<K::Row>,
}

impl<K: Criterion> Buffers<K> {
    pub(super) fn new() -> Self {
        Buffers { places: Vec::new(), bytes: Vec::new(), targets: Vec::new() }
    }
}

impl<K: Criterion> LargeNode<K> {
    pub(super) fn new(open: OpenForestNode<K::Sums>) -> Self {
        let pending = Vec::new();
        LargeNode {
            open,
            pending,
            scanned: 0,
            cut: None,
            gain: 0.0,
            varies: false,
            done: false,
            sides: [0; 3],
        }
    }

    /// Samples the features of the next scan. The first scan has `per_node` features, or as many as fit in `room` bytes if
    /// their rows are listed; the others follow in further scans. If all features scanned so far are constant in the node
    /// and features are redrawn, further scans have one feature each. Returns false if the search is complete.
    pub(super) fn draw(
        &mut self,
        context: &ForestContext<'_, K>,
        features: &mut TreeFeatures,
        room: usize,
    ) -> bool {
        if self.done {
            return false;
        }
        let wanted = match features.per_node.saturating_sub(self.scanned) {
            0 if features.redraws && !self.varies => 1,
            wanted => wanted,
        };
        let rows = self.open.rows.len();
        let mut listed = 0;
        features.start(self.open.path);
        let before = (0..self.scanned).all(|_| features.next().is_some());
        for _ in 0..wanted {
            let Some(drawn) = features.next().filter(|_| before) else { break };
            let tally = match context.binning.features[drawn.feature as usize].codes() {
                0..=CODES => FeatureTally::Cells(Box::new([K::Sums::default(); CODES])),
                _ => {
                    listed += rows * size_of::<(u32, K::Row)>();
                    if listed > room && !self.pending.is_empty() {
                        break;
                    }
                    FeatureTally::Rows(Vec::with_capacity(rows))
                }
            };
            self.pending.push((drawn, tally));
        }
        self.scanned += self.pending.len();
        self.done = self.pending.is_empty();
        !self.done
    }

    /// Returns the maximum memory for the sums of one node, in bytes.
    pub(super) fn bytes(features: &TreeFeatures) -> usize {
        features.per_node * CODES * size_of::<K::Sums>()
    }

    /// Adds the node's rows in a partition to the sums. `rows` contains all rows of the tree, and `targets` is indexed
    /// by row number.
    pub(super) fn count(
        &mut self,
        lanes: &CodeLanes,
        view: &PartitionView<'_>,
        rows: &[u32],
        targets: &[K::Row],
        buffers: &mut Buffers<K>,
    ) {
        let rows = &rows[self.open.rows.clone()];
        if self.pending.is_empty() {
            return;
        }
        let rows = &rows[view.part(rows)];
        let by_rows = view.is_sparse(rows.len(), self.pending.len());
        for rows in rows.chunks(if by_rows { ROWS_AT_A_TIME } else { AT_A_TIME }) {
            buffers.targets.clear();
            buffers.targets.extend(rows.iter().map(|row| targets[*row as usize]));
            if by_rows {
                self.count_by_rows(lanes, view, rows, buffers);
            } else {
                self.count_by_columns(view, rows, buffers);
            }
        }
    }

    /// Adds rows that are far apart in memory. The codes of whole rows are copied first.
    fn count_by_rows(
        &mut self,
        lanes: &CodeLanes,
        view: &PartitionView<'_>,
        rows: &[u32],
        buffers: &mut Buffers<K>,
    ) {
        buffers.bytes.clear();
        view.append_bytes(rows, &mut buffers.bytes);
        for (drawn, tally) in &mut self.pending {
            let FeatureTally::Cells(cells) = tally else { continue };
            let lane = lanes.of_feature(drawn.feature);
            for (codes, target) in buffers.bytes.chunks_exact(lanes.stride).zip(&buffers.targets) {
                K::add(&mut cells[codes[lane] as usize], *target);
            }
        }
    }

    /// Adds rows that are close together in memory, column by column.
    fn count_by_columns(&mut self, view: &PartitionView<'_>, rows: &[u32], buffers: &mut Buffers<K>) {
        buffers.places.clear();
        buffers.places.extend(rows.iter().map(|row| row - view.first));
        for (drawn, tally) in &mut self.pending {
            let Some(column) = view.column(drawn.feature) else { continue };
            match (tally, column.bytes()) {
                (FeatureTally::Cells(cells), Some(codes)) => {
                    for (place, target) in buffers.places.iter().zip(&buffers.targets) {
                        K::add(&mut cells[codes[*place as usize] as usize], *target);
                    }
                }
                (FeatureTally::Cells(cells), None) => {
                    for (place, target) in buffers.places.iter().zip(&buffers.targets) {
                        K::add(&mut cells[column.code(*place) as usize % CODES], *target);
                    }
                }
                (FeatureTally::Rows(list), _) => {
                    let codes = buffers.places.iter().map(|place| column.code(*place));
                    list.extend(codes.zip(buffers.targets.iter().copied()));
                }
            }
        }
    }

    /// Chooses the best cut from the sums.
    pub(super) fn decide(&mut self, context: &ForestContext<'_, K>) {
        if self.pending.is_empty() {
            return;
        }
        let mut best =
            BestForestCut::new(&context.criterion, &context.rules, self.open.sums, self.open.bounds);
        best.found = self.cut.take(); // of earlier scans
        for (drawn, tally) in std::mem::take(&mut self.pending) {
            let bins = &context.binning.features[drawn.feature as usize];
            if let (FeatureTally::Rows(rows), true) = (&tally, context.rules.is_random()) {
                // A single cut needs no order of the rows.
                let codes = CodeExtremes::of(rows.iter().map(|(code, _)| *code), bins);
                self.varies |= codes.vary();
                best.try_at_random(&drawn, bins, &codes, |goes_left| {
                    sums_of::<K>(rows.iter().copied(), goes_left)
                });
                continue;
            }
            let list = tally.into_list();
            if list.len() > 1 {
                self.varies = true;
                best.consider(&drawn, bins, &list);
            }
        }
        self.gain = best.found.as_ref().map_or(0.0, |cut| best.gain(cut));
        self.cut = best.found;
    }

    /// Moves the node's rows in a partition. Rows that go left stay within `rows`; rows that go right move to the front
    /// of the same range of `spare`, and those of the middle child to its end, in reverse order.
    pub(super) fn divide(
        &mut self,
        context: &ForestContext<'_, K>,
        view: &PartitionView<'_>,
        rows: &mut [u32],
        spare: &mut [u32],
    ) {
        let Some(cut) = &self.cut else { return };
        let (rows, spare) = (&mut rows[self.open.rows.clone()], &mut spare[self.open.rows.clone()]);
        // The first entries belong to rows of earlier partitions, which were already moved. These entries are not in
        // order, so the search starts after them.
        let done: usize = self.sides.iter().sum();
        let part = view.part(&rows[done..]);
        let part = done + part.start..done + part.end;
        let bins = &context.binning.features[cut.feature as usize];
        let missing = cut.missing_goes_left(bins);
        let Some(column) = view.column(cut.feature) else { return };
        let goes_left = |code: u32| code <= cut.code || code == missing;
        let [left, right, middle] = self.sides;
        let mut moved = Moved { rows, spare, left, right, middle };
        match (column.bytes(), cut.missing_goes_middle(bins)) {
            (Some(codes), None) => {
                moved.divide(part, |row| goes_left(u32::from(codes[(row - view.first) as usize])));
            }
            (None, None) => moved.divide(part, |row| goes_left(column.code(row - view.first))),
            (_, Some(missing)) => moved.divide_in_three(part, |row| {
                let code = column.code(row - view.first);
                if code == missing { 2 } else { usize::from(!goes_left(code)) }
            }),
        }
        self.sides = [moved.left, moved.right, moved.middle];
    }

    /// Applies the split after all rows were moved. Returns the children, or `None` if the node is not split.
    pub(super) fn settle(
        self,
        context: &ForestContext<'_, K>,
        tree: &mut ForestTree,
        rows: &mut [u32],
        spare: &[u32],
    ) -> Option<Children<K::Sums>> {
        let cut = self.cut?;
        let Range { start, end } = self.open.rows;
        let [left, right, middle] = self.sides;
        let (lefts, rights) = (start + left, end - middle);
        rows[lefts..rights].copy_from_slice(&spare[start..start + right]);
        for (row, moved) in rows[rights..end].iter_mut().zip(spare[rights..end].iter().rev()) {
            *row = *moved;
        }
        let mut children = context.add_children(tree, &self.open, &cut);
        tree.nodes[self.open.node as usize].split = Some(cut.to_split(children[0].node, self.gain));
        for (child, rows) in children.iter_mut().zip([start..lefts, lefts..rights, rights..end]) {
            child.rows = rows;
        }
        Some(children)
    }
}

/// Rows of a node while they are moved to its children.
struct Moved<'a> {
    rows: &'a mut [u32],
    spare: &'a mut [u32],
    left: usize,
    right: usize,
    middle: usize,
}

impl Moved<'_> {
    /// Moves rows to three children. `child_of` returns 0 for left, 1 for right and 2 for middle.
    fn divide_in_three(&mut self, part: Range<usize>, child_of: impl Fn(u32) -> usize) {
        for place in part {
            let row = self.rows[place];
            match child_of(row) {
                0 => {
                    self.rows[self.left] = row;
                    self.left += 1;
                }
                1 => {
                    self.spare[self.right] = row;
                    self.right += 1;
                }
                _ => {
                    self.middle += 1;
                    let last = self.spare.len() - self.middle;
                    self.spare[last] = row;
                }
            }
        }
    }

    #[inline(always)]
    fn divide(&mut self, part: Range<usize>, goes_left: impl Fn(u32) -> bool) {
        for place in part {
            let row = self.rows[place];
            let is_left = goes_left(row);
            // Avoid branches: write the row to both sides, but advance only one.
            self.rows[self.left] = row;
            self.spare[self.right] = row;
            self.left += usize::from(is_left);
            self.right += usize::from(!is_left);
        }
    }
}

impl<K: Criterion> FeatureTally<K> {
    /// Returns the sums for each code that occurs, in ascending order of codes.
    fn into_list(self) -> Vec<(u32, K::Sums)> {
        match self {
            FeatureTally::Cells(cells) => {
                let cells = (0..).zip(*cells);
                cells.filter(|(_, sums)| K::rows(sums) > 0).collect()
            }
            FeatureTally::Rows(mut rows) => {
                rows.sort_unstable_by_key(|(code, _)| *code);
                let mut list: Vec<(u32, K::Sums)> = Vec::new();
                for same in rows.chunk_by(|one, other| one.0 == other.0) {
                    let mut sums = K::Sums::default();
                    same.iter().for_each(|(_, target)| K::add(&mut sums, *target));
                    list.push((same[0].0, sums));
                }
                list
            }
        }
    }
}
