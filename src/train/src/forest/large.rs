//! Large nodes: the columns of the features that a node looks at are added up partition after partition, and
//! so are its rows moved to its children. Some nodes, of one tree or of many, can share the way through the
//! partitions.

use super::block::{Ground, OpenNode};
use super::criterion::Criterion;
use super::cut::{Best, FoundCut};
use super::features::{Drawn, TreeFeatures};
use super::view::{Lanes, View};
use crate::driver::ForestTree;
use std::ops::Range;

/// Codes that a byte tells apart.
const CODES: usize = 256;
/// Rows whose numbers and labels are fetched before their codes are.
const AT_A_TIME: usize = 2048;
/// Rows whose codes are copied together.
const ROWS_AT_A_TIME: usize = 128;

/// A large node while it is looked at.
pub struct LargeNode<K: Criterion> {
    open: OpenNode<K::Sums>,
    /// Features that are added up now, and what they add up to.
    looks: Vec<(Drawn, Tally<K>)>,
    /// How many were looked at before.
    looked: usize,
    /// The split that was found.
    cut: Option<FoundCut<K::Sums>>,
    /// By how much it is better than none.
    gain: f64,
    /// Whether there is nothing more to look at.
    done: bool,
    /// Rows that went left and right so far.
    sides: (usize, usize),
}

/// Sums of a node's rows by code of a feature.
enum Tally<K: Criterion> {
    /// A cell for every byte.
    Cells(Box<[K::Sums; CODES]>),
    /// A row each, in any order.
    Rows(Vec<(u32, K::Row)>),
}

/// Room for one thread.
pub struct Buffers<K: Criterion> {
    places: Vec<u32>,
    bytes: Vec<u8>,
    said: Vec<K::Row>,
}

impl<K: Criterion> Buffers<K> {
    /// Empty ones.
    pub fn new() -> Self {
        Buffers { places: Vec::new(), bytes: Vec::new(), said: Vec::new() }
    }
}

impl<K: Criterion> LargeNode<K> {
    /// A node that nobody looked at yet.
    pub fn new(open: OpenNode<K::Sums>) -> Self {
        let looks = Vec::new();
        LargeNode { open, looks, looked: 0, cut: None, gain: 0.0, done: false, sides: (0, 0) }
    }

    /// Draws the features to look at next: as many as a node should, and after those one at a time until one
    /// varies or there are no more. False when the node is done.
    pub fn draw(&mut self, ground: &Ground<'_, K>, features: &mut TreeFeatures) -> bool {
        if self.done {
            return false;
        }
        let wanted = if self.looked == 0 { features.per_node } else { 1 };
        features.start(self.open.path);
        let before = (0..self.looked).all(|_| features.next().is_some());
        for _ in 0..wanted {
            let Some(drawn) = features.next().filter(|_| before) else { break };
            let tally = match ground.binning.features[drawn.feature as usize].codes() {
                0..=CODES => Tally::Cells(Box::new([K::Sums::default(); CODES])),
                _ => Tally::Rows(Vec::new()),
            };
            self.looks.push((drawn, tally));
        }
        self.looked += self.looks.len();
        self.done = self.looks.is_empty();
        !self.done
    }

    /// Bytes that the sums of one node may take.
    pub fn bytes(features: &TreeFeatures) -> usize {
        features.per_node * CODES * size_of::<K::Sums>()
    }

    /// Adds the node's rows of a partition. `rows` are those of the tree, `said` is by number of the row.
    pub fn count(
        &mut self,
        lanes: &Lanes,
        view: &View<'_>,
        rows: &[u32],
        said: &[K::Row],
        buffers: &mut Buffers<K>,
    ) {
        let rows = &rows[self.open.rows.clone()];
        if self.looks.is_empty() {
            return;
        }
        let rows = &rows[view.part(rows)];
        let by_rows = view.is_sparse(rows.len(), self.looks.len());
        for rows in rows.chunks(if by_rows { ROWS_AT_A_TIME } else { AT_A_TIME }) {
            buffers.said.clear();
            buffers.said.extend(rows.iter().map(|row| said[*row as usize]));
            if by_rows {
                self.count_by_rows(lanes, view, rows, buffers);
            } else {
                self.count_by_columns(view, rows, buffers);
            }
        }
    }

    /// Adds rows that lie far apart: their codes are fetched together, whatever the feature.
    fn count_by_rows(&mut self, lanes: &Lanes, view: &View<'_>, rows: &[u32], buffers: &mut Buffers<K>) {
        buffers.bytes.clear();
        view.append_bytes(rows, &mut buffers.bytes);
        for (drawn, tally) in &mut self.looks {
            let Tally::Cells(cells) = tally else { continue };
            let lane = lanes.of_feature(drawn.feature);
            for (codes, said) in buffers.bytes.chunks_exact(lanes.stride).zip(&buffers.said) {
                K::add(&mut cells[codes[lane] as usize], *said);
            }
        }
    }

    /// Adds rows that lie close together, column by column.
    fn count_by_columns(&mut self, view: &View<'_>, rows: &[u32], buffers: &mut Buffers<K>) {
        buffers.places.clear();
        buffers.places.extend(rows.iter().map(|row| row - view.first));
        for (drawn, tally) in &mut self.looks {
            let Some(column) = view.column(drawn.feature) else { continue };
            match (tally, column.bytes()) {
                (Tally::Cells(cells), Some(codes)) => {
                    for (place, said) in buffers.places.iter().zip(&buffers.said) {
                        K::add(&mut cells[codes[*place as usize] as usize], *said);
                    }
                }
                (Tally::Cells(cells), None) => {
                    for (place, said) in buffers.places.iter().zip(&buffers.said) {
                        K::add(&mut cells[column.code(*place) as usize % CODES], *said);
                    }
                }
                (Tally::Rows(list), _) => {
                    let codes = buffers.places.iter().map(|place| column.code(*place));
                    list.extend(codes.zip(buffers.said.iter().copied()));
                }
            }
        }
    }

    /// Decides on a cut from what was added up.
    pub fn decide(&mut self, ground: &Ground<'_, K>) {
        if self.looks.is_empty() {
            return;
        }
        let mut best = Best::new(&ground.criterion, &ground.rules, self.open.sums);
        for (drawn, tally) in std::mem::take(&mut self.looks) {
            let list = tally.into_list();
            if list.len() > 1 {
                self.done = true;
                best.look(&drawn, &ground.binning.features[drawn.feature as usize], &list);
            }
        }
        self.gain = best.found.as_ref().map_or(0.0, |cut| best.gain(cut));
        self.cut = best.found;
    }

    /// Moves the node's rows of a partition: left ones within `rows`, right ones to the same stretch of `spare`.
    pub fn divide(&mut self, ground: &Ground<'_, K>, view: &View<'_>, rows: &mut [u32], spare: &mut [u32]) {
        let Some(cut) = &self.cut else { return };
        let (rows, spare) = (&mut rows[self.open.rows.clone()], &mut spare[self.open.rows.clone()]);
        let (left, right) = self.sides;
        // What lies before has moved already, and what is in its place now is no longer in order.
        let part = view.part(&rows[left + right..]);
        let part = left + right + part.start..left + right + part.end;
        let bins = &ground.binning.features[cut.feature as usize];
        let missing = bins.missing_code.filter(|_| cut.missing_left).unwrap_or(u32::MAX);
        let Some(column) = view.column(cut.feature) else { return };
        let goes_left = |code: u32| code <= cut.code || code == missing;
        let mut moved = Moved { rows, spare, left, right };
        match column.bytes() {
            Some(codes) => {
                moved.divide(part, |row| goes_left(u32::from(codes[(row - view.first) as usize])));
            }
            None => moved.divide(part, |row| goes_left(column.code(row - view.first))),
        }
        self.sides = (moved.left, moved.right);
    }

    /// The node's children, after all of its rows were moved; none if there is no split.
    pub fn settle(
        self,
        ground: &Ground<'_, K>,
        tree: &mut ForestTree,
        rows: &mut [u32],
        spare: &[u32],
    ) -> Option<[OpenNode<K::Sums>; 2]> {
        let cut = self.cut?;
        let Range { start, end } = self.open.rows;
        let (left, right) = self.sides;
        rows[start + left..end].copy_from_slice(&spare[start..start + right]);
        let sums = K::minus(self.open.sums, &cut.left);
        let (first, second) = ground.add_children(tree, &self.open, &cut.left, &sums);
        tree.nodes[self.open.node as usize].split = Some(cut.to_split(first.node, self.gain));
        let middle = start + left;
        Some([OpenNode { rows: start..middle, ..first }, OpenNode { rows: middle..end, ..second }])
    }
}

/// Rows of a node on the way to its children.
struct Moved<'a> {
    rows: &'a mut [u32],
    spare: &'a mut [u32],
    left: usize,
    right: usize,
}

impl Moved<'_> {
    #[inline(always)]
    fn divide(&mut self, part: Range<usize>, goes_left: impl Fn(u32) -> bool) {
        for place in part {
            let row = self.rows[place];
            let is_left = goes_left(row);
            // Both are written and one is kept: there is no branch to guess wrongly.
            self.rows[self.left] = row;
            self.spare[self.right] = row;
            self.left += usize::from(is_left);
            self.right += usize::from(!is_left);
        }
    }
}

impl<K: Criterion> Tally<K> {
    /// The sums by code, ascending, of codes that occur.
    fn into_list(self) -> Vec<(u32, K::Sums)> {
        match self {
            Tally::Cells(cells) => {
                let cells = (0..).zip(*cells);
                cells.filter(|(_, sums)| K::rows(sums) > 0).collect()
            }
            Tally::Rows(mut rows) => {
                rows.sort_unstable_by_key(|(code, _)| *code);
                let mut list: Vec<(u32, K::Sums)> = Vec::new();
                for same in rows.chunk_by(|one, other| one.0 == other.0) {
                    let mut sums = K::Sums::default();
                    same.iter().for_each(|(_, said)| K::add(&mut sums, *said));
                    list.push((same[0].0, sums));
                }
                list
            }
        }
    }
}
