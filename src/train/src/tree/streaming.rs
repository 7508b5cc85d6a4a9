//! Finds splits whose candidate thresholds are quantiles of streaming histograms, which are rebuilt for every node,
//! as in pGBRT (Tyree et al. 2011).
//!
//! Each worker has a contiguous range of whole queries. It inserts the values of a node's rows into a histogram of b
//! bins, in ascending order and with equal values together, which gives the same bins as inserting them one by one.
//! The histograms of all workers are merged pairwise, and splits are scored with interpolated sums. If values are
//! grouped (`value_groups`) and a feature has more distinct values, neighbouring values are first combined.
//!
//! Candidates are tried in descending order of their gain. The first one that leaves enough rows on both sides is
//! chosen, where rows are counted exactly: from the sums by code if there is a single worker, and otherwise by a second
//! pass over the rows, for the best candidates only. So what workers send does not grow with their rows.
//!
//! A single worker has all rows, so its sums by code are the same as with static bins, and the larger of two siblings
//! is computed by subtraction: `static_bins.rs` does so for grouped values, `streaming_values.rs` for all values.

use super::cell::{Cell, GradientSums};
use super::centroids::{quantiles_of, total_of};
use super::finder::{GrowContext, OpenNode, Siblings, SplitFinder};
use super::histogram::feature_cells;
use super::kept::KeptHistograms;
use super::monotone::SplitLimits;
use super::root_shapes::RootShapes;
use super::row_store::RowStore;
use super::rows::NodeId;
use super::split::FoundSplit;
use super::static_bins::find_in_histograms;
use super::streaming_cuts::{CandidateCut, choose};
use super::streaming_values::{ValueSearch, ValueSums};
use super::streaming_worker::{NodeHistograms, WorkerHistogram, WorkerRows};
use super::workers::WorkerBounds;
use crate::bins::MissingBranch;
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use rayon::prelude::*;
use std::sync::Arc;

/// Finds splits at quantiles of streaming histograms.
pub(crate) struct StreamingSplits<C: Cell> {
    rules: StreamingRules,
    bounds: Arc<WorkerBounds>,
    /// Sums of a single worker, for grouped values.
    histograms: KeptHistograms<C>,
    /// Sums of a single worker, for values that are not grouped.
    values: ValueSums<C>,
    /// The bins of roots, if all trees have the same rows without weights.
    shapes: Option<Arc<RootShapes>>,
}

/// Parameters of streaming histograms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamingRules {
    /// b: maximum number of bins per histogram.
    pub centroids: usize,
    /// Whether codes represent groups of values, so that splits lie between groups.
    pub grouped: bool,
    /// Number of workers.
    pub workers: usize,
}

impl<C: Cell> StreamingSplits<C> {
    /// Creates a finder for one tree that uses and updates the given histograms. `bounds` are the rows of workers, and
    /// `shapes` the bins of roots, if all trees have the same rows without weights.
    pub(crate) fn new(
        rules: StreamingRules,
        bounds: Arc<WorkerBounds>,
        histograms: KeptHistograms<C>,
        shapes: Option<Arc<RootShapes>>,
    ) -> Self {
        StreamingSplits { rules, bounds, histograms, values: ValueSums::default(), shapes }
    }
}

impl<C: Cell> SplitFinder<C> for StreamingSplits<C> {
    fn find(
        &mut self,
        context: &GrowContext<'_>,
        rows: &mut dyn RowStore<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        if !self.rules.need_workers() {
            return self.find_alone(context, rows, siblings);
        }
        let open: Vec<OpenNode<C>> = siblings.iter().flat_map(Siblings::nodes).collect();
        let wanted: Vec<OpenNode<C>> = open.iter().copied().filter(|open| open.wanted).collect();
        let groups = context.choice.groups(&context.data.binning.layout);
        let nodes: Vec<NodeId> = wanted.iter().map(|open| open.node).collect();
        let search = NodeSearch { rules: self.rules, context, wanted: &wanted };
        let candidates: Vec<Vec<Vec<CandidateCut>>> = match rows.merged_histograms(&groups, &nodes)? {
            Some(sent) if sent.len() == groups.len() || nodes.is_empty() => {
                let groups = groups.par_iter().zip(&sent).with_max_len(1);
                groups.map(|(group, sent)| search.candidates(*group, sent)).collect::<Result<_>>()?
            }
            Some(_) => return Err(malformed()),
            None if self.bounds.workers() == 1 => return self.find_alone(context, rows, siblings),
            None => {
                let workers = WorkerRows {
                    data: context.data,
                    rows: rows.local()?,
                    bounds: &self.bounds,
                    workers: 0..self.bounds.workers(),
                    scale: context.rules.scale,
                    centroids: self.rules.centroids,
                };
                let find = |group: &usize| {
                    let merged = workers.of_group(*group, &nodes)?.finish().ok_or_else(malformed)?;
                    search.candidates(*group, &merged)
                };
                groups.par_iter().with_max_len(1).map(find).collect::<Result<_>>()?
            }
        };
        let mut best = choose(context, rows, &wanted, candidates)?.into_iter();
        Ok(open.iter().map(|open| if open.wanted { best.next().flatten() } else { None }).collect())
    }

    fn kept(self: Box<Self>) -> KeptHistograms<C> {
        self.histograms
    }
}

impl<C: Cell> StreamingSplits<C> {
    /// Finds splits from the sums of all rows by code. This is for a single worker, whose rows are in this process if
    /// values are not grouped.
    fn find_alone(
        &mut self,
        context: &GrowContext<'_>,
        rows: &mut dyn RowStore<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let rules = self.rules;
        if !rules.grouped {
            let search = ValueSearch { rules: &rules, context, shapes: self.shapes.as_deref() };
            return self.values.find(search, rows.local()?, siblings);
        }
        let binning = &context.data.binning;
        let best = |open: &OpenNode<C>, cells: &[C], group: usize, allowed: &[bool]| {
            let features = binning.layout.groups[group].features.iter().enumerate();
            let features = features.filter(|(_, feature)| allowed[**feature as usize]);
            let of_feature = |(lane, feature): (usize, &u32)| {
                rules.best_of_cells(context, open, *feature, &cells[feature_cells(binning, group, lane)])
            };
            features.map(of_feature).fold(None, |one, other| context.better(one, other))
        };
        find_in_histograms(context, &mut self.histograms, rows, siblings, best)
    }
}

impl StreamingRules {
    /// Returns whether workers build histograms of their own. A single worker that groups values needs only sums by
    /// code.
    pub fn need_workers(&self) -> bool {
        !self.grouped || self.workers > 1
    }

    /// Returns the best of the candidates that leave enough rows to all children and keep the limits of the node.
    /// `sums_up_to` returns the sums over the rows with a value whose code is at most the given one, and is called with
    /// ascending codes.
    pub fn best_cut<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        open: &OpenNode<C>,
        feature: u32,
        histogram: &WorkerHistogram,
        mut sums_up_to: impl FnMut(u32) -> GradientSums,
    ) -> Option<FoundSplit> {
        let rules = &context.rules;
        let total = open.total.sums(rules.scale.count_bits);
        let limits = context.limits(open, feature);
        let mut best: Option<FoundSplit> = None;
        self.each_cut(context, open, limits, histogram, |cut| {
            if best.is_some_and(|best| cut.gain <= best.gain) {
                return;
            }
            let split = self.split_of(context, feature, &cut);
            let missing = histogram.missing;
            let values = sums_up_to(split.code);
            let (left, middle) = match split.missing {
                MissingBranch::Left => (values + missing, None),
                MissingBranch::Right | MissingBranch::Unseen => (values, None),
                MissingBranch::Middle => (values, Some(missing)),
            };
            let right = total - left - middle.unwrap_or_default();
            let fewest = left.count.min(right.count).min(middle.unwrap_or(left).count);
            let is_allowed =
                || limits.is_none_or(|limits| rules.allows(limits, left, right, split.is_apart()));
            if fewest >= rules.min_data.max(1) && is_allowed() {
                best = Some(split);
            }
        });
        best
    }

    /// Passes every candidate whose score is sufficient to `take`, in ascending order of the thresholds (eq. 9 of the
    /// paper, with interpolated sums). Whether it keeps the limits depends on the exact sums.
    fn each_cut<C: Cell>(
        &self,
        context: &GrowContext<'_>,
        open: &OpenNode<C>,
        limits: Option<SplitLimits>,
        histogram: &WorkerHistogram,
        mut take: impl FnMut(ScoredCut),
    ) {
        let rules = &context.rules;
        let real = |sums: GradientSums| {
            (sums.gradient as f64 / rules.scale.gradient, sums.weight as f64 / rules.scale.weight)
        };
        let total = open.total.sums(rules.scale.count_bits);
        let (all_sum, all_count) = real(total);
        let missing = real(histogram.missing);
        let score =
            |sums| limits.map_or_else(|| rules.score(sums), |limits| rules.score_within(sums, limits.bounds));
        let before = score(total);
        let least = rules.threshold(before);
        // The scores of the rows with and without a value, if missing values have a child of their own.
        let beside = score(histogram.missing);
        let least_beside = rules.threshold_beside(before, score(total - histogram.missing), beside);
        let score_of = |sum, count| match limits {
            None => rules.score_of(sum, count),
            Some(limits) => rules.score_of_within(sum, count, limits.bounds),
        };
        let some_missing = histogram.missing.count > 0;
        if !rules.may_cut(open.total, Some(C::of_sums(histogram.missing, rules.scale.count_bits))) {
            return;
        }
        let mut quantiles = quantiles_of(&histogram.bins, self.centroids);
        if some_missing {
            // This candidate separates missing values from all others.
            quantiles.push((f64::from(f32::MAX), total_of(&histogram.bins)));
        }
        let last = quantiles.len().saturating_sub(1);
        for (place, (value, up_to)) in quantiles.into_iter().enumerate() {
            for branch in rules.missing.branches(some_missing, place == last) {
                let share = if *branch == MissingBranch::Left { 1.0 } else { 0.0 };
                let (sum, count) = (up_to.sum + share * missing.0, up_to.count + share * missing.1);
                let (mut right_sum, mut right_count) = (all_sum - sum, all_count - count);
                let (mut fewest, mut least, mut beside_them) = (f64::INFINITY, least, 0.0);
                if *branch == MissingBranch::Middle {
                    (right_sum, right_count) = (right_sum - missing.0, right_count - missing.1);
                    (fewest, least, beside_them) = (missing.1, least_beside, beside);
                }
                fewest = fewest.min(count.min(right_count));
                if fewest < rules.min_weight {
                    continue;
                }
                let score = score_of(sum, count) + score_of(right_sum, right_count);
                if score > least {
                    take(ScoredCut { value, missing: *branch, fewest, gain: score + beside_them - before });
                }
            }
        }
    }

    /// Returns the split at a candidate. Finding its code takes much longer than scoring it.
    fn split_of(&self, context: &GrowContext<'_>, feature: u32, cut: &ScoredCut) -> FoundSplit {
        let bins = &context.data.binning.features[feature as usize];
        let code = bins.code_up_to(cut.value as f32);
        let threshold = match self.grouped {
            true => bins.cuts.get(code as usize).copied().unwrap_or(f32::MAX),
            false => cut.value as f32,
        };
        let (missing_code, missing, gain) = (bins.missing_code, cut.missing, cut.gain);
        FoundSplit { feature, code, threshold, missing_code, missing, gain }
    }
}

/// A candidate with its score.
struct ScoredCut {
    value: f64,
    /// Where missing values go.
    missing: MissingBranch,
    /// Approximate count of the smallest child, or weight if rows have weights.
    fewest: f64,
    gain: f64,
}

/// A search for the candidates of some nodes.
struct NodeSearch<'a, C> {
    rules: StreamingRules,
    context: &'a GrowContext<'a>,
    wanted: &'a [OpenNode<C>],
}

impl<C: Cell> NodeSearch<'_, C> {
    /// Returns the candidates of each node among the features of a group, given the histograms of all workers.
    fn candidates(&self, group: usize, histograms: &NodeHistograms) -> Result<Vec<Vec<CandidateCut>>> {
        let features = &self.context.data.binning.layout.groups[group].features;
        let fits = |of_node: &Vec<WorkerHistogram>| of_node.len() == features.len();
        if histograms.len() != self.wanted.len() || !histograms.iter().all(fits) {
            return Err(malformed());
        }
        let of_node = |(open, of_node): (&OpenNode<C>, &Vec<WorkerHistogram>)| {
            let allowed = self.context.choice.of_node(open.node);
            let mut cuts = Vec::new();
            for (feature, histogram) in features.iter().zip(of_node) {
                if allowed[*feature as usize] {
                    let limits = self.context.limits(open, *feature);
                    self.rules.each_cut(self.context, open, limits, histogram, |cut| {
                        let split = self.rules.split_of(self.context, *feature, &cut);
                        cuts.push(CandidateCut { split, fewest: cut.fewest, missing: histogram.missing });
                    });
                }
            }
            cuts
        };
        Ok(self.wanted.iter().zip(histograms).map(of_node).collect())
    }
}
