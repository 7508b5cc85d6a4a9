//! Grows a tree whose splits are chosen by the expected NDCG, or another metric, of whole queries.
//!
//! Leaves are split one at a time, with all other leaves fixed (algorithm 4 of Ibrahim & Carman 2016). Each split
//! takes three passes over the partitions. The first pass sums the labels of the leaf by code (bin number), which
//! gives the scores of both sides of every cut. The second pass computes how the worth (expected metric in integer
//! units) of all lists (queries) changes from cut to cut. The third pass applies the best cut and updates the worth
//! of the lists. The results of several partitions can be added.

use super::candidates::{CandidateSums, Cuts, has_missing};
use super::list_measure::{ListMeasure, MeasureVariant};
use super::lists::{Lists, MadeSplit, NodeSummary, extent_of};
use super::measure::Extent;
use super::node_queries::NodeQueries;
use super::order::{PendingLeaf, Queue};
use super::scan::NodeScan;
use super::sums::{LabelUnits, ListSums};
use crate::bins::{BinnedData, Codes, FeatureCodes, MissingBranch, MissingSides};
use crate::config::LeafOrder;
use crate::driver::{ForestSplit, ForestTree};
use crate::forest::features::{Path, TreeFeatures};
use planetree_base::error::Result;
use planetree_base::storage::interrupt;
use rayon::prelude::*;

/// Parameters for growing listwise trees.
#[derive(Debug, Clone)]
pub(super) struct ListwiseRules {
    /// The metric that is optimised.
    pub variant: MeasureVariant,
    /// Order in which leaves are split.
    pub order: LeafOrder,
    /// Maximum depth of a leaf.
    pub depth: u32,
    /// Minimum number of rows on either side of a split.
    pub min_rows: i64,
    /// Minimum number of rows of a node that is split.
    pub min_to_split: i64,
    /// Fraction of the queries sampled for the gains of each node.
    pub queries_per_node: f64,
    /// Whether each code represents a single value of a feature.
    pub every_value: bool,
    /// The gain of a split must be above this number.
    pub min_gain: f64,
    /// The sides that missing values may be on.
    pub missing: MissingSides,
    /// Nodes with at least this many rows are processed by several threads.
    pub worth_sharing: i64,
    /// Random seed.
    pub seed: u64,
}

/// The data on which trees are grown.
#[derive(Clone, Copy)]
pub(super) struct ListwiseContext<'a> {
    /// The training data.
    pub data: &'a BinnedData,
    /// Codes of each partition.
    pub codes: &'a [Codes],
    /// Units in which labels and weights are represented as integers.
    pub units: LabelUnits,
}

/// A tree, and the expected NDCG of its training queries while it was grown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListwiseTree {
    /// The tree.
    pub tree: ForestTree,
    /// Path from the root to each node.
    pub paths: Vec<Path>,
    /// Expected NDCG before the first split, followed by the values after each split.
    pub strength: Vec<f64>,
    /// Leaves at the maximum depth with their rows. Another grower may split them further.
    pub deepest: Vec<(u32, Vec<u32>)>,
}

/// Maximum rounding error per row of a node, in units of worth. The gain of a split must exceed the total error of
/// the node's rows.
pub(super) const ROUNDINGS: i64 = 64;

struct ListPartition<'a> {
    lists: Lists<'a>,
    codes: &'a Codes,
    scan: NodeScan,
}

struct ListwiseGrowth<'a> {
    context: ListwiseContext<'a>,
    rules: &'a ListwiseRules,
    features: TreeFeatures,
    measure: ListMeasure,
    tree_number: u64,
    partitions: Vec<ListPartition<'a>>,
    tree: ForestTree,
    sums: Vec<ListSums>,
    paths: Vec<Path>,
    queue: Queue,
    worth: i64,
    perfect: i64,
    buffers: ListBuffers,
}

/// Buffers that are reused between nodes.
#[derive(Default)]
struct ListBuffers {
    sums: Vec<CandidateSums>,
    cuts: Vec<Cuts>,
    used: usize,
    steps: Vec<Vec<i64>>,
}

/// The best cut of a node.
struct BestListCut {
    split: ForestSplit,
    scores: [f64; 2],
}

/// Grows tree number `tree` on `rows`, which must be ascending and consist of whole queries.
pub(super) fn grow(
    context: ListwiseContext<'_>,
    rules: &ListwiseRules,
    (tree, rows): (u64, &[u32]),
    features: TreeFeatures,
) -> Result<ListwiseTree> {
    let mut extent = Extent::default();
    for partition in &context.data.rows {
        extent.merge(&extent_of(partition, rows, &rules.variant));
    }
    let measure = ListMeasure::new(&rules.variant, &extent);
    let partition = |(of_partition, codes)| ListPartition {
        lists: Lists::new(of_partition, rows, &measure, &context.units),
        codes,
        scan: NodeScan::default(),
    };
    let partitions: Vec<ListPartition<'_>> =
        context.data.rows.iter().zip(context.codes).map(partition).collect();
    let mut growth = ListwiseGrowth {
        worth: partitions.iter().map(|partition| partition.lists.worth()).sum(),
        perfect: partitions.iter().map(|partition| partition.lists.perfect()).sum(),
        context,
        rules,
        features,
        measure,
        tree_number: tree,
        partitions,
        tree: ForestTree::default(),
        sums: Vec::new(),
        paths: Vec::new(),
        queue: Queue::new(rules.order, rules.seed, tree),
        buffers: ListBuffers::default(),
    };
    let mut strength = vec![growth.strength()];
    growth.add_node(0, Path::ROOT);
    while let Some(node) = growth.queue.next() {
        interrupt::check()?;
        if let Some(found) = growth.best_cut(node) {
            growth.make(node, &found);
            strength.push(growth.strength());
        }
    }
    let deepest = growth.deepest();
    Ok(ListwiseTree { tree: growth.tree, paths: growth.paths, strength, deepest })
}

impl ListwiseGrowth<'_> {
    fn strength(&self) -> f64 {
        if self.perfect == 0 { 0.0 } else { self.worth as f64 / self.perfect as f64 }
    }

    fn add_node(&mut self, depth: u32, path: Path) {
        let node = self.sums.len() as u32;
        let mut summary = NodeSummary::default();
        for partition in &self.partitions {
            summary.merge(&partition.lists.summary(node));
        }
        let NodeSummary { sums, labels } = summary;
        let score = self.context.units.score(&sums);
        self.tree.add(depth, score, self.context.units.cover(&sums));
        self.sums.push(sums);
        self.paths.push(path);
        // If all labels are equal, both sides of every cut have the same score, so no cut changes the ranking.
        let least = self.rules.min_rows.max(1).saturating_mul(2).max(self.rules.min_to_split);
        let may_split = sums.rows >= least && labels.0 < labels.1;
        if depth < self.rules.depth && may_split {
            self.queue.push(PendingLeaf { node, rows: sums.rows, score });
        }
    }

    fn deepest(&self) -> Vec<(u32, Vec<u32>)> {
        let leaves = (0..).zip(&self.tree.nodes).filter(|(_, node)| node.depth == self.rules.depth);
        let rows = |node: u32| self.partitions.iter().flat_map(move |partition| partition.lists.rows(node));
        leaves.map(|(node, _)| (node, rows(node).collect())).collect()
    }

    fn best_cut(&mut self, node: u32) -> Option<BestListCut> {
        self.features.start(self.paths[node as usize]);
        let mut features = Vec::with_capacity(self.features.per_node);
        while features.len() < self.features.per_node
            && let Some(drawn) = self.features.next()
        {
            features.push(drawn.feature);
        }
        features.sort_unstable();
        self.add_sums(node, &features);
        self.take_cuts(node, &features);
        self.add_steps(node);
        self.best(node, &features)
    }

    fn is_shared(&self, node: u32) -> bool {
        self.sums[node as usize].rows >= self.rules.worth_sharing && rayon::current_num_threads() > 1
    }

    /// First pass: sums the labels of a node by the codes of each feature.
    fn add_sums(&mut self, node: u32, features: &[u32]) {
        let binning = &self.context.data.binning;
        let add = |partition: &mut ListPartition<'_>, sums: &mut [CandidateSums]| {
            if partition.lists.documents(node).is_empty() {
                return;
            }
            let column = |feature: &u32| {
                let place = binning.layout.places[*feature as usize].expect("a tree's features vary");
                partition.codes.column(place, &binning.features[*feature as usize])
            };
            let columns: Vec<FeatureCodes<'_>> = features.iter().map(column).collect();
            partition.scan.add_sums(&partition.lists, node, &columns, sums);
        };
        let shared = self.is_shared(node);
        let sums = &mut self.buffers.sums;
        sums.resize_with(features.len().max(sums.len()), CandidateSums::default);
        let codes = |feature: &u32| binning.features[*feature as usize].codes();
        sums.iter_mut().zip(features).for_each(|(sums, feature)| sums.reset(codes(feature)));
        if !shared {
            self.partitions.iter_mut().for_each(|partition| add(partition, sums));
            return;
        }
        let of_partition = |partition| {
            let mut sums = vec![CandidateSums::default(); features.len()];
            sums.iter_mut().zip(features).for_each(|(sums, feature)| sums.reset(codes(feature)));
            add(partition, &mut sums);
            sums
        };
        let parts: Vec<Vec<CandidateSums>> = self.partitions.par_iter_mut().map(of_partition).collect();
        for part in parts {
            sums.iter_mut().zip(part).for_each(|(sums, part)| sums.merge(&part));
        }
    }

    /// Collects the candidate cuts of each feature. If missing values are tried on both sides, each cut is listed twice.
    fn take_cuts(&mut self, node: u32, features: &[u32]) {
        let total = self.sums[node as usize];
        let ListBuffers { sums, cuts, used, steps } = &mut self.buffers;
        *used = 0;
        for (place, (feature, sums)) in features.iter().zip(sums).enumerate() {
            let missing = self.context.data.binning.features[*feature as usize].missing_code;
            let some_missing = has_missing(sums, missing);
            for missing_left in [false, true] {
                if !self.rules.missing.allow(missing_left, some_missing, true) {
                    continue;
                }
                if cuts.len() == *used {
                    cuts.push(Cuts::default());
                    steps.push(Vec::new());
                }
                let cuts = &mut cuts[*used];
                cuts.place = place;
                cuts.take(sums, &total, (missing, missing_left), self.rules.min_rows, &self.context.units);
                if !self.rules.missing.allow(missing_left, some_missing, false) {
                    cuts.keep_apart(missing);
                }
                steps[*used].clear();
                steps[*used].resize(cuts.len(), 0);
                *used += 1;
            }
        }
    }

    /// Second pass: computes how the worth of all lists changes from cut to cut.
    fn add_steps(&mut self, node: u32) {
        let shared = self.is_shared(node);
        let ListBuffers { cuts, used, steps, .. } = &mut self.buffers;
        let (cuts, steps) = (&cuts[..*used], &mut steps[..*used]);
        let measure = &self.measure;
        let queries = NodeQueries {
            share: self.rules.queries_per_node,
            seed: self.rules.seed,
            tree: self.tree_number,
            path: self.paths[node as usize],
        };
        if !shared {
            for partition in &mut self.partitions {
                partition.scan.add_steps((&partition.lists, node), &queries, cuts, measure, steps);
            }
            return;
        }
        let of_partition = |partition: &mut ListPartition<'_>| {
            let mut steps: Vec<Vec<i64>> = cuts.iter().map(|cuts| vec![0; cuts.len()]).collect();
            partition.scan.add_steps((&partition.lists, node), &queries, cuts, measure, &mut steps);
            steps
        };
        let parts: Vec<Vec<Vec<i64>>> = self.partitions.par_iter_mut().map(of_partition).collect();
        for (steps, part) in parts.into_iter().flat_map(|part| (0..).zip(part)) {
            let to: &mut Vec<i64> = &mut self.buffers.steps[steps];
            to.iter_mut().zip(part).for_each(|(step, part)| *step += part);
        }
    }

    /// Returns the cut with the largest gain. If several cuts have this gain, the first one is returned: features are
    /// in ascending order, and so are the cuts of each feature.
    fn best(&self, node: u32, features: &[u32]) -> Option<BestListCut> {
        let ListBuffers { cuts, used, steps, .. } = &self.buffers;
        let mut most = ROUNDINGS * self.sums[node as usize].rows;
        let mut best = None;
        for (cuts, steps) in cuts[..*used].iter().zip(steps) {
            let mut gain = 0;
            for (cut, step) in steps.iter().enumerate() {
                gain += step;
                if gain > most {
                    most = gain;
                    best = Some((cuts, cut));
                }
            }
        }
        let (cuts, cut) = best?;
        let gain = most as f64 / self.perfect as f64;
        let feature = features[cuts.place];
        let bins = &self.context.data.binning.features[feature as usize];
        let found = cuts.split(cut, bins, self.rules.every_value);
        let split = ForestSplit { feature, gain, left: self.tree.nodes.len() as u32, ..found };
        (gain > self.rules.min_gain)
            .then_some(BestListCut { split, scores: [cuts.left[cut], cuts.right[cut]] })
    }

    /// Third pass: applies a split to the lists of all partitions.
    fn make(&mut self, node: u32, found: &BestListCut) {
        let BestListCut { split, scores } = *found;
        let binning = &self.context.data.binning;
        let place = binning.layout.places[split.feature as usize].expect("a tree's features vary");
        let bins = &binning.features[split.feature as usize];
        let made = MadeSplit {
            node,
            left: split.left,
            code: split.code,
            missing_left: bins.missing_code.filter(|_| split.missing == MissingBranch::Left),
            scores,
        };
        let measure = &self.measure;
        let make = |partition: &mut ListPartition<'_>| {
            let column = partition.codes.column(place, bins);
            partition.lists.split(&made, Some(&column), measure)
        };
        let grown: i64 = if self.is_shared(node) {
            self.partitions.par_iter_mut().map(make).sum()
        } else {
            self.partitions.iter_mut().map(make).sum()
        };
        self.worth += grown;
        let depth = self.tree.nodes[node as usize].depth + 1;
        let path = self.paths[node as usize];
        self.tree.nodes[node as usize].split = Some(split);
        self.add_node(depth, path.left());
        self.add_node(depth, path.right());
    }
}
