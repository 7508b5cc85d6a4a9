//! Candidates are quantiles of streaming histograms, built anew for every node (pGBRT).
//!
//! Every partition is a worker: it feeds the values of a node's rows into a histogram of b bins,
//! in ascending order, equal values together (which gives the bins that one by one would). The
//! master merges the partitions' histograms in their order and cuts where the interpolated sums
//! say. Values of a feature beyond `value_groups` distinct ones are told apart by group.

use super::cell::{Cell, Sums};
use super::centroids::{Centroid, StreamingHistogram};
use super::finder::{Family, Ground, OpenNode, SplitFinder, better};
use super::histogram::{NodeHistogram, add_rows, cells_of_group, feature_cells, fill_common};
use super::rows::RowSets;
use super::sorted_cells::SortedCells;
use super::split::FoundSplit;
use crate::bins::{FeatureBins, GroupKind};
use crate::error::Result;
use rayon::prelude::*;

/// Finds splits from centroids; keeps nothing.
pub struct StreamingSplits {
    /// b: bins of a histogram.
    pub centroids: usize,
    /// Whether codes stand for groups of values, so that cuts lie between groups.
    pub grouped: bool,
}

/// What the master knows of one feature in one node.
struct Merged {
    histogram: StreamingHistogram,
    /// Rows by code, for the rule of smallest leaves.
    counts: Vec<i64>,
    missing: Sums,
}

impl<C: Cell> SplitFinder<C> for StreamingSplits {
    fn find(
        &mut self,
        ground: &Ground<'_>,
        rows: &RowSets<C>,
        families: &[Family<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let open: Vec<OpenNode<C>> = families.iter().flat_map(Family::nodes).collect();
        let wanted: Vec<OpenNode<C>> = open.iter().copied().filter(|open| open.wanted).collect();
        let allowed: Vec<Vec<bool>> = wanted.iter().map(|open| ground.choice.of_node(open.node)).collect();
        let groups = ground.choice.groups(&ground.data.binning.layout);
        let found: Vec<Vec<Option<FoundSplit>>> = groups
            .par_iter()
            .with_max_len(1)
            .map(|group| self.find_in_group(ground, rows, &wanted, &allowed, *group))
            .collect::<Result<_>>()?;
        let mut best =
            (0..wanted.len()).map(|node| found.iter().map(|splits| splits[node]).fold(None, better));
        Ok(open.iter().map(|open| if open.wanted { best.next().flatten() } else { None }).collect())
    }
}

impl StreamingSplits {
    fn find_in_group<C: Cell>(
        &self,
        ground: &Ground<'_>,
        rows: &RowSets<C>,
        wanted: &[OpenNode<C>],
        allowed: &[Vec<bool>],
        group: usize,
    ) -> Result<Vec<Option<FoundSplit>>> {
        let binning = &ground.data.binning;
        let features = &binning.layout.groups[group].features;
        let empty = |feature: &u32| Merged {
            histogram: StreamingHistogram::new(self.centroids),
            counts: vec![0; binning.features[*feature as usize].codes()],
            missing: Sums::default(),
        };
        let mut merged: Vec<Vec<Merged>> =
            wanted.iter().map(|_| features.iter().map(empty).collect()).collect();
        let mut worker = Worker::new(ground, group);
        for partition in 0..ground.data.partitions() {
            let codes = ground.data.codes(partition, &[group])?;
            for ((open, of_node), allowed) in wanted.iter().zip(&mut merged).zip(allowed) {
                worker.summarise(
                    codes.group(group),
                    rows.partitions[partition].node(open.node),
                    |lane, list| {
                        let feature = features[lane];
                        if allowed[feature as usize] {
                            let bins = &binning.features[feature as usize];
                            of_node[lane].absorb(list, bins, ground, self.centroids);
                        }
                    },
                );
            }
        }
        let splits = wanted.iter().zip(merged).map(|(open, of_node)| {
            let of_feature =
                |(merged, feature): (Merged, &u32)| self.best_cut(ground, open, *feature, &merged);
            of_node.into_iter().zip(features).map(of_feature).fold(None, better)
        });
        Ok(splits.collect())
    }

    /// The candidate with the best score (eq. 9 of the paper, from interpolated sums).
    fn best_cut<C: Cell>(
        &self,
        ground: &Ground<'_>,
        open: &OpenNode<C>,
        feature: u32,
        merged: &Merged,
    ) -> Option<FoundSplit> {
        let rules = &ground.rules;
        let bins = &ground.data.binning.features[feature as usize];
        let total = open.total.sums(rules.scale.count_bits);
        let (all_sum, all_count) =
            (total.gradient as f64 / rules.scale.gradient, total.weight as f64 / rules.scale.weight);
        let missing = (
            merged.missing.gradient as f64 / rules.scale.gradient,
            merged.missing.weight as f64 / rules.scale.weight,
        );
        let before = rules.score(total);
        let mut least = rules.threshold(before);
        let mut best = None;
        for (value, up_to) in merged.histogram.candidates(self.centroids) {
            let code = bins.code_up_to(value as f32);
            let rows_left: i64 = merged.counts[..=code as usize].iter().sum();
            for missing_left in [false, true] {
                if missing_left && merged.missing.count == 0 {
                    continue;
                }
                let rows_left = rows_left + if missing_left { merged.missing.count } else { 0 };
                if rows_left.min(total.count - rows_left) < rules.min_data.max(1) {
                    continue;
                }
                let share = if missing_left { 1.0 } else { 0.0 };
                let (sum, count) = (up_to.sum + share * missing.0, up_to.count + share * missing.1);
                let score = rules.score_of(sum, count) + rules.score_of(all_sum - sum, all_count - count);
                if score > least {
                    least = score;
                    best = Some(FoundSplit {
                        feature,
                        code,
                        threshold: self.threshold(bins, code, value),
                        missing_code: bins.missing_code,
                        missing_left,
                        gain: score - before,
                    });
                }
            }
        }
        best
    }

    fn threshold(&self, bins: &FeatureBins, code: u32, value: f64) -> f32 {
        if self.grouped { bins.cuts.get(code as usize).copied().unwrap_or(f32::MAX) } else { value as f32 }
    }
}

impl Merged {
    /// Takes in the rows of one more partition.
    fn absorb<C: Cell>(&mut self, list: &[(u32, C)], bins: &FeatureBins, ground: &Ground<'_>, most: usize) {
        let scale = &ground.rules.scale;
        let mut histogram = StreamingHistogram::new(most);
        for (code, cell) in list {
            let sums = cell.sums(scale.count_bits);
            if Some(*code) == bins.missing_code {
                self.missing.gradient += sums.gradient;
                self.missing.weight += sums.weight;
                self.missing.count += sums.count;
                continue;
            }
            self.counts[*code as usize] += sums.count;
            histogram.insert(Centroid {
                centre: f64::from(bins.centres[*code as usize]),
                count: sums.weight as f64 / scale.weight,
                sum: sums.gradient as f64 / scale.gradient,
            });
        }
        if self.histogram.bins().is_empty() {
            self.histogram = histogram;
        } else {
            self.histogram.merge(&histogram);
        }
    }
}

/// Sums a node's rows of one partition by code, for every feature of a group.
struct Worker<'a, C: Cell> {
    ground: &'a Ground<'a>,
    group: usize,
    cells: NodeHistogram<C>,
    sorted: SortedCells<C>,
    list: Vec<(u32, C)>,
}

impl<'a, C: Cell> Worker<'a, C> {
    fn new(ground: &'a Ground<'a>, group: usize) -> Self {
        let binning = &ground.data.binning;
        let mut groups = vec![Vec::new(); binning.layout.groups.len()];
        if !matches!(binning.layout.groups[group].kind, GroupKind::Column(_)) {
            groups[group] = vec![C::default(); cells_of_group(binning, group)];
        }
        Worker {
            ground,
            group,
            cells: NodeHistogram { groups },
            sorted: SortedCells::new(),
            list: Vec::new(),
        }
    }

    fn summarise(
        &mut self,
        codes: crate::bins::GroupCodes<'_>,
        node: super::rows::NodeRows<'_, C>,
        mut take: impl FnMut(usize, &[(u32, C)]),
    ) {
        let binning = &self.ground.data.binning;
        let members = &binning.layout.groups[self.group];
        let bits = self.ground.rules.scale.count_bits;
        if let GroupKind::Column(_) = members.kind {
            self.sorted.collect(codes, node);
            take(0, self.sorted.drain(binning.features[members.features[0] as usize].codes(), bits));
            return;
        }
        let mut total = C::default();
        node.targets.iter().for_each(|target| total.add(C::of(*target, bits)));
        add_rows(codes, members.kind, node, bits, &mut self.cells.groups[self.group]);
        fill_common(binning, &[self.group], &mut self.cells, total);
        for lane in 0..members.features.len() {
            let cells = &self.cells.groups[self.group][feature_cells(binning, self.group, lane)];
            self.list.clear();
            let present = cells.iter().enumerate().filter(|(_, cell)| cell.sums(bits).count > 0);
            self.list.extend(present.map(|(code, cell)| (code as u32, *cell)));
            take(lane, &self.list);
        }
        self.cells.groups[self.group].fill(C::default());
    }
}
