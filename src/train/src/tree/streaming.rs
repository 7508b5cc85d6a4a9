//! Finds splits whose candidate thresholds are quantiles of streaming histograms, which are rebuilt for every node,
//! as in pGBRT (Tyree et al. 2011).
//!
//! Each worker has a contiguous range of partitions. It inserts the values of a node's rows into a histogram of b
//! bins, in ascending order and with equal values together, which gives the same bins as inserting them one by one.
//! Then the histograms of all workers are merged in order, and splits are scored with interpolated sums. If a feature
//! has more than `value_groups` distinct values, neighbouring values are first combined into groups.
//!
//! A single worker has all rows, so its sums by code are the same as with static bins. In this case, the larger of two
//! siblings is also computed by subtraction, and partitioning does not affect the results.

use super::cell::{Cell, GradientSums};
use super::centroids::StreamingHistogram;
use super::finder::{GrowContext, OpenNode, Siblings, SplitFinder, better};
use super::histogram::feature_cells;
use super::kept::KeptHistograms;
use super::row_store::RowStore;
use super::rows::{NodeId, RowSets};
use super::split::FoundSplit;
use super::static_bins::find_in_histograms;
use super::streaming_worker::{
    NodeHistograms, StreamingWorker, WorkerHistogram, insert_cells, list_present, worker_partitions,
};
use crate::bins::{Codes, FeatureBins};
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Finds splits at quantiles of streaming histograms.
pub struct StreamingSplits<C> {
    rules: StreamingRules,
    histograms: KeptHistograms<C>,
}

/// Parameters of streaming histograms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StreamingRules {
    /// b: maximum number of bins per histogram.
    pub centroids: usize,
    /// Whether codes represent groups of values, so that splits lie between groups.
    pub grouped: bool,
    /// Number of workers.
    pub workers: usize,
}

impl<C: Cell> StreamingSplits<C> {
    /// Creates a finder for one tree that uses and updates the given histograms.
    pub fn new(rules: StreamingRules, histograms: KeptHistograms<C>) -> Self {
        StreamingSplits { rules, histograms }
    }
}

/// Histogram of one feature in one node, merged from all workers.
struct Merged {
    histogram: StreamingHistogram,
    /// Number of rows per code, to check the minimum number of rows per leaf.
    counts: Vec<i64>,
    missing: GradientSums,
}

impl<C: Cell> SplitFinder<C> for StreamingSplits<C> {
    fn find(
        &mut self,
        context: &GrowContext<'_>,
        rows: &mut dyn RowStore<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        if !self.rules.need_workers() {
            let rules = self.rules;
            let best = |open: &OpenNode<C>, cells: &[C], group: usize, allowed: &[bool]| {
                rules.best_of_cells(context, open, cells, group, allowed)
            };
            return find_in_histograms(context, &mut self.histograms, rows, siblings, best);
        }
        let open: Vec<OpenNode<C>> = siblings.iter().flat_map(Siblings::nodes).collect();
        let wanted: Vec<OpenNode<C>> = open.iter().copied().filter(|open| open.wanted).collect();
        let allowed: Vec<Vec<bool>> = wanted.iter().map(|open| context.choice.of_node(open.node)).collect();
        let groups = context.choice.groups(&context.data.binning.layout);
        let nodes: Vec<NodeId> = wanted.iter().map(|open| open.node).collect();
        let sent = rows.worker_histograms(&groups, &nodes)?;
        let found: Vec<Vec<Option<FoundSplit>>> = match &sent {
            None => {
                let rows = rows.local()?;
                let groups = groups.par_iter().with_max_len(1);
                let find = |group: &usize| self.rules.find_in_group(context, rows, &wanted, &allowed, *group);
                groups.map(find).collect::<Result<_>>()?
            }
            Some(workers) => {
                let groups = groups.par_iter().enumerate().with_max_len(1);
                let find = |(place, group): (usize, &usize)| {
                    let of_workers: Option<Vec<_>> = workers.iter().map(|worker| worker.get(place)).collect();
                    let of_workers = of_workers.ok_or_else(malformed)?;
                    self.rules.find_in_sent(context, &wanted, &allowed, *group, &of_workers)
                };
                groups.map(find).collect::<Result<_>>()?
            }
        };
        let mut best =
            (0..wanted.len()).map(|node| found.iter().map(|splits| splits[node]).fold(None, better));
        Ok(open.iter().map(|open| if open.wanted { best.next().flatten() } else { None }).collect())
    }

    fn kept(self: Box<Self>) -> KeptHistograms<C> {
        self.histograms
    }
}

impl StreamingRules {
    /// Returns whether workers build histograms of their own. A single worker that groups values needs only sums by
    /// code.
    pub fn need_workers(&self) -> bool {
        !self.grouped || self.workers > 1
    }

    /// Returns the best split of a feature group, found from the sums of all rows by code. This is for a single worker.
    fn best_of_cells<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        open: &OpenNode<C>,
        cells: &[C],
        group: usize,
        allowed: &[bool],
    ) -> Option<FoundSplit> {
        let binning = &context.data.binning;
        let bits = context.rules.scale.count_bits;
        let mut list = Vec::new();
        let mut best = None;
        for (lane, feature) in binning.layout.groups[group].features.iter().enumerate() {
            if !allowed[*feature as usize] {
                continue;
            }
            let bins = &binning.features[*feature as usize];
            list_present(&cells[feature_cells(binning, group, lane)], bits, &mut list);
            let mut merged = self.empty(bins);
            merged.merge(&list, bins, context, self.centroids);
            best = better(best, self.best_cut(context, open, *feature, &merged));
        }
        best
    }

    fn empty(&self, bins: &FeatureBins) -> Merged {
        Merged {
            histogram: StreamingHistogram::new(self.centroids),
            counts: vec![0; bins.codes()],
            missing: GradientSums::default(),
        }
    }

    fn find_in_group<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        rows: &RowSets<C>,
        wanted: &[OpenNode<C>],
        allowed: &[Vec<bool>],
        group: usize,
    ) -> Result<Vec<Option<FoundSplit>>> {
        let binning = &context.data.binning;
        let features = &binning.layout.groups[group].features;
        let mut merged = self.empty_of_nodes(context, wanted.len(), group);
        let mut worker = StreamingWorker::new(context.data, context.rules.scale.count_bits, group);
        for own in worker_partitions(context.data.partitions(), self.workers) {
            let codes: Vec<Codes> = own
                .clone()
                .map(|partition| context.data.codes(partition, &[group]))
                .collect::<Result<_>>()?;
            for ((open, of_node), allowed) in wanted.iter().zip(&mut merged).zip(allowed) {
                for (partition, codes) in own.clone().zip(&codes) {
                    worker.add(codes.group(group), rows.partitions[partition].node(open.node));
                }
                worker.drain(|lane, list| {
                    let feature = features[lane];
                    if allowed[feature as usize] {
                        of_node[lane].merge(
                            list,
                            &binning.features[feature as usize],
                            context,
                            self.centroids,
                        );
                    }
                });
            }
        }
        Ok(self.best_of_merged(context, wanted, group, &merged))
    }

    /// Returns the best split of a feature group for each node, found from the histograms that the workers sent, in
    /// their order.
    fn find_in_sent<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        wanted: &[OpenNode<C>],
        allowed: &[Vec<bool>],
        group: usize,
        workers: &[&NodeHistograms],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let features = &context.data.binning.layout.groups[group].features;
        let mut merged = self.empty_of_nodes(context, wanted.len(), group);
        for worker in workers {
            if worker.len() != wanted.len() || worker.iter().any(|sent| sent.len() != features.len()) {
                return Err(malformed());
            }
            for ((sent, of_node), allowed) in worker.iter().zip(&mut merged).zip(allowed) {
                for ((sent, merged), feature) in sent.iter().zip(of_node).zip(features) {
                    if allowed[*feature as usize] {
                        merged.add_sent(sent, self.centroids)?;
                    }
                }
            }
        }
        Ok(self.best_of_merged(context, wanted, group, &merged))
    }

    fn empty_of_nodes(&self, context: &GrowContext<'_>, nodes: usize, group: usize) -> Vec<Vec<Merged>> {
        let binning = &context.data.binning;
        let features = &binning.layout.groups[group].features;
        let empty = |feature: &u32| self.empty(&binning.features[*feature as usize]);
        (0..nodes).map(|_| features.iter().map(empty).collect()).collect()
    }

    fn best_of_merged<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        wanted: &[OpenNode<C>],
        group: usize,
        merged: &[Vec<Merged>],
    ) -> Vec<Option<FoundSplit>> {
        let features = &context.data.binning.layout.groups[group].features;
        let splits = wanted.iter().zip(merged).map(|(open, of_node)| {
            let of_feature =
                |(merged, feature): (&Merged, &u32)| self.best_cut(context, open, *feature, merged);
            of_node.iter().zip(features).map(of_feature).fold(None, better)
        });
        splits.collect()
    }

    /// Returns the candidate with the best score (eq. 9 of the paper, with interpolated sums).
    fn best_cut<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        open: &OpenNode<C>,
        feature: u32,
        merged: &Merged,
    ) -> Option<FoundSplit> {
        let rules = &context.rules;
        let bins = &context.data.binning.features[feature as usize];
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
        let (mut counted, mut rows_up_to) = (0, 0);
        let mut candidates = merged.histogram.candidates(self.centroids);
        if merged.missing.count > 0 {
            // This candidate separates missing values from all others.
            candidates.push((f64::from(f32::MAX), merged.histogram.total()));
        }
        for (value, up_to) in candidates {
            let code = bins.code_up_to(value as f32);
            // Candidates are in ascending order, and so are their codes.
            while counted <= code as usize {
                rows_up_to += merged.counts[counted];
                counted += 1;
            }
            for missing_left in [false, true] {
                if missing_left && merged.missing.count == 0 {
                    continue;
                }
                let rows_left = rows_up_to + if missing_left { merged.missing.count } else { 0 };
                if rows_left.min(total.count - rows_left) < rules.min_data.max(1) {
                    continue;
                }
                let share = if missing_left { 1.0 } else { 0.0 };
                let (sum, count) = (up_to.sum + share * missing.0, up_to.count + share * missing.1);
                if count.min(all_count - count) < rules.min_weight {
                    continue;
                }
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
    /// Adds the rows of another worker.
    fn merge<C: Cell>(
        &mut self,
        list: &[(u32, C)],
        bins: &FeatureBins,
        context: &GrowContext<'_>,
        most: usize,
    ) {
        let mut histogram = StreamingHistogram::new(most);
        let counts = &mut self.counts;
        let missing = insert_cells(list, bins, &context.rules.scale, &mut histogram, |code, count| {
            counts[code as usize] += count;
        });
        self.add(histogram, missing);
    }

    /// Adds the histogram that another worker sent.
    fn add_sent(&mut self, sent: &WorkerHistogram, most: usize) -> Result<()> {
        for (code, count) in sent.counts() {
            *self.counts.get_mut(code as usize).ok_or_else(malformed)? += count;
        }
        self.add(StreamingHistogram::of_bins(most, sent.bins.clone()), sent.missing);
        Ok(())
    }

    fn add(&mut self, histogram: StreamingHistogram, missing: GradientSums) {
        self.missing = self.missing + missing;
        if self.histogram.bins().is_empty() {
            self.histogram = histogram;
        } else {
            self.histogram.merge(&histogram);
        }
    }
}
