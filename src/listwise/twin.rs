//! The slow twin of the grower: every cut of every leaf ranks all documents of all lists from scratch.

use super::grow::{ListwiseGround, ListwiseRules, ListwiseTree, ROUNDINGS};
use super::lists::extent_of;
use super::measure::{Extent, Measure};
use super::order::{Queue, Waiting};
use crate::tree::{FoundSplit, GrownNode, GrownTree, NodeId, Sums, round};

/// A document and the leaf it is in.
pub struct Item {
    pub list: usize,
    pub gain: i32,
    pub sums: Sums,
    pub codes: Vec<u32>,
    pub node: NodeId,
}

/// What all lists are worth if documents have these scores.
pub fn worth(items: &[Item], factors: &[f64], measure: &Measure, score: impl Fn(&Item) -> f64) -> i64 {
    let mut sum = 0;
    for (list, factor) in factors.iter().enumerate().filter(|(_, factor)| **factor > 0.0) {
        let mut ranked: Vec<(f64, i32)> =
            items.iter().filter(|item| item.list == list).map(|item| (score(item), item.gain)).collect();
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut start = 0;
        for tie in ranked.chunk_by(|one, other| one.0 == other.0) {
            let gains = tie.iter().map(|(_, gain)| i64::from(*gain)).sum();
            let count = tie.len() as u32;
            sum += measure.worth(measure.pull(gains, count, *factor), start, count);
            start += count;
        }
    }
    sum
}

fn sums_of<'a>(items: impl Iterator<Item = &'a Item>) -> Sums {
    let mut sums = Sums::default();
    for item in items {
        sums.gradient += item.sums.gradient;
        sums.weight += item.sums.weight;
        sums.count += item.sums.count;
    }
    sums
}

/// Every document that the tree sees, with what multiplies the gains of each list, and what perfect
/// lists would be worth.
pub fn items_of(ground: &ListwiseGround<'_>, rules: &ListwiseRules) -> (Vec<Item>, Vec<f64>, Measure, i64) {
    let drawn = |partition: usize| ground.drawn.map(|drawn| drawn[partition].as_slice());
    let mut extent = Extent::default();
    for (partition, rows) in ground.data.rows.iter().enumerate() {
        extent.merge(&extent_of(rows, drawn(partition), &rules.yardstick));
    }
    let measure = Measure::new(&rules.yardstick, &extent);
    let binning = &ground.data.binning;
    let (mut items, mut factors, mut perfect) = (Vec::new(), Vec::new(), 0);
    for (partition, rows) in ground.data.rows.iter().enumerate() {
        for query in rows.query_bounds.windows(2) {
            if query[0] == query[1] || drawn(partition).is_some_and(|drawn| !drawn.contains(&query[0])) {
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
                let code = |(feature, place): (usize, &Option<crate::bins::Place>)| {
                    place.map_or(0, |place| {
                        ground.codes[partition].column(place, &binning.features[feature]).code(row)
                    })
                };
                let scale = rules.split.scale;
                let sums = Sums {
                    gradient: round(f64::from(label) * weight * scale.gradient).into(),
                    weight: round(weight * scale.weight).max(i32::from(weight > 0.0)).into(),
                    count: 1,
                };
                let codes = binning.layout.places.iter().enumerate().map(code).collect();
                items.push(Item { list: factors.len(), gain, sums, codes, node: 0 });
            }
            let weight = weights / gains.len() as f64;
            perfect += measure.perfect(weight);
            factors.push(measure.factor_of(&mut gains, weight));
        }
    }
    (items, factors, measure, perfect)
}

/// Grows the tree that the definition asks for.
pub fn grow(ground: ListwiseGround<'_>, rules: &ListwiseRules) -> ListwiseTree {
    let (mut items, factors, measure, perfect) = items_of(&ground, rules);
    let mut nodes: Vec<GrownNode> = Vec::new();
    let mut queue = Queue::new(rules.order, rules.seed, ground.tree);
    let add = |nodes: &mut Vec<GrownNode>, queue: &mut Queue, items: &[Item], depth: u32| {
        let node = nodes.len();
        let sums = sums_of(items.iter().filter(|item| item.node == node));
        nodes.push(GrownNode { depth, sums, split: None });
        if depth < rules.depth && sums.count >= 2 * rules.split.min_data {
            queue.push(Waiting { node, count: sums.count, score: rules.split.value(sums) });
        }
    };
    add(&mut nodes, &mut queue, &items, 0);
    let now = |nodes: &[GrownNode], items: &[Item]| {
        worth(items, &factors, &measure, |item| rules.split.value(nodes[item.node].sums))
    };
    let share = |worth: i64| if perfect == 0 { 0.0 } else { worth as f64 / perfect as f64 };
    let mut strength = vec![share(now(&nodes, &items))];
    loop {
        if rules.leaves.is_some_and(|most| nodes.len().div_ceil(2) >= most as usize) {
            break;
        }
        let Some(node) = queue.next() else { break };
        let before = now(&nodes, &items);
        let mut best: Option<FoundSplit> = None;
        let mut most = ROUNDINGS * nodes[node].sums.count;
        let allowed = ground.choice.of_node(node);
        for (feature, bins) in ground.data.binning.features.iter().enumerate() {
            if !allowed[feature] {
                continue;
            }
            let here = |item: &&Item| item.node == node;
            let has_missing =
                bins.missing_code.is_some_and(|code| items.iter().filter(here).any(|item| item.codes[feature] == code));
            for missing_left in [false, true] {
                if missing_left && !has_missing {
                    continue;
                }
                for code in 0..bins.bins() as u32 {
                    let goes_left = |item: &Item| {
                        let of_item = item.codes[feature];
                        of_item <= code || (missing_left && Some(of_item) == bins.missing_code)
                    };
                    let left = sums_of(items.iter().filter(here).filter(|item| goes_left(item)));
                    let right = sums_of(items.iter().filter(here).filter(|item| !goes_left(item)));
                    let least = rules.split.min_data.max(1);
                    let light = |sums: Sums| (sums.weight as f64 / rules.split.scale.weight) < rules.split.min_weight;
                    if left.count < least || right.count < least || light(left) || light(right) {
                        continue;
                    }
                    let (left, right) = (rules.split.value(left), rules.split.value(right));
                    if left == right {
                        continue;
                    }
                    let after = worth(&items, &factors, &measure, |item| match item.node == node {
                        true if goes_left(item) => left,
                        true => right,
                        false => rules.split.value(nodes[item.node].sums),
                    });
                    if after - before > most {
                        most = after - before;
                        best = Some(FoundSplit {
                            feature: feature as u32,
                            code,
                            threshold: bins.cuts.get(code as usize).copied().unwrap_or(f32::MAX),
                            missing_code: bins.missing_code,
                            missing_left,
                            gain: share(most),
                        });
                    }
                }
            }
        }
        let Some(split) = best.filter(|split| split.gain > rules.split.min_gain) else { continue };
        let left = nodes.len();
        for item in items.iter_mut().filter(|item| item.node == node) {
            let code = item.codes[split.feature as usize];
            item.node = left + usize::from(!(code <= split.code || Some(code) == split.missing_goes_left()));
        }
        let depth = nodes[node].depth + 1;
        nodes[node].split = Some((split, left));
        add(&mut nodes, &mut queue, &items, depth);
        add(&mut nodes, &mut queue, &items, depth);
        strength.push(share(now(&nodes, &items)));
    }
    ListwiseTree { tree: GrownTree { nodes }, strength }
}
