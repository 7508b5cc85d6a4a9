//! Defines a naive grower that tests compare with the fast one. For every cut of every leaf, it ranks all documents
//! of all lists from scratch.

use super::candidates::place;
use super::grow::{ListwiseContext, ListwiseRules, ListwiseTree, ROUNDINGS};
use super::list_measure::{ListMeasure, worth_of_scores};
use super::lists::extent_of;
use super::measure::Extent;
use super::node_queries::NodeQueries;
use super::order::{PendingLeaf, Queue};
use super::sums::ListSums;
use crate::bins::MissingBranch;
use crate::driver::{ForestSplit, ForestTree};
use crate::forest::features::{Path, TreeFeatures};
use crate::tree::round;

/// A document and its current leaf.
struct TwinDocument {
    list: usize,
    label: f32,
    gain: i32,
    sums: ListSums,
    codes: Vec<u32>,
    node: u32,
}

/// The lists of a tree.
struct TwinLists {
    /// Factor that converts each list's gains or metric to worth.
    factors: Vec<f64>,
    /// Number of each list's query in the dataset.
    queries: Vec<u64>,
}

/// Returns the total worth of the lists of some queries if documents have these scores.
fn worth(
    items: &[TwinDocument],
    lists: &TwinLists,
    measure: &ListMeasure,
    counts: impl Fn(u64) -> bool,
    score: impl Fn(&TwinDocument) -> f64,
) -> i64 {
    let mut sum = 0;
    for (list, factor) in lists.factors.iter().enumerate().filter(|(_, factor)| **factor > 0.0) {
        if !counts(lists.queries[list]) {
            continue;
        }
        let measure = match measure {
            ListMeasure::Ndcg(measure) => measure,
            ListMeasure::Metric(metric) => {
                let of_list = || items.iter().filter(|item| item.list == list);
                let labels: Vec<f32> = of_list().map(|item| item.label).collect();
                let scores: Vec<f64> = of_list().map(&score).collect();
                sum += worth_of_scores(&mut metric.judge(), &labels, &scores, *factor);
                continue;
            }
        };
        let mut ranked: Vec<(f64, i32)> =
            items.iter().filter(|item| item.list == list).map(|item| (score(item), item.gain)).collect();
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut start = 0;
        for tie in ranked.chunk_by(|one, other| one.0 == other.0) {
            let gains = tie.iter().map(|(_, gain)| i64::from(*gain)).sum();
            let count = tie.len() as u32;
            sum += measure.worth(measure.mean_gain(gains, count, *factor), start, count);
            start += count;
        }
    }
    sum
}

fn sums_of<'a>(items: impl Iterator<Item = &'a TwinDocument>) -> ListSums {
    let mut sums = ListSums::default();
    items.for_each(|item| sums.add(&item.sums));
    sums
}

/// Returns all documents of the tree, its lists, and the total worth of ideally ranked lists.
fn items_of(
    context: &ListwiseContext<'_>,
    rules: &ListwiseRules,
    drawn: &[u32],
) -> (Vec<TwinDocument>, TwinLists, ListMeasure, i64) {
    let mut extent = Extent::default();
    for rows in &context.data.rows {
        extent.merge(&extent_of(rows, drawn, &rules.variant));
    }
    let measure = ListMeasure::new(&rules.variant, &extent);
    let binning = &context.data.binning;
    let (mut items, mut perfect) = (Vec::new(), 0);
    let mut lists = TwinLists { factors: Vec::new(), queries: Vec::new() };
    for (partition, rows) in context.data.rows.iter().enumerate() {
        for (query, number) in rows.query_bounds.windows(2).zip(rows.first_query..) {
            let first = rows.first as u32 + query[0];
            let copies = drawn.iter().filter(|row| **row == first).count();
            if query[0] == query[1] || copies == 0 {
                continue;
            }
            let mut gains = Vec::new();
            let mut weights = 0.0;
            for row in query[0]..query[1] {
                let label = rows.labels[row as usize];
                let weight = rows.weights.as_ref().map_or(1.0, |weights| f64::from(weights[row as usize]));
                weights += weight;
                let gain = measure.gain_of(label);
                gains.push(gain);
                let code = |(feature, place): (usize, &Option<crate::bins::FeaturePlace>)| {
                    place.map_or(0, |place| {
                        context.codes[partition].column(place, &binning.features[feature]).code(row)
                    })
                };
                let sums = ListSums {
                    labels: copies as i64
                        * i64::from(round(context.units.leaf_score.of(label) * weight * context.units.label)),
                    weights: copies as i64
                        * i64::from(round(weight * context.units.weight).max(i32::from(weight > 0.0))),
                    rows: copies as i64,
                };
                let codes = binning.layout.places.iter().enumerate().map(code).collect();
                items.push(TwinDocument { list: lists.factors.len(), label, gain, sums, codes, node: 0 });
            }
            let weight = weights / gains.len() as f64 * copies as f64;
            perfect += measure.perfect(weight);
            let labels = &rows.labels[query[0] as usize..query[1] as usize];
            lists.queries.push(number);
            lists.factors.push(match &measure {
                ListMeasure::Ndcg(measure) => measure.factor_of(&mut gains, weight),
                ListMeasure::Metric(metric) => metric.factor_of(&mut metric.judge(), labels, weight),
            });
        }
    }
    (items, lists, measure, perfect)
}

/// A tree that is being grown.
struct NaiveGrowth<'a> {
    context: ListwiseContext<'a>,
    rules: &'a ListwiseRules,
    items: Vec<TwinDocument>,
    lists: TwinLists,
    measure: ListMeasure,
    perfect: i64,
    number: u64,
    tree: ForestTree,
    paths: Vec<Path>,
    queue: Queue,
}

/// Grows a tree by evaluating every cut by its definition.
pub(super) fn grow(
    context: ListwiseContext<'_>,
    rules: &ListwiseRules,
    (tree, rows): (u64, &[u32]),
    mut features: TreeFeatures,
) -> ListwiseTree {
    let (items, lists, measure, perfect) = items_of(&context, rules, rows);
    let per_node = features.per_node;
    let mut slow = NaiveGrowth {
        context,
        rules,
        items,
        lists,
        measure,
        perfect,
        number: tree,
        tree: ForestTree::default(),
        paths: Vec::new(),
        queue: Queue::new(rules.order, rules.seed, tree),
    };
    slow.add_node(0, Path::ROOT);
    let mut strength = vec![slow.share(slow.now())];
    while let Some(node) = slow.queue.next() {
        let path = slow.paths[node as usize];
        features.start(path);
        let mut allowed: Vec<u32> =
            std::iter::from_fn(|| features.next()).take(per_node).map(|drawn| drawn.feature).collect();
        allowed.sort_unstable();
        if let Some((split, goes_left)) = slow.best(node, &allowed) {
            for (item, is_left) in slow.items.iter_mut().zip(goes_left).filter(|(item, _)| item.node == node)
            {
                item.node = split.left + u32::from(!is_left);
            }
            let depth = slow.tree.nodes[node as usize].depth + 1;
            slow.tree.nodes[node as usize].split = Some(split);
            slow.add_node(depth, path.left());
            slow.add_node(depth, path.right());
            strength.push(slow.share(slow.now()));
        }
    }
    ListwiseTree { tree: slow.tree, paths: slow.paths, strength, deepest: Vec::new() }
}

impl NaiveGrowth<'_> {
    fn share(&self, worth: i64) -> f64 {
        if self.perfect == 0 { 0.0 } else { worth as f64 / self.perfect as f64 }
    }

    fn now(&self) -> i64 {
        let score = |item: &TwinDocument| self.tree.nodes[item.node as usize].value;
        worth(&self.items, &self.lists, &self.measure, |_| true, score)
    }

    fn add_node(&mut self, depth: u32, path: Path) {
        let node = self.tree.nodes.len() as u32;
        let sums = sums_of(self.items.iter().filter(|item| item.node == node));
        let score = self.context.units.score(&sums);
        self.tree.add(depth, score, self.context.units.cover(&sums));
        self.paths.push(path);
        let mut labels = self.items.iter().filter(|item| item.node == node).map(|item| item.label);
        let first = labels.next();
        // A node whose labels are all equal is not added to the queue, which matters for random orders.
        let differ = labels.any(|label| Some(label) != first);
        let least = (2 * self.rules.min_rows).max(self.rules.min_to_split);
        if depth < self.rules.depth && sums.rows >= least && differ {
            self.queue.push(PendingLeaf { node, rows: sums.rows, score });
        }
    }

    /// Returns the best cut of a node, and which documents it sends to the left.
    fn best(&self, node: u32, features: &[u32]) -> Option<(ForestSplit, Vec<bool>)> {
        let sample = NodeQueries {
            share: self.rules.queries_per_node,
            seed: self.rules.seed,
            tree: self.number,
            path: self.paths[node as usize],
        };
        let counts = |query: u64| sample.contains(query);
        let now = |item: &TwinDocument| self.tree.nodes[item.node as usize].value;
        let before = worth(&self.items, &self.lists, &self.measure, counts, now);
        let here = |item: &&TwinDocument| item.node == node;
        let rows = sums_of(self.items.iter().filter(here)).rows;
        let mut most = ROUNDINGS * rows;
        let mut best = None;
        for feature in features {
            let bins = &self.context.data.binning.features[*feature as usize];
            let code = |item: &TwinDocument| item.codes[*feature as usize];
            let has_missing =
                self.items.iter().filter(here).any(|item| Some(code(item)) == bins.missing_code);
            let is_value = |code: &u32| Some(*code) != bins.missing_code;
            let values = || self.items.iter().filter(here).map(code).filter(is_value);
            for missing_left in [false, true] {
                for cut in 0..bins.bins() as u32 {
                    let apart = !values().any(|code| code > cut);
                    if !self.rules.missing.allow(missing_left, has_missing, apart) {
                        continue;
                    }
                    let goes_left = |item: &TwinDocument| {
                        code(item) <= cut || (missing_left && Some(code(item)) == bins.missing_code)
                    };
                    let left = sums_of(self.items.iter().filter(here).filter(|item| goes_left(item)));
                    let right = sums_of(self.items.iter().filter(here).filter(|item| !goes_left(item)));
                    let scores = [&left, &right].map(|sums| self.context.units.score(sums));
                    if left.rows.min(right.rows) < self.rules.min_rows || scores[0] == scores[1] {
                        continue;
                    }
                    let score = |item: &TwinDocument| match item.node == node {
                        true => scores[usize::from(!goes_left(item))],
                        false => now(item),
                    };
                    let after = worth(&self.items, &self.lists, &self.measure, counts, score);
                    if after - before > most {
                        most = after - before;
                        let below = values().filter(|code| *code <= cut).max().unwrap();
                        let (place, threshold) = place(
                            bins,
                            below,
                            values().filter(|code| *code > cut).min(),
                            self.rules.every_value,
                        );
                        let split = ForestSplit {
                            feature: *feature,
                            code: place,
                            threshold,
                            missing: MissingBranch::of_side(missing_left),
                            left: self.tree.nodes.len() as u32,
                            gain: self.share(most),
                        };
                        best = Some((split, self.items.iter().map(goes_left).collect()));
                    }
                }
            }
        }
        best.filter(|(split, _)| split.gain > self.rules.min_gain)
    }
}
