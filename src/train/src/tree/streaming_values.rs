//! Finds the splits of a single worker whose histograms are fed all values; see `streaming.rs`.
//!
//! For every node and feature, rows are summed by code, and the sums enter the histogram in ascending order. If a node has
//! many rows compared to the codes of a feature, the sums of all codes are kept until its children are searched: only
//! the smaller children are summed from their rows, and their sums are subtracted from the parent's, in place, to get
//! those of the largest child. Sums are integers, so the result is that of summing the rows.

use super::add_rows::add_rows;
use super::cell::Cell;
use super::code_sums::CodeSums;
use super::finder::{GrowContext, OpenNode, Siblings};
use super::root_shapes::RootShapes;
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
        search: ValueSearch<'_>,
        rows: &RowSets<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let context = search.context;
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
        let keeps = self.has_room(search, rows, &groups, &open);
        let found: Vec<Vec<Found<C>>> = groups
            .par_iter()
            .zip(given)
            .with_max_len(1)
            .map(|(group, given)| {
                let feature = context.data.binning.layout.groups[*group].features[0];
                let search = FeatureSearch { search, rows, group: *group, feature };
                let allowed: Vec<bool> = allowed.iter().map(|allowed| allowed[feature as usize]).collect();
                let mut sums = self.buffer();
                let found = search.find(&mut sums, siblings, given, &allowed);
                self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(sums);
                let mut found = found?;
                for ((_, cells), keeps) in found.iter_mut().zip(&keeps) {
                    *cells = cells.take().filter(|_| *keeps);
                }
                Ok(found)
            })
            .collect::<Result<_>>()?;
        Ok(self.keep(context, &open, found))
    }

    /// Returns for each open node whether there is room to keep its cells. This is decided before the search, because the
    /// cells of all features would otherwise be in memory at the same time.
    fn has_room(
        &self,
        search: ValueSearch<'_>,
        rows: &RowSets<C>,
        groups: &[usize],
        open: &[OpenNode<C>],
    ) -> Vec<bool> {
        let context = search.context;
        let mut room = context.histogram_bytes.saturating_sub(self.kept_bytes);
        let bytes_of_node = |open: &OpenNode<C>| -> usize {
            let cells = groups.iter().map(|group| {
                let feature = context.data.binning.layout.groups[*group].features[0];
                let search = FeatureSearch { search, rows, group: *group, feature };
                if search.is_dense(open) { search.bins().codes() * size_of::<C>() } else { 0 }
            });
            cells.sum()
        };
        open.iter()
            .map(|open| {
                let bytes = bytes_of_node(open);
                let fits = open.wanted && !open.deepest && bytes <= room;
                room -= if fits { bytes } else { 0 };
                fits
            })
            .collect()
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

/// What all features are searched with.
#[derive(Clone, Copy)]
pub(super) struct ValueSearch<'a> {
    pub rules: &'a StreamingRules,
    pub context: &'a GrowContext<'a>,
    /// The bins of the root, if all trees have the same rows without weights.
    pub shapes: Option<&'a RootShapes>,
}

/// A search for splits on one feature.
struct FeatureSearch<'a, C: Cell> {
    search: ValueSearch<'a>,
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
        let data = self.search.context.data;
        let codes = (0..data.partitions()).map(|partition| data.codes(partition, &[self.group]));
        let codes: Vec<Codes> = codes.collect::<Result<_>>()?;
        let mut allowed = allowed.iter();
        let mut found = Vec::with_capacity(2 * siblings.len());
        for (pair, parent) in siblings.iter().zip(given) {
            let is_allowed: Vec<bool> = allowed.by_ref().take(pair.nodes().count()).copied().collect();
            match parent {
                Some(parent) if pair.nodes().any(|open| open.wanted) => {
                    found.extend(self.find_siblings(sums, &codes, pair, &is_allowed, parent));
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

    /// Searches siblings, given the cells of their parent.
    fn find_siblings(
        &self,
        sums: &mut CodeSums<C>,
        codes: &[Codes],
        siblings: &Siblings<C>,
        is_allowed: &[bool],
        mut parent: Vec<C>,
    ) -> Vec<Found<C>> {
        let largest = siblings.largest(self.search.context.rules.scale.count_bits);
        let mut found = Vec::with_capacity(siblings.nodes.len());
        for (place, open) in siblings.nodes().enumerate() {
            if place == largest {
                found.push((None, None));
                continue;
            }
            let (of_node, list) = self.find_summed(sums, codes, &open, is_allowed[place], true);
            match &of_node.1 {
                Some(cells) => parent.iter_mut().zip(cells).for_each(|(parent, cell)| parent.subtract(*cell)),
                None => list.iter().for_each(|(code, cell)| parent[*code as usize].subtract(*cell)),
            }
            let (split, cells) = of_node;
            found.push((split, cells.filter(|_| !open.deepest)));
        }
        let open = &siblings.nodes[largest];
        let split = match is_allowed[largest] && open.wanted {
            true => self.best_of_cells(open, &parent),
            false => None,
        };
        found[largest] = (split, (self.is_dense(open) && !open.deepest).then_some(parent));
        found
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
        let bits = self.search.context.rules.scale.count_bits;
        let group = &self.search.context.data.binning.layout.groups[self.group];
        let count = self.bins().codes();
        let nodes = codes.iter().zip(&self.rows.partitions);
        let nodes = nodes.map(|(codes, rows)| (codes.group(self.group), rows.node(open.node)));
        if self.is_dense(open) {
            let mut cells = vec![C::default(); count];
            nodes.for_each(|(codes, rows)| add_rows(codes, group, rows, bits, &mut cells));
            let split = match open.wanted && is_allowed {
                true => self.best_of_cells(open, &cells),
                false => None,
            };
            return ((split, Some(cells)), &[]);
        }
        nodes.for_each(|(codes, rows)| sums.add(count, codes, rows, bits));
        let list = sums.drain();
        let split = match open.wanted && is_allowed {
            true => self.search.rules.best_of_list(self.search.context, open, self.feature, list),
            false => None,
        };
        ((split, None), list)
    }

    fn bins(&self) -> &FeatureBins {
        &self.search.context.data.binning.features[self.feature as usize]
    }

    /// Returns whether a node has enough rows that summing all codes pays off.
    fn is_dense(&self, open: &OpenNode<C>) -> bool {
        let rows = open.total.sums(self.search.context.rules.scale.count_bits).count;
        self.bins().codes() as i64 <= 2 * rows
    }

    /// Returns the best split of a node, given the sums of all codes.
    fn best_of_cells(&self, open: &OpenNode<C>, cells: &[C]) -> Option<FoundSplit> {
        let ValueSearch { rules, context, shapes } = self.search;
        if !context.rules.may_cut(open.total, cells.get(self.bins().bins()).copied()) {
            return None;
        }
        let histogram = match shapes.filter(|_| open.node == ROOT) {
            Some(shapes) => {
                let scale = &context.rules.scale;
                shapes.histogram(self.feature, rules.centroids, self.bins(), scale, cells)
            }
            None => return rules.best_of_cells(context, open, self.feature, cells),
        };
        rules.best_of_histogram(context, open, self.feature, cells, &histogram)
    }
}

/// The first node of a tree.
const ROOT: NodeId = 0;

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
        if !context.rules.may_cut(open.total, cells.get(bins.bins()).copied()) {
            return None;
        }
        let histogram = WorkerHistogram::of_cells(self.centroids, bins, scale, cells);
        self.best_of_histogram(context, open, feature, cells, &histogram)
    }

    /// Returns the best split of a node on one feature, given its histogram and the sums of all codes.
    fn best_of_histogram<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        open: &OpenNode<C>,
        feature: u32,
        cells: &[C],
        histogram: &WorkerHistogram,
    ) -> Option<FoundSplit> {
        let scale = &context.rules.scale;
        let (mut summed, mut sum) = (0, C::default());
        let sums_up_to = |code: u32| {
            let end = code as usize + 1;
            cells[summed..end].iter().for_each(|cell| sum.add(*cell));
            summed = end;
            sum.sums(scale.count_bits)
        };
        self.best_cut(context, open, feature, histogram, sums_up_to)
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
        let missing = list.last().filter(|(code, _)| Some(*code) == bins.missing_code);
        if !context.rules.may_cut(open.total, missing.map(|(_, cell)| *cell)) {
            return None;
        }
        let histogram = WorkerHistogram::of_list(self.centroids, bins, scale, list);
        let (mut values, mut sum) = (list.iter().peekable(), C::default());
        let sums_up_to = |code: u32| {
            while let Some((_, cell)) = values.next_if(|(own, _)| *own <= code) {
                sum.add(*cell);
            }
            sum.sums(scale.count_bits)
        };
        self.best_cut(context, open, feature, &histogram, sums_up_to)
    }
}
