//! Trees that are grown from labels, row by row: by class counts (entropy, Gini) or by moments (variance).
//!
//! A *large* node is added up column by column over all partitions (`large.rs`). Once a node's rows fit into the
//! cache, they are copied side by side and everything below is grown there (`block.rs`). Where data are mapped,
//! many trees go through the partitions together.

use super::block::{Block, BlockRows, Ground, OpenNode};
use super::criterion::{Classes, Criterion, MOST_CLASSES, Purity, Variance, WeightedClasses};
use super::cut::CutRules;
use super::features::{Path, TreeFeatures};
use super::grower::{GrowBelow, OpenLeaf, Top};
use super::large::{Buffers, LargeNode};
use super::view::{Lanes, View};
use crate::bins::{BinnedData, Codes};
use crate::config::{CriterionName, Parameters};
use crate::driver::ForestTree;
use crate::driver::{Draw, TreeGrower};
use crate::tree::{Scale, round};
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of codes that stay in the cache while a subtree is grown.
const BLOCK_BYTES: usize = 1 << 19;

/// The grower of a criterion that looks at labels row by row.
pub fn grower<'a>(
    parameters: &'a Parameters,
    data: &'a BinnedData,
    room: usize,
) -> Result<Box<dyn GrowBelow + 'a>> {
    let ask = Ask { parameters, data, room };
    let purity = match parameters.forest.criterion {
        CriterionName::Variance => return variance(&ask),
        CriterionName::Entropy => Purity::entropy(),
        CriterionName::Gini => Purity::Gini,
        CriterionName::Ndcg => unreachable!("listwise trees have a grower of their own"),
    };
    let labels = distinct_labels(data);
    if labels.len() > MOST_CLASSES {
        return Err(Error::usage(
            format_args!(
                "there are {} different labels; entropy and gini take at most {MOST_CLASSES}",
                labels.len()
            ),
            "set criterion=variance, which takes labels for numbers",
        ));
    }
    let class_of = |label: f32| labels.partition_point(|other| *other < label) as u8;
    let all = || data.rows.iter().flat_map(|rows| &rows.labels);
    if let Some(units) = weight_units(data) {
        let said = all()
            .zip(weights(data))
            .map(|(label, weight)| (class_of(*label), in_units(weight, units) as u32));
        let criterion = WeightedClasses { purity, labels: table(&labels), weight_units: units };
        return Ok(Box::new(PointGrower::new(&ask, criterion, said.collect())?));
    }
    let said: Vec<u8> = all().map(|label| class_of(*label)).collect();
    Ok(match labels.len() {
        0..=3 => Box::new(PointGrower::new(&ask, Classes::<3> { purity, labels: table(&labels) }, said)?),
        4..=5 => Box::new(PointGrower::new(&ask, Classes::<5> { purity, labels: table(&labels) }, said)?),
        6..=8 => Box::new(PointGrower::new(&ask, Classes::<8> { purity, labels: table(&labels) }, said)?),
        _ => Box::new(PointGrower::new(&ask, Classes::<32> { purity, labels: table(&labels) }, said)?),
    })
}

/// What every grower is made from.
#[derive(Clone, Copy)]
struct Ask<'a> {
    parameters: &'a Parameters,
    data: &'a BinnedData,
    room: usize,
}

fn variance<'a>(ask: &Ask<'a>) -> Result<Box<dyn GrowBelow + 'a>> {
    let data = ask.data;
    let weight_units = weight_units(data);
    let all = || data.rows.iter().flat_map(|rows| &rows.labels).zip(weights(data));
    let most = all().fold(0.0, |most: f64, (label, weight)| most.max((f64::from(*label) * weight).abs()));
    let label_units = Scale::units(most, 31);
    let criterion = Variance { label_units, weight_units: weight_units.unwrap_or(1.0) };
    let said = all().map(|(label, weight)| {
        let units = weight_units.map_or(1, |units| in_units(weight, units));
        (round(f64::from(*label) * weight * label_units), units)
    });
    Ok(Box::new(PointGrower::new(ask, criterion, said.collect())?))
}

/// The labels that occur, ascending.
fn distinct_labels(data: &BinnedData) -> Vec<f32> {
    let mut labels: Vec<f32> = Vec::new();
    for label in data.rows.iter().flat_map(|rows| &rows.labels) {
        let place = labels.partition_point(|other| other < label);
        if labels.get(place) != Some(label) {
            labels.insert(place, *label);
            if labels.len() > 1 << 16 {
                break; // far too many anyway
            }
        }
    }
    labels
}

fn table<const C: usize>(labels: &[f32]) -> [f64; C] {
    std::array::from_fn(|class| labels.get(class).map_or(0.0, |label| f64::from(*label)))
}

/// Units of a weight of 1, when rows have weights.
fn weight_units(data: &BinnedData) -> Option<f64> {
    let weights = data.rows.iter().flat_map(|rows| rows.weights.iter().flatten());
    let heaviest = weights.copied().reduce(f32::max)?;
    Some(Scale::units(f64::from(heaviest), 31))
}

/// The weight of every row, 1 where there are none.
fn weights(data: &BinnedData) -> impl Iterator<Item = f64> + '_ {
    data.rows.iter().flat_map(|rows| {
        let weights = rows.weights.as_deref();
        (0..rows.len()).map(move |row| weights.map_or(1.0, |weights| f64::from(weights[row])))
    })
}

/// A weight in units; what weighs anything weighs at least one.
fn in_units(weight: f64, units: f64) -> i32 {
    round(weight * units).max(i32::from(weight > 0.0))
}

/// Grows trees from what every row says.
struct PointGrower<'a, K: Criterion> {
    parameters: &'a Parameters,
    data: &'a BinnedData,
    /// Bytes that sums and copies of rows may take.
    room: usize,
    ground: Ground<'a, K>,
    /// By number of the row.
    said: Vec<K::Row>,
    /// The codes of all partitions, when they are in memory.
    codes: Vec<Codes>,
    /// Nodes of up to so many rows are grown in a block.
    block_rows: usize,
}

impl<'a, K: Criterion> PointGrower<'a, K> {
    fn new(ask: &Ask<'a>, criterion: K, said: Vec<K::Row>) -> Result<Self> {
        let Ask { parameters, data, room } = *ask;
        let lanes = Lanes::of(&data.binning.layout);
        let row_bytes = lanes.row_bytes();
        let in_memory = if data.is_in_memory() { data.partitions() } else { 0 };
        Ok(PointGrower {
            parameters,
            data,
            room,
            ground: Ground {
                rules: CutRules::of(parameters, criterion.unit()),
                max_depth: parameters.max_depth.unwrap_or(u32::MAX),
                binning: &data.binning,
                lanes,
                criterion,
            },
            said,
            codes: (0..in_memory).map(|partition| data.codes(partition, &[])).collect::<Result<_>>()?,
            block_rows: (BLOCK_BYTES / row_bytes.max(1)).clamp(256, usize::from(u16::MAX)),
        })
    }

    fn view<'b>(&'b self, partition: usize, codes: &'b Codes) -> View<'b> {
        View::of(self.data, partition, codes, &self.ground.lanes)
    }

    /// A tree that is nothing but its root.
    fn start(&self, number: u32, rows: Vec<u32>) -> Growth<K> {
        let mut tree = ForestTree::default();
        let node = self.ground.add_node(&mut tree, 0, &self.sums(&rows));
        let root = OpenLeaf { node, path: Path::ROOT, rows: 0..rows.len() };
        self.go_on(number, Top { tree, rows, open: vec![root] })
    }

    /// A tree whose top is there.
    fn go_on(&self, number: u32, top: Top) -> Growth<K> {
        let mut growth = Growth {
            features: TreeFeatures::draw(self.parameters, &self.data.binning.layout, number.into()),
            tree: top.tree,
            spare: vec![0; top.rows.len()],
            rows: top.rows,
            large: VecDeque::new(),
            small: Vec::new(),
            at_hand: Vec::new(),
        };
        for OpenLeaf { node, path, rows } in top.open {
            let depth = growth.tree.nodes[node as usize].depth;
            let sums = self.sums(&growth.rows[rows.clone()]);
            growth.place(self, OpenNode { node, path, depth, sums, rows });
        }
        growth
    }

    fn sums(&self, rows: &[u32]) -> K::Sums {
        let mut sums = K::Sums::default();
        rows.iter().for_each(|row| K::add(&mut sums, self.said[*row as usize]));
        sums
    }
}

/// A tree while it grows.
struct Growth<K: Criterion> {
    features: TreeFeatures,
    tree: ForestTree,
    rows: Vec<u32>,
    spare: Vec<u32>,
    /// Nodes that wait to be split, in the order of their places in the tree.
    large: VecDeque<OpenNode<K::Sums>>,
    /// Nodes whose subtrees are grown in a block.
    small: Vec<OpenNode<K::Sums>>,
    /// Large nodes that are looked at now.
    at_hand: Vec<LargeNode<K>>,
}

impl<K: Criterion> Growth<K> {
    /// Decides what becomes of a node.
    fn place(&mut self, grower: &PointGrower<'_, K>, node: OpenNode<K::Sums>) {
        if !grower.ground.may_split(&node) {
            return;
        }
        if node.rows.len() <= grower.block_rows {
            self.small.push(node);
            return;
        }
        let rows = &self.rows[node.rows.clone()];
        let first = grower.said[rows[0] as usize];
        if !rows.iter().all(|row| K::agree(grower.said[*row as usize], first)) {
            self.large.push_back(node);
        }
    }

    /// Takes the next large nodes at hand; false if there are none.
    fn take(&mut self, nodes: usize) -> bool {
        let nodes = nodes.min(self.large.len());
        self.at_hand.extend(self.large.drain(..nodes).map(LargeNode::new));
        !self.at_hand.is_empty()
    }

    /// Draws features to look at; false if no node has any left to look at.
    fn draw(&mut self, grower: &PointGrower<'_, K>) -> bool {
        let Growth { at_hand, features, .. } = self;
        at_hand.iter_mut().fold(false, |any, node| node.draw(&grower.ground, features) | any)
    }

    /// Moves the rows of a partition to the children of their nodes.
    fn divide(&mut self, grower: &PointGrower<'_, K>, view: &View<'_>) {
        let Growth { at_hand, rows, spare, .. } = self;
        at_hand.iter_mut().for_each(|node| node.divide(&grower.ground, view, rows, spare));
    }

    /// Copies a node's rows of a partition.
    fn load(
        &self,
        grower: &PointGrower<'_, K>,
        view: &View<'_>,
        node: &OpenNode<K::Sums>,
        to: &mut BlockRows<K>,
    ) {
        let rows = &self.rows[node.rows.clone()];
        to.load(&grower.ground.lanes, view, &rows[view.part(rows)], &grower.said);
    }

    /// Makes the splits that were decided on, after all rows were moved.
    fn settle(&mut self, grower: &PointGrower<'_, K>) {
        for node in std::mem::take(&mut self.at_hand) {
            let children = node.settle(&grower.ground, &mut self.tree, &mut self.rows, &self.spare);
            for child in children.into_iter().flatten() {
                self.place(grower, child);
            }
        }
    }
}

impl<K: Criterion> TreeGrower for PointGrower<'_, K> {
    fn grow(&self, tree: u32, rows: Vec<u32>) -> Result<ForestTree> {
        self.finish(self.start(tree, rows))
    }

    fn grow_together(&self, trees: Range<u32>, draw: &Draw<'_>) -> Result<Vec<ForestTree>> {
        let trees = trees.into_par_iter().with_max_len(1);
        if self.codes.is_empty() {
            return self.grow_mapped(trees.map(|tree| self.start(tree, draw(tree))).collect());
        }
        trees.map(|tree| self.grow(tree, draw(tree))).collect()
    }
}

impl<K: Criterion> GrowBelow for PointGrower<'_, K> {
    fn grow_below(&self, tree: u32, top: Top) -> Result<ForestTree> {
        self.finish(self.go_on(tree, top))
    }
}

impl<K: Criterion> PointGrower<'_, K> {
    /// Grows a tree to its end.
    fn finish(&self, mut growth: Growth<K>) -> Result<ForestTree> {
        interrupt::check()?;
        if self.codes.is_empty() {
            let grown = self.grow_mapped(vec![growth])?;
            return Ok(grown.into_iter().next().unwrap_or_default()); // as many as were asked for: one
        }
        let views: Vec<View<'_>> =
            self.codes.iter().enumerate().map(|(place, codes)| self.view(place, codes)).collect();
        let mut buffers = Buffers::new();
        let lanes = &self.ground.lanes;
        // One node at a time: its sums are all that is needed.
        while growth.take(1) {
            while growth.draw(self) {
                for node in &mut growth.at_hand {
                    views
                        .iter()
                        .for_each(|view| node.count(lanes, view, &growth.rows, &self.said, &mut buffers));
                    node.decide(&self.ground);
                }
            }
            views.iter().for_each(|view| growth.divide(self, view));
            growth.settle(self);
        }
        let (mut block, mut block_rows) = (Block::new(), BlockRows::new());
        for node in std::mem::take(&mut growth.small) {
            block_rows.clear();
            views.iter().for_each(|view| growth.load(self, view, &node, &mut block_rows));
            block.grow(&self.ground, &block_rows, &mut growth.features, &mut growth.tree, node);
        }
        Ok(growth.tree)
    }

    /// Grows trees of data that are mapped: every way through the partitions serves all of them.
    fn grow_mapped(&self, mut growths: Vec<Growth<K>>) -> Result<Vec<ForestTree>> {
        let features = growths.iter().map(|growth| LargeNode::<K>::bytes(&growth.features)).max();
        let node_bytes = features.unwrap_or(1).max(1) * growths.len().max(1);
        let at_a_time = (self.room / node_bytes).max(1);
        let lanes = &self.ground.lanes;
        while growths.iter_mut().fold(false, |any, growth| growth.take(at_a_time) | any) {
            while growths.iter_mut().fold(false, |any, growth| growth.draw(self) | any) {
                self.each_partition(|view| {
                    growths.par_iter_mut().for_each_init(Buffers::new, |buffers, growth| {
                        let Growth { at_hand, rows, .. } = growth;
                        at_hand
                            .iter_mut()
                            .for_each(|node| node.count(lanes, view, rows, &self.said, buffers));
                    });
                })?;
                growths.par_iter_mut().for_each(|growth| {
                    growth.at_hand.iter_mut().for_each(|node| node.decide(&self.ground));
                });
            }
            self.each_partition(|view| growths.par_iter_mut().for_each(|growth| growth.divide(self, view)))?;
            growths.par_iter_mut().for_each(|growth| growth.settle(self));
        }
        self.grow_blocks(&mut growths)?;
        Ok(growths.into_iter().map(|growth| growth.tree).collect())
    }

    /// Grows the subtrees of all small nodes, as many at a time as there is room for their rows.
    fn grow_blocks(&self, growths: &mut [Growth<K>]) -> Result<()> {
        let row_bytes = self.ground.lanes.row_bytes() + size_of::<K::Row>();
        let rows_each = self.room / row_bytes / growths.len().max(1);
        let mut small: Vec<VecDeque<OpenNode<K::Sums>>> =
            growths.iter_mut().map(|growth| std::mem::take(&mut growth.small).into()).collect();
        loop {
            let mut blocks: Vec<Vec<_>> = Vec::new();
            for waiting in &mut small {
                let (mut taken, mut rows) = (Vec::new(), 0);
                while let Some(node) =
                    waiting.pop_front_if(|node| rows == 0 || rows + node.rows.len() <= rows_each)
                {
                    rows += node.rows.len();
                    taken.push((node, BlockRows::new()));
                }
                blocks.push(taken);
            }
            if blocks.iter().all(Vec::is_empty) {
                return Ok(());
            }
            self.each_partition(|view| {
                growths.par_iter().zip(&mut blocks).for_each(|(growth, blocks)| {
                    blocks.iter_mut().for_each(|(node, rows)| growth.load(self, view, node, rows));
                });
            })?;
            growths.par_iter_mut().zip(blocks).for_each_init(Block::new, |block, (growth, blocks)| {
                for (node, rows) in blocks {
                    block.grow(&self.ground, &rows, &mut growth.features, &mut growth.tree, node);
                }
            });
        }
    }

    /// Goes through the partitions in their order.
    fn each_partition(&self, mut each: impl FnMut(&View<'_>)) -> Result<()> {
        for partition in 0..self.data.partitions() {
            interrupt::check()?;
            let codes = self.data.all_codes(partition)?;
            each(&self.view(partition, &codes));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
