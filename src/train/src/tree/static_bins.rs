//! Candidates are the bins of the dataset (PLANET).

use super::cell::Cell;
use super::finder::{Family, Ground, OpenNode, SplitFinder, better};
use super::histogram::{NodeHistogram, cells_of_group, feature_cells, lane_cells_of_group};
use super::holder::Holder;
use super::kept::KeptHistograms;
use super::split::FoundSplit;
use planetree_base::error::Result;
use rayon::prelude::*;

/// Finds the best cut between bins, for one tree.
pub struct StaticBins<C> {
    histograms: KeptHistograms<C>,
}

impl<C> StaticBins<C> {
    /// With room for histograms.
    pub fn new(histograms: KeptHistograms<C>) -> Self {
        StaticBins { histograms }
    }
}

/// Looks for the best split of each node's histograms. The splits of all nodes of the families, in
/// their order.
pub fn look<C: Cell>(
    ground: &Ground<'_>,
    kept: &mut KeptHistograms<C>,
    rows: &mut dyn Holder<C>,
    families: &[Family<C>],
    best_of_group: impl Fn(&OpenNode<C>, &[C], usize, &[bool]) -> Option<FoundSplit> + Sync,
) -> Result<Vec<Option<FoundSplit>>> {
    let binning = &ground.data.binning;
    let groups = ground.choice.groups(&binning.layout);
    // A deep level has more nodes than there is room for: so many families at a time. A family has two
    // nodes, and each thread adds up histograms of its own.
    let threads = rayon::current_num_threads();
    let cells = |group: &usize| {
        2 * cells_of_group(binning, *group) + threads * lane_cells_of_group::<C>(binning, *group)
    };
    let bytes = groups.iter().map(cells).sum::<usize>() * size_of::<C>();
    let at_a_time = (ground.histogram_bytes / bytes.max(1)).max(1);
    let mut splits = Vec::new();
    for families in families.chunks(at_a_time) {
        let histograms = kept.build(ground, &groups, rows, families)?;
        let mut best =
            best_of_nodes(ground, &groups, &histograms, &best_of_group).into_iter().zip(histograms);
        for open in families.iter().flat_map(Family::nodes) {
            let found = if open.wanted { best.next() } else { None };
            splits.push(found.as_ref().and_then(|(split, _)| *split));
            match found {
                Some((Some(split), (_, histogram))) => {
                    rows.found(ground, &open, &split, &histogram);
                    kept.keep(open.node, histogram, ground.histogram_bytes);
                }
                Some((None, (_, histogram))) => kept.leave(open.node, histogram, ground.histogram_bytes),
                None => {}
            }
        }
    }
    Ok(splits)
}

/// The best split of each histogram: one thread at one group of one node.
fn best_of_nodes<C: Cell>(
    ground: &Ground<'_>,
    groups: &[usize],
    histograms: &[(OpenNode<C>, NodeHistogram<C>)],
    best_of_group: &(impl Fn(&OpenNode<C>, &[C], usize, &[bool]) -> Option<FoundSplit> + Sync),
) -> Vec<Option<FoundSplit>> {
    let allowed: Vec<Vec<bool>> =
        histograms.iter().map(|(open, _)| ground.choice.of_node(open.node)).collect();
    let looks: Vec<(usize, usize)> =
        (0..histograms.len()).flat_map(|node| groups.iter().map(move |group| (node, *group))).collect();
    let found: Vec<Option<FoundSplit>> = looks
        .par_iter()
        .map(|(node, group)| {
            let (open, histogram) = &histograms[*node];
            best_of_group(open, &histogram.groups[*group], *group, &allowed[*node])
        })
        .collect();
    found.chunks(groups.len().max(1)).map(|of_node| of_node.iter().copied().fold(None, better)).collect()
}

impl<C: Cell> SplitFinder<C> for StaticBins<C> {
    fn find(
        &mut self,
        ground: &Ground<'_>,
        rows: &mut dyn Holder<C>,
        families: &[Family<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let best = |open: &OpenNode<C>, cells: &[C], group: usize, allowed: &[bool]| {
            best_of_group(ground, open, cells, group, allowed)
        };
        look(ground, &mut self.histograms, rows, families, best)
    }

    fn kept(self: Box<Self>) -> KeptHistograms<C> {
        self.histograms
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
