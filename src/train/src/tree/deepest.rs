//! Finds the splits of the deepest nodes that can be split, whose children are leaves. Nothing is derived from the
//! histograms of these nodes, so they are built, searched and dropped one feature group at a time, while they are in
//! the cache. These are most nodes of a tree that is grown level by level.

use super::add_rows::add_rows;
use super::cell::Cell;
use super::finder::{GrowContext, OpenNode, Siblings};
use super::histogram::{finish, lane_cells_of_group};
use super::kept::{HistogramPlan, KeptHistograms};
use super::row_store::RowStore;
use super::rows::{NodeId, RowSets};
use super::split::FoundSplit;
use crate::bins::Codes;
use planetree_base::error::Result;
use rayon::prelude::*;
use std::collections::HashMap;

/// Siblings and one feature group.
struct GroupTask<C> {
    group: usize,
    /// The nodes whose rows are summed.
    built: Vec<OpenNode<C>>,
    /// The sibling that is the rest of the parent, and the parent's cells.
    rest: Option<(OpenNode<C>, Vec<C>)>,
}

/// Finds the best split of every node, in the order of `siblings`. Returns `None` if the histograms are needed later, or
/// if the search would not be faster.
pub(super) fn find_deepest<C: Cell>(
    context: &GrowContext<'_>,
    groups: &[usize],
    kept: &mut KeptHistograms<C>,
    rows: &dyn RowStore<C>,
    siblings: &[Siblings<C>],
    best_of_group: &(impl Fn(&OpenNode<C>, &[C], usize, &[bool]) -> Option<FoundSplit> + Sync),
) -> Result<Option<Vec<Option<FoundSplit>>>> {
    let are_deepest = siblings.iter().flat_map(Siblings::nodes).all(|open| open.deepest);
    if kept.carries() || !are_deepest || !context.data.is_in_memory() {
        return Ok(None);
    }
    let bits = context.rules.scale.count_bits;
    if !is_even(siblings, groups.len(), bits) {
        return Ok(None);
    }
    let Ok(rows) = rows.local() else { return Ok(None) };
    let mut tasks = Vec::with_capacity(siblings.len() * groups.len());
    for siblings in siblings {
        let plan = kept.plan(siblings, bits);
        tasks.extend(tasks_of(plan, groups));
    }
    let open: Vec<OpenNode<C>> = siblings.iter().flat_map(Siblings::nodes).collect();
    let allowed = open.iter().map(|open| (open.node, context.choice.of_node(open.node)));
    let search = Search { context, rows, allowed: allowed.collect(), best_of_group };
    let found: Vec<Vec<(NodeId, Option<FoundSplit>)>> =
        tasks.into_par_iter().with_max_len(1).map(|task| search.find(task)).collect::<Result<_>>()?;
    let mut best: HashMap<NodeId, Option<FoundSplit>> = HashMap::new();
    for (node, split) in found.into_iter().flatten() {
        let best = best.entry(node).or_default();
        *best = context.better(*best, split);
    }
    Ok(Some(open.iter().map(|open| best.get(&open.node).copied().flatten()).collect()))
}

/// Returns whether one task per siblings and group keeps all threads busy, although the rows of a node are not divided.
fn is_even<C: Cell>(siblings: &[Siblings<C>], groups: usize, count_bits: u32) -> bool {
    let rows = |siblings: &Siblings<C>| siblings.nodes().map(|open| open.total.sums(count_bits).count).sum();
    let rows: Vec<i64> = siblings.iter().map(rows).collect();
    let (all, largest) = (rows.iter().sum::<i64>(), rows.iter().copied().max().unwrap_or(0));
    let threads = rayon::current_num_threads();
    threads == 1 || 2 * threads as i64 * largest <= all * groups as i64
}

/// Divides the search of siblings into one task per feature group.
fn tasks_of<C: Cell>(plan: HistogramPlan<C>, groups: &[usize]) -> Vec<GroupTask<C>> {
    let (built, mut rest) = match plan {
        HistogramPlan::Unused(_) => return Vec::new(),
        HistogramPlan::Built(nodes) => (nodes, None),
        HistogramPlan::Given(node, histogram) => (Vec::new(), Some((node, histogram))),
        HistogramPlan::Subtracted(mut nodes, parent) => {
            let rest = nodes.pop().map(|largest| (largest, parent));
            (nodes, rest)
        }
    };
    let task = |group: &usize| {
        let rest = rest.as_mut().map(|(node, parent)| (*node, std::mem::take(&mut parent.groups[*group])));
        GroupTask { group: *group, built: built.clone(), rest }
    };
    groups.iter().map(task).collect()
}

/// What all tasks share.
struct Search<'a, C: Cell, F> {
    context: &'a GrowContext<'a>,
    rows: &'a RowSets<C>,
    /// The features that each node may split on.
    allowed: HashMap<NodeId, Vec<bool>>,
    best_of_group: &'a F,
}

impl<C: Cell, F: Fn(&OpenNode<C>, &[C], usize, &[bool]) -> Option<FoundSplit> + Sync> Search<'_, C, F> {
    /// Returns the best split of each wanted node among the features of the task's group.
    fn find(&self, task: GroupTask<C>) -> Result<Vec<(NodeId, Option<FoundSplit>)>> {
        let GroupTask { group, built, mut rest } = task;
        let data = self.context.data;
        let codes = (0..data.partitions()).map(|partition| data.codes(partition, &[group]));
        let codes: Vec<Codes> = codes.collect::<Result<_>>()?;
        let mut found = Vec::with_capacity(built.len() + 1);
        for open in &built {
            let cells = self.sum(open, group, &codes);
            if let Some((_, parent)) = &mut rest {
                parent.iter_mut().zip(&cells).for_each(|(parent, cell)| parent.subtract(*cell));
            }
            found.extend(self.best(open, group, &cells));
        }
        if let Some((open, cells)) = &rest {
            found.extend(self.best(open, group, cells));
        }
        Ok(found)
    }

    /// Sums the rows of a node.
    fn sum(&self, open: &OpenNode<C>, group: usize, codes: &[Codes]) -> Vec<C> {
        let binning = &self.context.data.binning;
        let mut cells = vec![C::default(); lane_cells_of_group::<C>(binning, group)];
        let bits = self.context.rules.scale.count_bits;
        for (codes, rows) in codes.iter().zip(&self.rows.partitions) {
            let members = &binning.layout.groups[group];
            add_rows(codes.group(group), members, rows.node(open.node), bits, &mut cells);
        }
        finish(binning, group, cells, open.total)
    }

    fn best(&self, open: &OpenNode<C>, group: usize, cells: &[C]) -> Option<(NodeId, Option<FoundSplit>)> {
        let allowed = self.allowed.get(&open.node).filter(|_| open.wanted)?;
        Some((open.node, (self.best_of_group)(open, cells, group, allowed)))
    }
}
