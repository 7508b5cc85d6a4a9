//! Candidates are the bins of the dataset (PLANET).

use super::cell::Cell;
use super::finder::{Family, Ground, OpenNode, SplitFinder, better};
use super::histogram::{NodeHistogram, feature_cells};
use super::kept::KeptHistograms;
use super::rows::RowSets;
use super::split::FoundSplit;
use crate::error::Result;
use rayon::prelude::*;

/// Finds the best cut between bins.
pub struct StaticBins<C> {
    histograms: KeptHistograms<C>,
}

impl<C: Cell> StaticBins<C> {
    /// For one tree.
    pub fn new() -> Self {
        StaticBins { histograms: KeptHistograms::new() }
    }
}

/// Looks for the best split of each node's histograms: one thread at one group of one node. The splits
/// of all nodes of the families, in their order.
pub fn look<C: Cell>(
    ground: &Ground<'_>,
    kept: &mut KeptHistograms<C>,
    rows: &RowSets<C>,
    families: &[Family<C>],
    best_of_group: impl Fn(&OpenNode<C>, &[C], usize, &[bool]) -> Option<FoundSplit> + Sync,
) -> Result<Vec<Option<FoundSplit>>> {
    let groups = ground.choice.groups(&ground.data.binning.layout);
    let histograms: Vec<(OpenNode<C>, NodeHistogram<C>)> = kept.build(ground, &groups, rows, families)?;
    let allowed: Vec<Vec<bool>> =
        histograms.iter().map(|(open, _)| ground.choice.of_node(open.node)).collect();
    let looks: Vec<(usize, usize)> =
        (0..histograms.len()).flat_map(|node| groups.iter().map(move |group| (node, *group))).collect();
    let found: Vec<(usize, Option<FoundSplit>)> = looks
        .par_iter()
        .map(|(node, group)| {
            let (open, histogram) = &histograms[*node];
            (*node, best_of_group(open, &histogram.groups[*group], *group, &allowed[*node]))
        })
        .collect();
    let mut best = vec![None; histograms.len()];
    for (node, split) in found {
        best[node] = better(best[node], split);
    }
    let mut best = best.into_iter().zip(histograms);
    let mut splits = Vec::new();
    for open in families.iter().flat_map(Family::nodes) {
        if !open.wanted {
            splits.push(None);
            continue;
        }
        let (split, (_, histogram)) = best.next().expect("every wanted node has a histogram");
        splits.push(split);
        if split.is_some() {
            kept.keep(open.node, histogram, ground.histogram_bytes);
        }
    }
    Ok(splits)
}

impl<C: Cell> SplitFinder<C> for StaticBins<C> {
    fn find(
        &mut self,
        ground: &Ground<'_>,
        rows: &RowSets<C>,
        families: &[Family<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let best = |open: &OpenNode<C>, cells: &[C], group: usize, allowed: &[bool]| {
            best_of_group(ground, open, cells, group, allowed)
        };
        look(ground, &mut self.histograms, rows, families, best)
    }
}

fn best_of_group<C: Cell>(
    ground: &Ground<'_>,
    open: &OpenNode<C>,
    cells: &[C],
    group: usize,
    allowed: &[bool],
) -> Option<FoundSplit> {
    let binning = &ground.data.binning;
    let total = open.total.sums(ground.rules.scale.count_bits);
    let mut best = None;
    for (lane, feature) in binning.layout.groups[group].features.iter().enumerate() {
        if !allowed[*feature as usize] {
            continue;
        }
        let bins = &binning.features[*feature as usize];
        let (values, missing) = cells[feature_cells(binning, group, lane)].split_at(bins.bins());
        let cut = ground.rules.best_cut(values, missing.first().copied(), total);
        let found = cut.map(|cut| FoundSplit {
            feature: *feature,
            code: cut.code,
            // Above the last bin there are only missing values.
            threshold: bins.cuts.get(cut.code as usize).copied().unwrap_or(f32::MAX),
            missing_code: bins.missing_code,
            missing_left: cut.missing_left,
            gain: cut.gain,
        });
        best = better(best, found);
    }
    best
}
