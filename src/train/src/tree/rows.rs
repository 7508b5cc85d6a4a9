//! Assigns rows to nodes. In each partition, the rows of a node are stored contiguously and in dataset order. Each
//! row is stored with its *target*, the quantised gradient (and weight) that the row contributes to sums.

use super::cell::Cell;
use super::split::FoundSplit;
use crate::bins::{BinnedData, Codes, FeatureCodes};
use planetree_base::error::Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;

/// Number of rows of a partition that one thread processes at a time.
pub const AT_A_TIME: usize = 4096;

/// Index of a node in the tree.
pub type NodeId = usize;

/// The rows of all nodes in a tree.
pub struct RowSets<C: Cell> {
    /// The rows of each partition.
    pub partitions: Vec<PartitionRows<C>>,
    /// Known sums over the rows of nodes in the current tree.
    pub totals: HashMap<NodeId, C>,
}

/// The rows of all nodes in one partition.
pub struct PartitionRows<C: Cell> {
    entries: Vec<RowEntry<C::Target>>,
    segments: Vec<Range<usize>>,
    /// Whether the root contains every row of the partition.
    complete: bool,
    spare: Vec<RowEntry<C::Target>>,
}

/// A row in a node.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowEntry<T> {
    /// Index of the row in the partition.
    pub row: u32,
    /// Contribution of the row to sums.
    pub target: T,
}

/// A split that is applied to a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeSplit {
    /// Index of the node.
    pub node: NodeId,
    /// Index of the left child. The other children have the next indices.
    pub left: NodeId,
    /// How the node is split.
    pub split: FoundSplit,
}

impl NodeSplit {
    /// Returns the indices of the children: left, right and, if there is one, middle.
    pub fn children(&self) -> Range<NodeId> {
        self.left..self.left + self.split.missing.children()
    }
}

/// The rows of a node in one partition.
pub struct NodeRows<'a, C: Cell> {
    /// Rows in ascending order.
    pub entries: &'a [RowEntry<C::Target>],
    /// Whether the rows are known to be consecutive.
    pub follow: bool,
}

impl<C: Cell> NodeRows<'_, C> {
    /// Returns one of `parts` parts of about equal size.
    pub fn part(self, part: usize, parts: usize) -> Self {
        let count = self.entries.len();
        NodeRows { entries: &self.entries[count * part / parts..count * (part + 1) / parts], ..self }
    }
}

impl<C: Cell> RowSets<C> {
    /// Creates empty row sets for this many partitions.
    pub fn new(partitions: usize) -> Self {
        RowSets {
            partitions: (0..partitions).map(|_| PartitionRows::new()).collect(),
            totals: HashMap::new(),
        }
    }

    /// Returns the number of rows of a node in all partitions.
    pub fn count(&self, node: NodeId) -> usize {
        self.partitions.iter().map(|rows| rows.segments[node].len()).sum()
    }

    /// Moves the rows of split nodes to their children. A split may apply to a child of an earlier split.
    pub fn split(&mut self, data: &BinnedData, mut splits: &[NodeSplit]) -> Result<()> {
        while let [first, others @ ..] = splits {
            let is_child = |split: &NodeSplit| split.node >= first.left;
            let independent = 1 + others.iter().position(is_child).unwrap_or(others.len());
            self.split_independent(data, &splits[..independent])?;
            splits = &splits[independent..];
        }
        Ok(())
    }

    /// Like [`RowSets::split`], but no split may apply to a child that another of these splits creates.
    fn split_independent(&mut self, data: &BinnedData, splits: &[NodeSplit]) -> Result<()> {
        let layout = &data.binning.layout;
        let places: Vec<_> = splits
            .iter()
            .map(|split| {
                layout.places[split.split.feature as usize].expect("the feature of a split is not constant")
            })
            .collect();
        let mut columns: Vec<usize> = places.iter().map(|place| place.column).collect();
        columns.sort_unstable();
        columns.dedup();
        // Codes that must be loaded are kept in memory for only a few partitions at a time.
        let at_a_time = if data.is_in_memory() { usize::MAX } else { rayon::current_num_threads() };
        let mut numbers = 0..self.partitions.len();
        for partitions in self.partitions.chunks_mut(at_a_time) {
            let codes: Vec<Codes> = numbers
                .by_ref()
                .take(partitions.len())
                .map(|partition| data.codes(partition, &columns))
                .collect::<Result<_>>()?;
            let parts: Vec<(NodeSegment<'_, C::Target>, &Codes)> = partitions
                .iter_mut()
                .zip(&codes)
                .flat_map(|(rows, codes)| rows.parts(splits).into_iter().map(move |part| (part, codes)))
                .collect();
            let few = parts.len() < 4 * rayon::current_num_threads();
            let counts: Vec<(usize, SideCounts)> = parts
                .into_par_iter()
                .with_max_len(1)
                .map(|(part, codes)| {
                    let (split, place) = (&splits[part.split].split, places[part.split]);
                    let bins = &data.binning.features[split.feature as usize];
                    let parallel = few && part.entries.len() >= 4 * AT_A_TIME;
                    (part.split, part.divide(split, &codes.column(place, bins), parallel))
                })
                .collect();
            for (rows, counts) in partitions.iter_mut().zip(counts.chunks(splits.len())) {
                counts.iter().for_each(|(split, counts)| rows.assign_children(&splits[*split], counts));
            }
        }
        Ok(())
    }
}

/// Rows of a node that is being split, in one partition.
struct NodeSegment<'a, T> {
    /// Index of the split.
    split: usize,
    entries: &'a mut [RowEntry<T>],
    spare: &'a mut [RowEntry<T>],
}

/// The number of a split node's rows that go left and right in one partition. The others have missing values and go to
/// a third child.
struct SideCounts {
    left: usize,
    right: usize,
}

impl<T: Copy + Default + Send + Sync> NodeSegment<'_, T> {
    /// Moves the rows that go left to the front, followed by those that go right.
    fn divide(mut self, split: &FoundSplit, column: &FeatureCodes<'_>, parallel: bool) -> SideCounts {
        let (most, missing) = (split.code, split.missing_goes_left().unwrap_or(u32::MAX));
        let left = self.divide_by_code(column, |code| (code <= most) | (code == missing), parallel);
        let mut others = NodeSegment {
            split: self.split,
            entries: &mut self.entries[left..],
            spare: &mut self.spare[left..],
        };
        let right = match split.missing_goes_elsewhere() {
            Some(missing) => others.divide_by_code(column, |code| code != missing, parallel),
            None => others.entries.len(),
        };
        SideCounts { left, right }
    }

    /// Moves the rows that come first to the front. Returns their number.
    fn divide_by_code(
        &mut self,
        column: &FeatureCodes<'_>,
        is_first: impl Fn(u32) -> bool + Sync,
        parallel: bool,
    ) -> usize {
        match column.bytes() {
            Some(codes) => self.divide_by(|row| is_first(u32::from(codes[row as usize])), parallel),
            None => self.divide_by(|row| is_first(column.code(row)), parallel),
        }
    }

    fn divide_by(&mut self, is_first: impl Fn(u32) -> bool + Sync, parallel: bool) -> usize {
        match parallel {
            true => divide_parallel(self.entries, self.spare, is_first),
            false => divide(self.entries, self.spare, is_first),
        }
    }
}

impl<C: Cell> PartitionRows<C> {
    fn new() -> Self {
        PartitionRows { entries: Vec::new(), segments: Vec::new(), complete: false, spare: Vec::new() }
    }

    /// Starts a tree. The root contains all rows, or only the rows in `drawn`.
    pub fn start(&mut self, targets: impl IndexedParallelIterator<Item = C::Target>, drawn: Option<&[u32]>) {
        let all = targets.enumerate().map(|(row, target)| RowEntry { row: row as u32, target });
        let all = all.with_min_len(AT_A_TIME);
        match drawn {
            None => all.collect_into_vec(&mut self.entries),
            Some(drawn) => {
                all.collect_into_vec(&mut self.spare);
                self.entries.clear();
                self.entries.extend(drawn.iter().map(|row| self.spare[*row as usize]));
            }
        }
        self.complete = drawn.is_none();
        self.segments.clear();
        self.segments.push(0..self.entries.len());
    }

    /// Returns the rows of a node.
    pub fn node(&self, node: NodeId) -> NodeRows<'_, C> {
        NodeRows {
            entries: &self.entries[self.segments[node].clone()],
            follow: self.complete && node == 0 && self.segments.len() == 1,
        }
    }

    /// Returns those rows of a node that are within a range.
    pub fn node_within(&self, node: NodeId, within: Range<u32>) -> NodeRows<'_, C> {
        let NodeRows { entries, follow } = self.node(node);
        let before = |bound: u32| entries.partition_point(|entry| entry.row < bound);
        NodeRows { entries: &entries[before(within.start)..before(within.end)], follow }
    }

    /// Sets the target of every row of a node.
    pub fn set_targets(&mut self, node: NodeId, target: C::Target) {
        self.entries[self.segments[node].clone()].iter_mut().for_each(|entry| entry.target = target);
    }

    /// Returns those rows of a node that are within a range.
    pub fn places(&self, node: NodeId, within: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        let entries = &self.entries[self.segments[node].clone()];
        let before = |bound: usize| entries.partition_point(|entry| (entry.row as usize) < bound);
        entries[before(within.start)..before(within.end)].iter().map(|entry| entry.row)
    }

    /// Returns the rows of each split node, in storage order.
    fn parts(&mut self, splits: &[NodeSplit]) -> Vec<NodeSegment<'_, C::Target>> {
        self.spare.resize(self.entries.len(), RowEntry::default());
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
            parts.push(NodeSegment { split, entries: mine, spare: my_spare });
        }
        parts
    }

    /// Assigns the rows of a split node to its children, which have consecutive rows: left, right, middle.
    fn assign_children(&mut self, split: &NodeSplit, counts: &SideCounts) {
        let segment = self.segments[split.node].clone();
        self.segments.resize(self.segments.len().max(split.children().end), 0..0);
        let mut start = segment.start;
        for (child, count) in split.children().zip([counts.left, counts.right, usize::MAX]) {
            let end = start.saturating_add(count).min(segment.end);
            self.segments[child] = start..end;
            start = end;
        }
    }
}

/// Moves the rows that go left to the front, keeping the order on both sides. Returns their number.
fn divide<T: Copy>(
    entries: &mut [RowEntry<T>],
    spare: &mut [RowEntry<T>],
    goes_left: impl Fn(u32) -> bool,
) -> usize {
    /// Number of rows that are evaluated before any of them is moved, so that their cache misses overlap.
    const BATCH: usize = 128;
    let count = entries.len();
    let (mut left, mut right) = (0, 0);
    let mut sides = [false; BATCH];
    for start in (0..count).step_by(BATCH) {
        let end = (start + BATCH).min(count);
        for (side, entry) in sides.iter_mut().zip(&entries[start..end]) {
            *side = goes_left(entry.row);
        }
        for (place, is_left) in (start..end).zip(sides) {
            let entry = entries[place];
            // Avoid branches: write the row to both sides, but advance only one.
            entries[left] = entry;
            spare[right] = entry;
            left += usize::from(is_left);
            right += usize::from(!is_left);
        }
    }
    entries[left..].copy_from_slice(&spare[..right]);
    left
}

/// Like [`divide`], but with several threads. They first count the rows of each chunk that go left, which determines
/// where every row is moved.
fn divide_parallel<T: Copy + Default + Send + Sync>(
    entries: &mut [RowEntry<T>],
    spare: &mut [RowEntry<T>],
    goes_left: impl Fn(u32) -> bool + Sync,
) -> usize {
    let evaluate =
        |entries: &[RowEntry<T>]| -> Vec<bool> { entries.iter().map(|entry| goes_left(entry.row)).collect() };
    let evaluated: Vec<(Vec<bool>, usize)> = entries
        .par_chunks(AT_A_TIME)
        .map(|entries| {
            let sides = evaluate(entries);
            let left = sides.iter().filter(|side| **side).count();
            (sides, left)
        })
        .collect();
    let all_left = evaluated.iter().map(|(_, left)| left).sum();
    let (mut lefts, mut rights) = spare.split_at_mut(all_left);
    let mut moves = Vec::with_capacity(evaluated.len());
    for (entries, (sides, left)) in entries.chunks(AT_A_TIME).zip(&evaluated) {
        let (my_left, other_left) = lefts.split_at_mut(*left);
        let (my_right, other_right) = rights.split_at_mut(entries.len() - left);
        (lefts, rights) = (other_left, other_right);
        moves.push((entries, sides, my_left, my_right));
    }
    moves.into_par_iter().with_max_len(1).for_each(|(entries, sides, left, right)| {
        // Once a side is full, further writes to it are discarded.
        let mut discarded = RowEntry::default();
        let (mut to_left, mut to_right) = (0, 0);
        for (entry, is_left) in entries.iter().zip(sides) {
            *left.get_mut(to_left).unwrap_or(&mut discarded) = *entry;
            *right.get_mut(to_right).unwrap_or(&mut discarded) = *entry;
            to_left += usize::from(*is_left);
            to_right += usize::from(!*is_left);
        }
    });
    entries.par_chunks_mut(AT_A_TIME).zip(spare.par_chunks(AT_A_TIME)).for_each(|(entries, spare)| {
        entries.copy_from_slice(spare);
    });
    all_left
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sequential_and_parallel_partition_agree(
            count in 0usize..3 * AT_A_TIME, divisor in 1u32..7, less in 0u32..7,
        ) {
            let entries: Vec<RowEntry<i32>> =
                (0..count as u32).map(|row| RowEntry { row: row * 3, target: row as i32 }).collect();
            let goes_left = |row: u32| row % divisor < less;
            let mut spare = vec![RowEntry::default(); count];
            let (mut one, mut several) = (entries.clone(), entries.clone());
            let left = divide(&mut one, &mut spare, goes_left);
            prop_assert_eq!(divide_parallel(&mut several, &mut spare, goes_left), left);
            let (expected, right): (Vec<RowEntry<i32>>, Vec<_>) =
                entries.into_iter().partition(|entry| goes_left(entry.row));
            prop_assert_eq!(left, expected.len());
            let expected: Vec<(u32, i32)> =
                expected.into_iter().chain(right).map(|entry| (entry.row, entry.target)).collect();
            let pairs = |entries: Vec<RowEntry<i32>>| -> Vec<(u32, i32)> {
                entries.into_iter().map(|entry| (entry.row, entry.target)).collect()
            };
            prop_assert_eq!(&pairs(one), &expected);
            prop_assert_eq!(&pairs(several), &expected);
        }
    }
}
