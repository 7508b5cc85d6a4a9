//! Growing a tree whose cuts are chosen by the ranking of whole queries.
//!
//! A leaf after the other is asked for its best cut, all other leaves as they are (algorithm 4 of the
//! paper). Three questions go to every partition, and their answers add up: the sums of
//! the leaf's labels by code, from which the scores of both sides of every cut follow; the steps
//! of all lists along the cuts; and, when the best cut is made, by how much the lists grew.

use super::candidates::{CodeSums, Cuts, tries_both_sides};
use super::lists::{Lists, MadeSplit, NodeSummary, extent_of};
use super::measure::{Extent, Measure, Yardstick};
use super::order::{LeafOrder, Queue, Waiting};
use super::scan::NodeScan;
use crate::bins::{BinnedData, Codes, Column};
use crate::error::Result;
use crate::storage::interrupt;
use crate::tree::{FeatureChoice, FoundSplit, GrownNode, GrownTree, NodeId, SplitRules};
use rayon::prelude::*;

/// How trees are grown.
#[derive(Debug, Clone)]
pub struct ListwiseRules {
    /// How rankings are judged.
    pub yardstick: Yardstick,
    /// Which leaf is split next.
    pub order: LeafOrder,
    /// Splits from the root to a leaf at most.
    pub depth: u32,
    /// Leaves at most.
    pub leaves: Option<u32>,
    /// What a split must respect.
    pub split: SplitRules,
    /// Key of random draws.
    pub seed: u64,
}

/// What a tree is grown on.
#[derive(Clone, Copy)]
pub struct ListwiseGround<'a> {
    /// The data.
    pub data: &'a BinnedData,
    /// The codes of each partition.
    pub codes: &'a [Codes],
    /// The rows that the tree sees, by partition; whole queries.
    pub drawn: Option<&'a [Vec<u32>]>,
    /// The features of its nodes.
    pub choice: &'a FeatureChoice,
    /// Its number.
    pub tree: u64,
}

/// A tree, and the expected NDCG of its lists while it grew.
pub struct ListwiseTree {
    /// The tree.
    pub tree: GrownTree,
    /// Before the first split and after every one.
    pub strength: Vec<f64>,
}

/// Nodes of so many documents are worth the work of several threads.
const WORTH_SHARING: i64 = 16_384;

/// Roundings of a document's list at most, in units: a gain must be more than that.
pub const ROUNDINGS: i64 = 64;

struct Partition<'a> {
    lists: Lists<'a>,
    codes: &'a Codes,
    scan: NodeScan,
}

struct Growth<'a> {
    ground: ListwiseGround<'a>,
    rules: &'a ListwiseRules,
    measure: Measure,
    partitions: Vec<Partition<'a>>,
    nodes: Vec<GrownNode>,
    queue: Queue,
    worth: i64,
    perfect: i64,
    room: Room,
    worth_sharing: i64,
}

/// Memory that serves one node after the other.
#[derive(Default)]
struct Room {
    sums: Vec<CodeSums>,
    cuts: Vec<Cuts>,
    used: usize,
    steps: Vec<Vec<i64>>,
}

/// The best cut of a node.
struct Found {
    split: FoundSplit,
    left_score: f64,
    right_score: f64,
}

/// Grows a tree.
pub fn grow(ground: ListwiseGround<'_>, rules: &ListwiseRules) -> Result<ListwiseTree> {
    grow_sharing(ground, rules, WORTH_SHARING)
}

/// Grows a tree; nodes of so many documents are shared by all threads.
pub fn grow_sharing(
    ground: ListwiseGround<'_>,
    rules: &ListwiseRules,
    worth_sharing: i64,
) -> Result<ListwiseTree> {
    let drawn = |partition: usize| ground.drawn.map(|drawn| drawn[partition].as_slice());
    let rows = &ground.data.rows;
    let mut extent = Extent::default();
    for (partition, rows) in rows.iter().enumerate() {
        extent.merge(&extent_of(rows, drawn(partition), &rules.yardstick));
    }
    let measure = Measure::new(&rules.yardstick, &extent);
    let partitions: Vec<Partition<'_>> = (0..rows.len())
        .into_par_iter()
        .map(|partition| Partition {
            lists: Lists::new(&rows[partition], drawn(partition), &measure, &rules.split.scale),
            codes: &ground.codes[partition],
            scan: NodeScan::default(),
        })
        .collect();
    let mut growth = Growth {
        worth: partitions.iter().map(|partition| partition.lists.worth()).sum(),
        perfect: partitions.iter().map(|partition| partition.lists.perfect()).sum(),
        ground,
        rules,
        measure,
        partitions,
        nodes: Vec::new(),
        queue: Queue::new(rules.order, rules.seed, ground.tree),
        room: Room::default(),
        worth_sharing,
    };
    let mut strength = vec![growth.strength()];
    growth.add_node(0);
    while let Some(node) = growth.next() {
        interrupt::check()?;
        if let Some(found) = growth.best_cut(node) {
            growth.make(node, &found);
            strength.push(growth.strength());
        }
    }
    Ok(ListwiseTree { tree: GrownTree { nodes: growth.nodes }, strength })
}

impl Growth<'_> {
    fn strength(&self) -> f64 {
        if self.perfect == 0 { 0.0 } else { self.worth as f64 / self.perfect as f64 }
    }

    fn next(&mut self) -> Option<NodeId> {
        let leaves = self.nodes.len().div_ceil(2) as u32;
        if self.rules.leaves.is_some_and(|most| leaves >= most) { None } else { self.queue.next() }
    }

    fn add_node(&mut self, depth: u32) {
        let node = self.nodes.len();
        let mut summary = NodeSummary::default();
        for partition in &self.partitions {
            summary.merge(&partition.lists.summary(node));
        }
        let NodeSummary { sums, labels } = summary;
        self.nodes.push(GrownNode { depth, sums, split: None });
        // Where all labels are equal, both sides of every cut score the same.
        if depth < self.rules.depth && self.rules.split.may_split(sums) && labels.0 < labels.1 {
            let score = self.rules.split.value(sums);
            self.queue.push(Waiting { node, count: sums.count, score });
        }
    }

    fn best_cut(&mut self, node: NodeId) -> Option<Found> {
        let features = self.features_of(node);
        self.add_sums(node, &features);
        self.take_cuts(node, &features);
        self.add_steps(node);
        self.best(node, &features)
    }

    fn features_of(&self, node: NodeId) -> Vec<u32> {
        let allowed = self.ground.choice.of_node(node);
        (0..).zip(allowed).filter(|(_, is_allowed)| *is_allowed).map(|(feature, _)| feature).collect()
    }

    fn is_shared(&self, node: NodeId) -> bool {
        self.nodes[node].sums.count >= self.worth_sharing && rayon::current_num_threads() > 1
    }

    /// First question: the labels of a node by the codes of each feature.
    fn add_sums(&mut self, node: NodeId, features: &[u32]) {
        let binning = &self.ground.data.binning;
        let add = |partition: &mut Partition<'_>, sums: &mut [CodeSums]| {
            if partition.lists.documents(node).is_empty() {
                return;
            }
            let column = |feature: &u32| {
                let place = binning.layout.places[*feature as usize].expect("a tree's features vary");
                partition.codes.column(place, &binning.features[*feature as usize])
            };
            let columns: Vec<Column<'_>> = features.iter().map(column).collect();
            partition.scan.add_sums(&partition.lists, node, &columns, sums);
        };
        let shared = self.is_shared(node);
        let sums = &mut self.room.sums;
        sums.resize_with(features.len().max(sums.len()), CodeSums::default);
        sums.iter_mut().for_each(CodeSums::clear);
        if shared {
            let parts: Vec<Vec<CodeSums>> = self.partitions.par_iter_mut().map(|partition| {
                let mut sums = vec![CodeSums::default(); features.len()];
                add(partition, &mut sums);
                sums
            }).collect();
            for part in parts {
                sums.iter_mut().zip(part).for_each(|(sums, part)| sums.merge(&part));
            }
        } else {
            self.partitions.iter_mut().for_each(|partition| add(partition, sums));
        }
    }

    /// The cuts of each feature; twice where missing values try both sides.
    fn take_cuts(&mut self, node: NodeId, features: &[u32]) {
        let total = self.nodes[node].sums;
        let Room { sums, cuts, used, steps } = &mut self.room;
        *used = 0;
        for (place, (feature, sums)) in features.iter().zip(sums).enumerate() {
            let missing = self.ground.data.binning.features[*feature as usize].missing_code;
            for missing_left in [false, true] {
                if missing_left && !tries_both_sides(sums, missing) {
                    continue;
                }
                if cuts.len() == *used {
                    cuts.push(Cuts::default());
                    steps.push(Vec::new());
                }
                cuts[*used].take(sums, total, (missing, missing_left), &self.rules.split);
                cuts[*used].place = place;
                steps[*used].clear();
                steps[*used].resize(cuts[*used].len(), 0);
                *used += 1;
            }
        }
    }

    /// Second question: the steps of all lists along the cuts.
    fn add_steps(&mut self, node: NodeId) {
        let shared = self.is_shared(node);
        let Room { cuts, used, steps, .. } = &mut self.room;
        let (cuts, steps) = (&cuts[..*used], &mut steps[..*used]);
        let measure = &self.measure;
        if shared {
            let parts: Vec<Vec<Vec<i64>>> = self.partitions.par_iter_mut().map(|partition| {
                let mut steps: Vec<Vec<i64>> = cuts.iter().map(|cuts| vec![0; cuts.len()]).collect();
                partition.scan.add_steps(&partition.lists, node, cuts, measure, &mut steps);
                steps
            }).collect();
            for part in parts {
                for (steps, part) in steps.iter_mut().zip(part) {
                    steps.iter_mut().zip(part).for_each(|(step, part)| *step += part);
                }
            }
        } else {
            for partition in &mut self.partitions {
                partition.scan.add_steps(&partition.lists, node, cuts, measure, steps);
            }
        }
    }

    /// The cut that gains most; of equal ones that of the earlier feature, the lower one.
    fn best(&self, node: NodeId, features: &[u32]) -> Option<Found> {
        let Room { cuts, used, steps, .. } = &self.room;
        let mut most = ROUNDINGS * self.nodes[node].sums.count;
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
        let bins = &self.ground.data.binning.features[feature as usize];
        (gain > self.rules.split.min_gain).then(|| Found {
            split: cuts.split(cut, feature, bins, gain),
            left_score: cuts.left[cut],
            right_score: cuts.right[cut],
        })
    }

    /// Makes a split and asks the third question.
    fn make(&mut self, node: NodeId, found: &Found) {
        let Found { split, left_score, right_score } = *found;
        let left = self.nodes.len();
        let made = MadeSplit { node, left, split, left_score, right_score };
        let binning = &self.ground.data.binning;
        let place = binning.layout.places[split.feature as usize].expect("a tree's features vary");
        let bins = &binning.features[split.feature as usize];
        let measure = &self.measure;
        let make = |partition: &mut Partition<'_>| {
            let column = partition.codes.column(place, bins);
            partition.lists.split(&made, Some(&column), measure)
        };
        let grown: i64 = if self.is_shared(node) {
            self.partitions.par_iter_mut().map(make).sum()
        } else {
            self.partitions.iter_mut().map(make).sum()
        };
        self.worth += grown;
        let depth = self.nodes[node].depth + 1;
        self.nodes[node].split = Some((split, left));
        self.add_node(depth);
        self.add_node(depth);
    }
}
