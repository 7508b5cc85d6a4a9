//! Finds the splits of a single worker whose histograms are fed all values; see `streaming.rs`.
//!
//! For every node and feature, rows are summed by code, and the sums enter the histogram in ascending order. If a node has
//! many rows compared to the codes of a feature, the sums of all codes are kept until its children are searched: only
//! the smaller child is summed from its rows, and its sums are subtracted from the parent's, in place, to get those of
//! the larger child. Sums are integers, so the result is that of summing the rows.

use super::cell::Cell;
use super::code_sums::CodeSums;
use super::finder::{GrowContext, OpenNode, Siblings};
use super::histogram::add_rows;
use super::rows::{NodeId, RowSets};
use super::split::FoundSplit;
use super::streaming::StreamingRules;
use super::streaming_worker::WorkerHistogram;
use crate::bins::{Codes, FeatureBins};
use planetree_base::error::Result;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Sums by code that are kept while a tree is grown.
pub(super) struct ValueSums<C: Cell> {
    /// For each node, the cells of each feature group, if they are kept.
    kept: HashMap<NodeId, Vec<Option<Vec<C>>>>,
    kept_bytes: usize,
    /// Buffers that are not in use.
    buffers: Mutex<Vec<CodeSums<C>>>,
}

impl<C: Cell> Default for ValueSums<C> {
    fn default() -> Self {
        ValueSums { kept: HashMap::new(), kept_bytes: 0, buffers: Mutex::default() }
    }
}

/// What is found for a node and one feature: the best split, and the cells of the node if they may be kept.
type Found<C> = (Option<FoundSplit>, Option<Vec<C>>);

impl<C: Cell> ValueSums<C> {
    /// Returns the best split of every node, in the order of `siblings`.
    pub(super) fn find(
        &mut self,
        rules: &StreamingRules,
        context: &GrowContext<'_>,
        rows: &RowSets<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let groups = context.choice.groups(&context.data.binning.layout);
        let mut given: Vec<Vec<Option<Vec<C>>>> = groups.iter().map(|_| Vec::new()).collect();
        for pair in siblings {
            let parent = pair.parent.and_then(|parent| self.kept.remove(&parent)).unwrap_or_default();
            self.kept_bytes -= bytes_of(&parent);
            let parent = parent.into_iter().chain(std::iter::repeat_with(|| None));
            given.iter_mut().zip(parent).for_each(|(given, cells)| given.push(cells));
        }
        let open: Vec<OpenNode<C>> = siblings.iter().flat_map(Siblings::nodes).collect();
        let allowed: Vec<Vec<bool>> = open.iter().map(|open| context.choice.of_node(open.node)).collect();
        let found: Vec<Vec<Found<C>>> = groups
            .par_iter()
            .zip(given)
            .with_max_len(1)
            .map(|(group, given)| {
                let feature = context.data.binning.layout.groups[*group].features[0];
                let search = FeatureSearch { rules, context, rows, group: *group, feature };
                let allowed: Vec<bool> = allowed.iter().map(|allowed| allowed[feature as usize]).collect();
                let mut sums = self.buffer();
                let found = search.find(&mut sums, siblings, given, &allowed);
                self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(sums);
                found
            })
            .collect::<Result<_>>()?;
        Ok(self.keep(context, &open, found))
    }

    fn buffer(&self) -> CodeSums<C> {
        let unused = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        unused.unwrap_or_else(CodeSums::new)
    }

    /// Returns the best split of every node over all features, and keeps the cells of nodes that may be split.
    fn keep(
        &mut self,
        context: &GrowContext<'_>,
        open: &[OpenNode<C>],
        found: Vec<Vec<Found<C>>>,
    ) -> Vec<Option<FoundSplit>> {
        let mut best = vec![None; open.len()];
        let mut cells: Vec<Vec<Option<Vec<C>>>> = open.iter().map(|_| Vec::new()).collect();
        for of_group in found {
            for (place, (split, of_node)) in of_group.into_iter().enumerate() {
                best[place] = context.better(best[place], split);
                cells[place].push(of_node);
            }
        }
        for ((open, cells), best) in open.iter().zip(cells).zip(&best) {
            let bytes = bytes_of(&cells);
            if best.is_some() && bytes > 0 && self.kept_bytes + bytes <= context.histogram_bytes {
                self.kept_bytes += bytes;
                self.kept.insert(open.node, cells);
            }
        }
        best
    }
}

fn bytes_of<C>(cells: &[Option<Vec<C>>]) -> usize {
    cells.iter().flatten().map(|cells| std::mem::size_of_val(cells.as_slice())).sum()
}

/// A search for splits on one feature.
struct FeatureSearch<'a, C: Cell> {
    rules: &'a StreamingRules,
    context: &'a GrowContext<'a>,
    rows: &'a RowSets<C>,
    group: usize,
    feature: u32,
}

impl<C: Cell> FeatureSearch<'_, C> {
    /// Searches all nodes. `given` has the kept cells of the parent of each pair of siblings.
    fn find(
        &self,
        sums: &mut CodeSums<C>,
        siblings: &[Siblings<C>],
        given: Vec<Option<Vec<C>>>,
        allowed: &[bool],
    ) -> Result<Vec<Found<C>>> {
        let data = self.context.data;
        let codes = (0..data.partitions()).map(|partition| data.codes(partition, &[self.group]));
        let codes: Vec<Codes> = codes.collect::<Result<_>>()?;
        let mut allowed = allowed.iter();
        let mut found = Vec::with_capacity(2 * siblings.len());
        for (pair, parent) in siblings.iter().zip(given) {
            let is_allowed: Vec<bool> = allowed.by_ref().take(pair.nodes().count()).copied().collect();
            let count = |open: &OpenNode<C>| open.total.sums(self.context.rules.scale.count_bits).count;
            match (pair.second, parent) {
                (Some(second), Some(parent)) if pair.first.wanted || second.wanted => {
                    let swaps = count(&second) < count(&pair.first);
                    let (small, large) = if swaps { (second, pair.first) } else { (pair.first, second) };
                    let [small_allowed, large_allowed] =
                        [is_allowed[usize::from(swaps)], is_allowed[usize::from(!swaps)]];
                    let (of_small, of_large) = self.find_pair(
                        sums,
                        &codes,
                        (&small, small_allowed),
                        (&large, large_allowed),
                        parent,
                    );
                    found.extend(if swaps { [of_large, of_small] } else { [of_small, of_large] });
                }
                _ => {
                    for (open, is_allowed) in pair.nodes().zip(is_allowed) {
                        found.push(self.find_summed(sums, &codes, &open, is_allowed, false).0);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Searches two siblings, the first of which has fewer rows, given the cells of their parent.
    fn find_pair(
        &self,
        sums: &mut CodeSums<C>,
        codes: &[Codes],
        small: (&OpenNode<C>, bool),
        large: (&OpenNode<C>, bool),
        mut parent: Vec<C>,
    ) -> (Found<C>, Found<C>) {
        let (of_small, list) = self.find_summed(sums, codes, small.0, small.1, true);
        match &of_small.1 {
            Some(cells) => parent.iter_mut().zip(cells).for_each(|(parent, cell)| parent.subtract(*cell)),
            None => list.iter().for_each(|(code, cell)| parent[*code as usize].subtract(*cell)),
        }
        let of_large = match large {
            (open, true) if open.wanted => {
                self.rules.best_of_cells(self.context, open, self.feature, &parent)
            }
            _ => None,
        };
        let keeps = self.is_dense(large.0);
        (of_small, (of_large, keeps.then_some(parent)))
    }

    /// Searches a node whose rows are summed. Returns the split and the sums: all cells, or a list of the codes that occur.
    /// A node that cannot be split is summed only if its sums are needed.
    fn find_summed<'s>(
        &self,
        sums: &'s mut CodeSums<C>,
        codes: &[Codes],
        open: &OpenNode<C>,
        is_allowed: bool,
        is_needed: bool,
    ) -> (Found<C>, &'s [(u32, C)]) {
        if !(open.wanted || is_needed) {
            return ((None, None), &[]);
        }
        let bits = self.context.rules.scale.count_bits;
        let group = &self.context.data.binning.layout.groups[self.group];
        let count = self.bins().codes();
        let nodes = codes.iter().zip(&self.rows.partitions);
        let nodes = nodes.map(|(codes, rows)| (codes.group(self.group), rows.node(open.node)));
        if self.is_dense(open) {
            let mut cells = vec![C::default(); count];
            nodes.for_each(|(codes, rows)| add_rows(codes, group, rows, bits, &mut cells));
            let split = match open.wanted && is_allowed {
                true => self.rules.best_of_cells(self.context, open, self.feature, &cells),
                false => None,
            };
            return ((split, Some(cells)), &[]);
        }
        nodes.for_each(|(codes, rows)| sums.add(count, codes, rows, bits));
        let list = sums.drain();
        let split = match open.wanted && is_allowed {
            true => self.rules.best_of_list(self.context, open, self.feature, list),
            false => None,
        };
        ((split, None), list)
    }

    fn bins(&self) -> &FeatureBins {
        &self.context.data.binning.features[self.feature as usize]
    }

    /// Returns whether a node has enough rows that summing all codes pays off.
    fn is_dense(&self, open: &OpenNode<C>) -> bool {
        let rows = open.total.sums(self.context.rules.scale.count_bits).count;
        self.bins().codes() as i64 <= 2 * rows
    }
}

impl StreamingRules {
    /// Returns the best split of a node on one feature, given the sums of all codes.
    pub fn best_of_cells<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        open: &OpenNode<C>,
        feature: u32,
        cells: &[C],
    ) -> Option<FoundSplit> {
        let scale = &context.rules.scale;
        let bins = &context.data.binning.features[feature as usize];
        let histogram = WorkerHistogram::of_cells(self.centroids, bins, scale, cells);
        let (mut summed, mut sum) = (0, C::default());
        let rows_up_to = |code: u32| {
            let end = code as usize + 1;
            cells[summed..end].iter().for_each(|cell| sum.add(*cell));
            summed = end;
            sum.sums(scale.count_bits).count
        };
        self.best_cut(context, open, feature, &histogram, rows_up_to)
    }

    /// Returns the best split of a node on one feature, given the sums of the codes that occur.
    pub fn best_of_list<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        open: &OpenNode<C>,
        feature: u32,
        list: &[(u32, C)],
    ) -> Option<FoundSplit> {
        let scale = &context.rules.scale;
        let bins = &context.data.binning.features[feature as usize];
        let histogram = WorkerHistogram::of_list(self.centroids, bins, scale, list);
        let (mut values, mut sum) = (list.iter().peekable(), C::default());
        let rows_up_to = |code: u32| {
            while let Some((_, cell)) = values.next_if(|(own, _)| *own <= code) {
                sum.add(*cell);
            }
            sum.sums(scale.count_bits).count
        };
        self.best_cut(context, open, feature, &histogram, rows_up_to)
    }
}
