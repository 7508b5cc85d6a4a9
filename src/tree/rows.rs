//! Which rows are in which node: each partition keeps the rows of a node side by side, in the order
//! they have in the dataset, each with its target.

use super::cell::Cell;
use super::split::FoundSplit;
use crate::bins::{BinnedData, Codes, Column};
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
    entries: Vec<Entry<C::Target>>,
    segments: Vec<Range<usize>>,
    /// Whether the root holds every row.
    complete: bool,
    spare: Vec<Entry<C::Target>>,
}

/// A row of a node.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entry<T> {
    /// Its place in the partition.
    pub row: u32,
    /// What it adds.
    pub target: T,
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
    /// Their places ascend.
    pub entries: &'a [Entry<C::Target>],
    /// Whether they are known to follow each other without a gap.
    pub follow: bool,
}

impl<C: Cell> NodeRows<'_, C> {
    /// One of several equal parts.
    pub fn part(self, part: usize, parts: usize) -> Self {
        let count = self.entries.len();
        NodeRows { entries: &self.entries[count * part / parts..count * (part + 1) / parts], ..self }
    }
}

impl<C: Cell> RowSets<C> {
    /// Sets for so many partitions.
    pub fn new(partitions: usize) -> Self {
        RowSets { partitions: (0..partitions).map(|_| PartitionRows::new()).collect() }
    }

    /// How many rows a node has.
    pub fn count(&self, node: NodeId) -> usize {
        self.partitions.iter().map(|rows| rows.segments[node].len()).sum()
    }

    /// Moves the rows of split nodes to their children. A split may be of a child of an earlier one.
    pub fn split(&mut self, data: &BinnedData, mut splits: &[NodeSplit]) -> Result<()> {
        while let [first, others @ ..] = splits {
            let is_child = |split: &NodeSplit| split.node >= first.left;
            let together = 1 + others.iter().position(is_child).unwrap_or(others.len());
            self.split_together(data, &splits[..together])?;
            splits = &splits[together..];
        }
        Ok(())
    }

    /// The same for nodes that all have their rows.
    fn split_together(&mut self, data: &BinnedData, splits: &[NodeSplit]) -> Result<()> {
        let layout = &data.binning.layout;
        let places: Vec<_> = splits
            .iter()
            .map(|split| layout.places[split.split.feature as usize].expect("a split's feature varies"))
            .collect();
        let mut columns: Vec<usize> = places.iter().map(|place| place.column).collect();
        columns.sort_unstable();
        columns.dedup();
        // Codes that must be fetched are held for some partitions at a time.
        let at_a_time = if data.is_in_memory() { usize::MAX } else { rayon::current_num_threads() };
        let mut numbers = 0..self.partitions.len();
        for partitions in self.partitions.chunks_mut(at_a_time) {
            let codes: Vec<Codes> = numbers
                .by_ref()
                .take(partitions.len())
                .map(|partition| data.codes(partition, &columns))
                .collect::<Result<_>>()?;
            let parts: Vec<(Part<'_, C::Target>, &Codes)> = partitions
                .iter_mut()
                .zip(&codes)
                .flat_map(|(rows, codes)| rows.parts(splits).into_iter().map(move |part| (part, codes)))
                .collect();
            let left: Vec<(usize, usize)> = parts
                .into_par_iter()
                .with_max_len(1)
                .map(|(part, codes)| {
                    let (split, place) = (&splits[part.split].split, places[part.split]);
                    let bins = &data.binning.features[split.feature as usize];
                    (part.split, part.divide(split, &codes.column(place, bins)))
                })
                .collect();
            for (rows, left) in partitions.iter_mut().zip(left.chunks(splits.len())) {
                left.iter().for_each(|(split, left)| rows.take_over(&splits[*split], *left));
            }
        }
        Ok(())
    }
}

/// The rows of a node that is split.
struct Part<'a, T> {
    /// Which split.
    split: usize,
    entries: &'a mut [Entry<T>],
    spare: &'a mut [Entry<T>],
}

impl<T: Copy> Part<'_, T> {
    /// Moves rows that go left to the front; how many they are.
    fn divide(self, split: &FoundSplit, column: &Column<'_>) -> usize {
        let (most, missing) = (split.code, split.missing_goes_left().unwrap_or(u32::MAX));
        let goes_left = |code: u32| (code <= most) | (code == missing);
        match column.bytes() {
            Some(codes) => divide(self.entries, self.spare, |row| goes_left(u32::from(codes[row as usize]))),
            None => divide(self.entries, self.spare, |row| goes_left(column.code(row))),
        }
    }
}

impl<C: Cell> PartitionRows<C> {
    fn new() -> Self {
        PartitionRows { entries: Vec::new(), segments: Vec::new(), complete: false, spare: Vec::new() }
    }

    /// Starts a tree: the root holds all rows, or those that were drawn.
    pub fn start(&mut self, targets: impl ExactSizeIterator<Item = C::Target>, drawn: Option<&[u32]>) {
        self.entries.clear();
        let all = (0..targets.len() as u32).zip(targets).map(|(row, target)| Entry { row, target });
        match drawn {
            None => self.entries.extend(all),
            Some(drawn) => {
                let mut wanted = drawn.iter().copied().peekable();
                self.entries.extend(all.filter(|entry| wanted.next_if_eq(&entry.row).is_some()));
            }
        }
        self.complete = drawn.is_none();
        self.segments.clear();
        self.segments.push(0..self.entries.len());
    }

    /// The rows of a node.
    pub fn node(&self, node: NodeId) -> NodeRows<'_, C> {
        NodeRows {
            entries: &self.entries[self.segments[node].clone()],
            follow: self.complete && node == 0 && self.segments.len() == 1,
        }
    }

    /// Gives every row of a node another target.
    pub fn aim(&mut self, node: NodeId, target: C::Target) {
        self.entries[self.segments[node].clone()].iter_mut().for_each(|entry| entry.target = target);
    }

    /// The places of a node's rows.
    pub fn places(&self, node: NodeId) -> impl Iterator<Item = u32> + '_ {
        self.entries[self.segments[node].clone()].iter().map(|entry| entry.row)
    }

    /// The rows of each split, in the order in which they lie.
    fn parts(&mut self, splits: &[NodeSplit]) -> Vec<Part<'_, C::Target>> {
        self.spare.resize(self.entries.len(), Entry::default());
        let (mut entries, mut spare) = (&mut self.entries[..], &mut self.spare[..]);
        let segment = |split: &usize| &self.segments[splits[*split].node];
        let mut order: Vec<usize> = (0..splits.len()).collect();
        order.sort_by_key(|split| (segment(split).start, segment(split).end));
        let mut passed = 0;
        let mut parts = Vec::with_capacity(splits.len());
        for split in order {
            let segment = segment(&split);
            let skipped = segment.start - passed;
            passed = segment.end;
            let (mine, others) = entries[skipped..].split_at_mut(segment.len());
            let (my_spare, other_spare) = spare[skipped..].split_at_mut(segment.len());
            (entries, spare) = (others, other_spare);
            parts.push(Part { split, entries: mine, spare: my_spare });
        }
        parts
    }

    /// Gives a split node's rows to its children, of which so many are the left one's.
    fn take_over(&mut self, split: &NodeSplit, left: usize) {
        let segment = self.segments[split.node].clone();
        let middle = segment.start + left;
        self.segments.resize(self.segments.len().max(split.left + 2), 0..0);
        self.segments[split.left] = segment.start..middle;
        self.segments[split.left + 1] = middle..segment.end;
    }
}

/// Moves the rows that go left to the front, keeping the order on both sides; how many they are.
fn divide<T: Copy>(
    entries: &mut [Entry<T>],
    spare: &mut [Entry<T>],
    goes_left: impl Fn(u32) -> bool,
) -> usize {
    /// Rows that are asked before any of them moves, so that their cache misses overlap.
    const ASKED: usize = 128;
    let count = entries.len();
    let (mut left, mut right) = (0, 0);
    let mut answers = [false; ASKED];
    for start in (0..count).step_by(ASKED) {
        let end = (start + ASKED).min(count);
        for (answer, entry) in answers.iter_mut().zip(&entries[start..end]) {
            *answer = goes_left(entry.row);
        }
        for (place, is_left) in (start..end).zip(answers) {
            let entry = entries[place];
            // Both are written and one is kept: there is no branch to guess wrongly.
            entries[left] = entry;
            spare[right] = entry;
            left += usize::from(is_left);
            right += usize::from(!is_left);
        }
    }
    entries[left..].copy_from_slice(&spare[..right]);
    left
}
