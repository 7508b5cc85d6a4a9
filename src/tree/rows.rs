//! Which rows are in which node: each partition keeps the rows of a node side by side, in the order
//! they have in the dataset, and the rows' targets in the same order.

use super::cell::Cell;
use super::split::FoundSplit;
use crate::bins::{BinnedData, Column};
use crate::error::Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A node by its place in the tree.
pub type NodeId = usize;

/// The rows of all nodes.
pub struct RowSets<C: Cell> {
    /// Of each partition.
    pub partitions: Vec<PartitionRows<C>>,
}

/// The rows of one partition.
pub struct PartitionRows<C: Cell> {
    rows: Vec<u32>,
    targets: Vec<C::Target>,
    segments: Vec<Range<usize>>,
    /// Whether the root holds every row.
    complete: bool,
    spare_rows: Vec<u32>,
    spare_targets: Vec<C::Target>,
}

/// A node that is split in two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeSplit {
    /// Which node.
    pub node: NodeId,
    /// The node of the rows that go left; the one behind it takes the others.
    pub left: NodeId,
    /// Where.
    pub split: FoundSplit,
}

/// The rows of a node in one partition.
pub struct NodeRows<'a, C: Cell> {
    /// Their places, ascending; `None` for the rows from `first` on.
    pub rows: Option<&'a [u32]>,
    /// The first row, when they follow each other.
    pub first: usize,
    /// Their targets.
    pub targets: &'a [C::Target],
}

impl<C: Cell> NodeRows<'_, C> {
    /// One of several equal parts.
    pub fn part(self, part: usize, parts: usize) -> Self {
        let count = self.targets.len();
        let range = count * part / parts..count * (part + 1) / parts;
        NodeRows {
            rows: self.rows.map(|rows| &rows[range.clone()]),
            first: self.first + range.start,
            targets: &self.targets[range],
        }
    }
}

impl<C: Cell> RowSets<C> {
    /// Sets for so many partitions.
    pub fn new(partitions: usize) -> Self {
        RowSets { partitions: (0..partitions).map(|_| PartitionRows::new()).collect() }
    }

    /// Moves the rows of split nodes to their children.
    pub fn split(&mut self, data: &BinnedData, splits: &[NodeSplit]) -> Result<()> {
        let layout = &data.binning.layout;
        let places: Vec<_> = splits
            .iter()
            .map(|split| layout.places[split.split.feature as usize].expect("a split's feature varies"))
            .collect();
        let mut columns: Vec<usize> = places.iter().map(|place| place.column).collect();
        columns.sort_unstable();
        columns.dedup();
        self.partitions.par_iter_mut().enumerate().try_for_each(|(partition, rows)| {
            let codes = data.codes(partition, &columns)?;
            for (split, place) in splits.iter().zip(&places) {
                let bins = &data.binning.features[split.split.feature as usize];
                rows.split(split, &codes.column(*place, bins));
            }
            Ok(())
        })
    }
}

impl<C: Cell> PartitionRows<C> {
    fn new() -> Self {
        PartitionRows {
            rows: Vec::new(),
            targets: Vec::new(),
            segments: Vec::new(),
            complete: false,
            spare_rows: Vec::new(),
            spare_targets: Vec::new(),
        }
    }

    /// Starts a tree: the root holds all rows, or those that were drawn.
    pub fn start(&mut self, targets: impl ExactSizeIterator<Item = C::Target>, drawn: Option<&[u32]>) {
        let rows = targets.len();
        self.targets.clear();
        self.rows.clear();
        match drawn {
            None => {
                self.rows.extend(0..rows as u32);
                self.targets.extend(targets);
            }
            Some(drawn) => {
                self.rows.extend_from_slice(drawn);
                let mut wanted = drawn.iter().copied().peekable();
                for (row, target) in targets.enumerate() {
                    if wanted.next_if_eq(&(row as u32)).is_some() {
                        self.targets.push(target);
                    }
                }
            }
        }
        self.complete = drawn.is_none();
        self.segments.clear();
        self.segments.push(0..self.rows.len());
    }

    /// The rows of a node.
    pub fn node(&self, node: NodeId) -> NodeRows<'_, C> {
        let segment = self.segments[node].clone();
        let all = self.complete && node == 0 && self.segments.len() == 1;
        NodeRows {
            rows: (!all).then(|| &self.rows[segment.clone()]),
            first: 0,
            targets: &self.targets[segment],
        }
    }

    /// The places of a node's rows.
    pub fn places(&self, node: NodeId) -> &[u32] {
        &self.rows[self.segments[node].clone()]
    }

    fn split(&mut self, split: &NodeSplit, column: &Column<'_>) {
        let segment = self.segments[split.node].clone();
        let count = segment.len();
        self.spare_rows.resize(count.max(self.spare_rows.len()), 0);
        self.spare_targets.resize(count.max(self.spare_targets.len()), C::Target::default());
        let mut lists = Lists::<C> {
            rows: &mut self.rows[segment.clone()],
            targets: &mut self.targets[segment.clone()],
            spare_rows: &mut self.spare_rows[..count],
            spare_targets: &mut self.spare_targets[..count],
        };
        let (most, missing) = (split.split.code, split.split.missing_goes_left());
        let missing = missing.unwrap_or(u32::MAX);
        let goes_left = |code: u32| (code <= most) | (code == missing);
        let left = match column.bytes() {
            Some(codes) => lists.divide(|row| goes_left(u32::from(codes[row as usize]))),
            None => lists.divide(|row| goes_left(column.code(row))),
        };
        let middle = segment.start + left;
        self.segments.resize(self.segments.len().max(split.left + 2), 0..0);
        self.segments[split.left] = segment.start..middle;
        self.segments[split.left + 1] = middle..segment.end;
    }
}

struct Lists<'a, C: Cell> {
    rows: &'a mut [u32],
    targets: &'a mut [C::Target],
    spare_rows: &'a mut [u32],
    spare_targets: &'a mut [C::Target],
}

impl<C: Cell> Lists<'_, C> {
    /// Moves the rows that go left to the front, keeping the order on both sides; how many they are.
    fn divide(&mut self, goes_left: impl Fn(u32) -> bool) -> usize {
        /// Rows that are asked before any of them moves, so that their cache misses overlap.
        const ASKED: usize = 128;
        let count = self.rows.len();
        let (mut left, mut right) = (0, 0);
        let mut answers = [false; ASKED];
        for start in (0..count).step_by(ASKED) {
            let end = (start + ASKED).min(count);
            for (answer, row) in answers.iter_mut().zip(&self.rows[start..end]) {
                *answer = goes_left(*row);
            }
            for (place, is_left) in (start..end).zip(answers) {
                let (row, target) = (self.rows[place], self.targets[place]);
                // Both are written and one is kept: there is no branch to guess wrongly.
                self.rows[left] = row;
                self.targets[left] = target;
                self.spare_rows[right] = row;
                self.spare_targets[right] = target;
                left += usize::from(is_left);
                right += usize::from(!is_left);
            }
        }
        self.rows[left..].copy_from_slice(&self.spare_rows[..right]);
        self.targets[left..].copy_from_slice(&self.spare_targets[..right]);
        left
    }
}
