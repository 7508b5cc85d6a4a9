//! Finds splits whose candidate thresholds are the bin boundaries, which are computed once before training, as in PLANET
//! (Panda et al. 2009).

use super::cell::Cell;
use super::deepest::find_deepest;
use super::finder::{GrowContext, OpenNode, Siblings, SplitFinder};
use super::histogram::{NodeHistogram, cells_of_group, feature_cells, lane_cells_of_group};
use super::kept::KeptHistograms;
use super::row_store::RowStore;
use super::split::FoundSplit;
use planetree_base::error::Result;
use rayon::prelude::*;

/// Finds the best splits between bins for the nodes of one tree.
pub(crate) struct StaticBins<C> {
    histograms: KeptHistograms<C>,
}

impl<C> StaticBins<C> {
    /// Creates a finder that uses and updates the given histograms.
    pub(crate) fn new(histograms: KeptHistograms<C>) -> Self {
        StaticBins { histograms }
    }
}

/// Returns the best split of every node, in order, from the node's histogram.
pub(super) fn find_in_histograms<C: Cell>(
    context: &GrowContext<'_>,
    kept: &mut KeptHistograms<C>,
    rows: &mut dyn RowStore<C>,
    siblings: &[Siblings<C>],
    best_of_group: impl Fn(&OpenNode<C>, &[C], usize, &[bool]) -> Option<FoundSplit> + Sync,
) -> Result<Vec<Option<FoundSplit>>> {
    let binning = &context.data.binning;
    let groups = context.choice.groups(&binning.layout);
    if let Some(splits) = find_deepest(context, &groups, kept, rows, siblings, &best_of_group)? {
        return Ok(splits);
    }
    // The histograms of a deep level may exceed the memory limit, so siblings are processed in batches. Each sibling
    // needs a histogram, and each thread needs its own partial histograms.
    let threads = rayon::current_num_threads();
    let cells = |group: &usize| {
        context.rules.missing.most_children() * cells_of_group(binning, *group)
            + threads * lane_cells_of_group::<C>(binning, *group)
    };
    let bytes = groups.iter().map(cells).sum::<usize>() * size_of::<C>();
    let at_a_time = (context.histogram_bytes / bytes.max(1)).max(1);
    let mut splits = Vec::new();
    for siblings in siblings.chunks(at_a_time) {
        let histograms = kept.build(context, &groups, rows, siblings)?;
        let mut best =
            best_of_nodes(context, &groups, &histograms, &best_of_group).into_iter().zip(histograms);
        for open in siblings.iter().flat_map(Siblings::nodes) {
            let found = if open.wanted { best.next() } else { None };
            splits.push(found.as_ref().and_then(|(split, _)| *split));
            match found {
                Some((Some(split), (_, histogram))) => {
                    rows.found(context, &open, &split, &histogram);
                    if kept.carries() || !open.deepest {
                        kept.keep(open.node, histogram, context.histogram_bytes);
                    }
                }
                Some((None, (_, histogram))) => {
                    kept.keep_for_next_root(open.node, histogram, context.histogram_bytes)
                }
                None => {}
            }
        }
    }
    Ok(splits)
}

/// Returns the best split for each histogram. The search is parallel over nodes and groups.
fn best_of_nodes<C: Cell>(
    context: &GrowContext<'_>,
    groups: &[usize],
    histograms: &[(OpenNode<C>, NodeHistogram<C>)],
    best_of_group: &(impl Fn(&OpenNode<C>, &[C], usize, &[bool]) -> Option<FoundSplit> + Sync),
) -> Vec<Option<FoundSplit>> {
    let allowed: Vec<Vec<bool>> =
        histograms.iter().map(|(open, _)| context.choice.of_node(open.node)).collect();
    let tasks: Vec<(usize, usize)> =
        (0..histograms.len()).flat_map(|node| groups.iter().map(move |group| (node, *group))).collect();
    let found: Vec<Option<FoundSplit>> = tasks
        .par_iter()
        .map(|(node, group)| {
            let (open, histogram) = &histograms[*node];
            best_of_group(open, &histogram.groups[*group], *group, &allowed[*node])
        })
        .collect();
    found
        .chunks(groups.len().max(1))
        .map(|of_node| of_node.iter().copied().fold(None, |one, other| context.better(one, other)))
        .collect()
}

impl<C: Cell> SplitFinder<C> for StaticBins<C> {
    fn find(
        &mut self,
        context: &GrowContext<'_>,
        rows: &mut dyn RowStore<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let best = |open: &OpenNode<C>, cells: &[C], group: usize, allowed: &[bool]| {
            best_of_group(context, open, cells, group, allowed)
        };
        find_in_histograms(context, &mut self.histograms, rows, siblings, best)
    }

    fn kept(self: Box<Self>) -> KeptHistograms<C> {
        self.histograms
    }
}

fn best_of_group<C: Cell>(
    context: &GrowContext<'_>,
    open: &OpenNode<C>,
    cells: &[C],
    group: usize,
    allowed: &[bool],
) -> Option<FoundSplit> {
    let binning = &context.data.binning;
    let mut best = None;
    for (lane, feature) in binning.layout.groups[group].features.iter().enumerate() {
        if !allowed[*feature as usize] {
            continue;
        }
        let bins = &binning.features[*feature as usize];
        let (values, missing) = cells[feature_cells(binning, group, lane)].split_at(bins.bins());
        let cut = context.best_cut(open, *feature, values, missing.first().copied());
        let found = cut.map(|cut| FoundSplit {
            feature: *feature,
            code: cut.code,
            // Only missing values lie beyond the last bin.
            threshold: bins.cuts.get(cut.code as usize).copied().unwrap_or(f32::MAX),
            missing_code: bins.missing_code,
            missing: cut.missing,
            gain: cut.gain,
        });
        best = context.better(best, found);
    }
    best
}
