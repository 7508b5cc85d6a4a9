//! Candidates are the bins of the dataset (PLANET): histograms of integers, the smaller child built,
//! its sibling by subtraction.

use super::cell::Cell;
use super::finder::{Family, Ground, OpenNode, SplitFinder, better};
use super::histogram::{HistogramBuilder, NodeHistogram, WantedNode, feature_cells};
use super::rows::{NodeId, RowSets};
use super::split::FoundSplit;
use crate::error::Result;
use rayon::prelude::*;
use std::collections::HashMap;

/// Keeps the histograms of nodes whose children may be asked for.
pub struct StaticBins<C> {
    kept: HashMap<NodeId, NodeHistogram<C>>,
    kept_bytes: usize,
}

impl<C: Cell> StaticBins<C> {
    /// For one tree.
    pub fn new() -> Self {
        StaticBins { kept: HashMap::new(), kept_bytes: 0 }
    }

    /// The histograms of all wanted nodes of the families, in their order.
    fn histograms(
        &mut self,
        builder: &HistogramBuilder<'_>,
        rows: &RowSets<C>,
        families: &[Family<C>],
    ) -> Result<Vec<(OpenNode<C>, NodeHistogram<C>)>> {
        let bits = builder.count_bits;
        let mut plans = Vec::with_capacity(families.len());
        let mut wanted = Vec::new();
        for family in families {
            let parent = family.parent.and_then(|parent| self.kept.remove(&parent));
            if let Some(parent) = &parent {
                self.kept_bytes -= parent.bytes();
            }
            let plan = Plan::of(family, parent, bits);
            wanted.extend(plan.built.iter().map(|open| WantedNode { node: open.node, total: open.total }));
            plans.push(plan);
        }
        let mut built = builder.build(rows, &wanted)?.into_iter();
        let mut all = Vec::with_capacity(families.len() * 2);
        for plan in plans {
            let mut of_family: Vec<(OpenNode<C>, NodeHistogram<C>)> = Vec::with_capacity(2);
            of_family.extend(plan.built.iter().copied().zip(built.by_ref()));
            if let Some((sibling, mut parent)) = plan.subtracted {
                parent.subtract(&of_family[0].1);
                of_family.push((sibling, parent));
            }
            of_family.sort_by_key(|(open, _)| open.node);
            all.extend(of_family.into_iter().filter(|(open, _)| open.wanted));
        }
        Ok(all)
    }
}

/// How the histograms of a family come about.
struct Plan<C> {
    built: Vec<OpenNode<C>>,
    subtracted: Option<(OpenNode<C>, NodeHistogram<C>)>,
}

impl<C: Cell> Plan<C> {
    fn of(family: &Family<C>, parent: Option<NodeHistogram<C>>, bits: u32) -> Self {
        let wanted: Vec<OpenNode<C>> = family.nodes().filter(|open| open.wanted).collect();
        let count = |open: &OpenNode<C>| open.total.sums(bits).count;
        match (parent, family.second) {
            (Some(parent), Some(second)) if !wanted.is_empty() => {
                let (small, large) = if count(&family.first) <= count(&second) {
                    (family.first, second)
                } else {
                    (second, family.first)
                };
                if large.wanted {
                    Plan { built: vec![small], subtracted: Some((large, parent)) }
                } else {
                    Plan { built: vec![small], subtracted: None }
                }
            }
            _ => Plan { built: wanted, subtracted: None },
        }
    }
}

impl<C: Cell> SplitFinder<C> for StaticBins<C> {
    fn find(
        &mut self,
        ground: &Ground<'_>,
        rows: &RowSets<C>,
        families: &[Family<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let binning = &ground.data.binning;
        let groups = ground.choice.groups(&binning.layout);
        let builder = HistogramBuilder {
            data: ground.data,
            count_bits: ground.rules.scale.count_bits,
            groups: &groups,
        };
        let histograms = self.histograms(&builder, rows, families)?;
        let allowed: Vec<Vec<bool>> =
            histograms.iter().map(|(open, _)| ground.choice.of_node(open.node)).collect();
        // One thread looks at one group of one node.
        let looks: Vec<(usize, usize)> =
            (0..histograms.len()).flat_map(|node| groups.iter().map(move |group| (node, *group))).collect();
        let found: Vec<(usize, Option<FoundSplit>)> = looks
            .par_iter()
            .with_min_len(2)
            .map(|(node, group)| {
                let (open, histogram) = &histograms[*node];
                (*node, best_of_group(ground, open, histogram, *group, &allowed[*node]))
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
            // Without it, both children of the node are built from their rows: slower, the same.
            let bytes = histogram.bytes();
            if split.is_some() && self.kept_bytes + bytes <= ground.histogram_bytes {
                self.kept_bytes += bytes;
                self.kept.insert(open.node, histogram);
            }
        }
        Ok(splits)
    }
}

fn best_of_group<C: Cell>(
    ground: &Ground<'_>,
    open: &OpenNode<C>,
    histogram: &NodeHistogram<C>,
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
        let cells = &histogram.groups[group][feature_cells(binning, group, lane)];
        let (values, missing) = cells.split_at(bins.bins());
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
