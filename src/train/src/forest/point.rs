//! Grows pointwise trees, whose splits depend on class counts (entropy, Gini) or moments (variance) of the labels.
//!
//! The rows of a *large* node are summed column by column over all partitions (`large.rs`). Once the rows of a node
//! fit in the cache, they are copied into a block, in which the whole subtree is grown (`block.rs`). With
//! memory-mapped data, many trees share each scan of the partitions.

use super::block::{BlockRows, ForestContext, OpenForestNode, SubtreeGrower};
use super::criterion::{Classes, Criterion, MOST_CLASSES, Purity, Variance, WeightedClasses};
use super::cut_rules::CutRules;
use super::features::{Path, TreeFeatures};
use super::grower::{GrowBelow, OpenLeaf, Top};
use super::large::{Buffers, LargeNode};
use super::view::{CodeLanes, PartitionView};
use crate::bins::{BinnedData, Codes};
use crate::config::{ForestSettings, LeafScore, PointCriterion};
use crate::driver::ForestTree;
use crate::driver::{Draw, TreeGrower};
use crate::tree::{Scale, ValueBounds, round};
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Maximum size of the codes in a block, in bytes, so that the block stays in the cache.
const BLOCK_BYTES: usize = 1 << 19;

/// Creates the grower for a pointwise criterion.
pub(super) fn grower<'a>(
    parameters: &'a ForestSettings,
    criterion: PointCriterion,
    data: &'a BinnedData,
    memory: usize,
) -> Result<Box<dyn GrowBelow + 'a>> {
    let inputs = GrowerInputs { parameters, data, memory };
    let purity = match criterion {
        PointCriterion::Variance => return variance(&inputs),
        PointCriterion::Entropy => Purity::entropy(),
        PointCriterion::Gini => Purity::Gini,
    };
    let labels = distinct_labels(data);
    if labels.len() > MOST_CLASSES {
        return Err(Error::usage(
            format_args!(
                "there are {} different labels; entropy and gini support at most {MOST_CLASSES}",
                labels.len()
            ),
            "set criterion=variance, which treats labels as numbers",
        ));
    }
    let leaf_score = parameters.learner.leaf_score;
    let class_of = |label: f32| labels.partition_point(|other| *other < label) as u8;
    let all = || data.rows.iter().flat_map(|rows| &rows.labels);
    if let Some(units) = weight_units(data) {
        let targets = all()
            .zip(weights(data))
            .map(|(label, weight)| (class_of(*label), in_units(weight, units) as u32));
        let criterion = WeightedClasses { purity, labels: table(&labels, leaf_score), weight_units: units };
        return Ok(Box::new(PointGrower::new(&inputs, criterion, targets.collect())?));
    }
    let targets: Vec<u8> = all().map(|label| class_of(*label)).collect();
    Ok(match labels.len() {
        0..=3 => Box::new(PointGrower::new(
            &inputs,
            Classes::<3> { purity, labels: table(&labels, leaf_score) },
            targets,
        )?),
        4..=5 => Box::new(PointGrower::new(
            &inputs,
            Classes::<5> { purity, labels: table(&labels, leaf_score) },
            targets,
        )?),
        6..=8 => Box::new(PointGrower::new(
            &inputs,
            Classes::<8> { purity, labels: table(&labels, leaf_score) },
            targets,
        )?),
        _ => Box::new(PointGrower::new(
            &inputs,
            Classes::<32> { purity, labels: table(&labels, leaf_score) },
            targets,
        )?),
    })
}

/// Inputs from which a grower is created.
#[derive(Clone, Copy)]
struct GrowerInputs<'a> {
    parameters: &'a ForestSettings,
    data: &'a BinnedData,
    memory: usize,
}

fn variance<'a>(inputs: &GrowerInputs<'a>) -> Result<Box<dyn GrowBelow + 'a>> {
    let data = inputs.data;
    let weight_units = weight_units(data);
    let all = || data.rows.iter().flat_map(|rows| &rows.labels).zip(weights(data));
    let most = all().fold(0.0, |most: f64, (label, weight)| most.max((f64::from(*label) * weight).abs()));
    let label_units = Scale::units(most, 31);
    let criterion = Variance { label_units, weight_units: weight_units.unwrap_or(1.0) };
    let targets = all().map(|(label, weight)| {
        let units = weight_units.map_or(1, |units| in_units(weight, units));
        (round(f64::from(*label) * weight * label_units), units)
    });
    Ok(Box::new(PointGrower::new(inputs, criterion, targets.collect())?))
}

/// Returns the labels that occur, in ascending order. Stops after 65,537 labels, which are too many classes.
fn distinct_labels(data: &BinnedData) -> Vec<f32> {
    let mut labels: Vec<f32> = Vec::new();
    for label in data.rows.iter().flat_map(|rows| &rows.labels) {
        let place = labels.partition_point(|other| other < label);
        if labels.get(place) != Some(label) {
            labels.insert(place, *label);
            if labels.len() > 1 << 16 {
                break;
            }
        }
    }
    labels
}

/// Returns the leaf score of each class.
fn table<const C: usize>(labels: &[f32], leaf_score: LeafScore) -> [f64; C] {
    std::array::from_fn(|class| labels.get(class).map_or(0.0, |label| leaf_score.of(*label)))
}

/// Returns the number of units that represent a weight of 1; `None` if rows have no weights.
fn weight_units(data: &BinnedData) -> Option<f64> {
    let weights = data.rows.iter().flat_map(|rows| rows.weights.iter().flatten());
    let heaviest = weights.copied().reduce(f32::max)?;
    Some(Scale::units(f64::from(heaviest), 31))
}

/// Returns the weight of every row, which is 1 for rows without weights.
fn weights(data: &BinnedData) -> impl Iterator<Item = f64> + '_ {
    data.rows.iter().flat_map(|rows| {
        let weights = rows.weights.as_deref();
        (0..rows.len()).map(move |row| weights.map_or(1.0, |weights| f64::from(weights[row])))
    })
}

/// Converts a weight to units. Positive weights become at least 1 unit.
fn in_units(weight: f64, units: f64) -> i32 {
    round(weight * units).max(i32::from(weight > 0.0))
}

/// Grows pointwise trees.
struct PointGrower<'a, K: Criterion> {
    parameters: &'a ForestSettings,
    data: &'a BinnedData,
    /// Memory limit for sums and copied rows, in bytes.
    memory: usize,
    context: ForestContext<'a, K>,
    /// Target of each row, indexed by row number.
    targets: Vec<K::Row>,
    /// Codes of all partitions; empty if they are memory-mapped.
    codes: Vec<Codes>,
    /// Maximum number of rows in a node that is grown in a block.
    block_rows: usize,
    /// Penalties of features, in units of the criterion's scores; `None` if all features are free.
    penalties: Option<Arc<[f64]>>,
}

impl<'a, K: Criterion> PointGrower<'a, K> {
    fn new(inputs: &GrowerInputs<'a>, criterion: K, targets: Vec<K::Row>) -> Result<Self> {
        let GrowerInputs { parameters, data, memory } = *inputs;
        let lanes = CodeLanes::of(&data.binning.layout);
        let row_bytes = lanes.row_bytes();
        let in_memory = if data.is_in_memory() { data.partitions() } else { 0 };
        Ok(PointGrower {
            parameters,
            data,
            memory,
            context: ForestContext {
                rules: CutRules::of(parameters, criterion.unit()),
                max_depth: parameters.learner.tree.max_depth.unwrap_or(u32::MAX),
                binning: &data.binning,
                lanes,
                criterion,
            },
            targets,
            codes: (0..in_memory).map(|partition| data.codes(partition, &[])).collect::<Result<_>>()?,
            block_rows: (BLOCK_BYTES / row_bytes.max(1)).clamp(256, usize::from(u16::MAX)),
            penalties: None,
        })
    }

    fn view<'b>(&'b self, partition: usize, codes: &'b Codes) -> PartitionView<'b> {
        PartitionView::of(self.data, partition, codes, &self.context.lanes)
    }

    /// Starts a tree that consists of the root.
    fn start(&self, number: u32, rows: Vec<u32>) -> PointGrowth<K> {
        let mut tree = ForestTree::default();
        let node = self.context.add_node(&mut tree, 0, &self.sums(&rows), ValueBounds::ALL);
        let root = OpenLeaf { node, path: Path::ROOT, rows: 0..rows.len() };
        self.continue_from(number, Top { tree, rows, open: vec![root] })
    }

    /// Continues a tree whose upper levels another grower has made.
    fn continue_from(&self, number: u32, top: Top) -> PointGrowth<K> {
        let mut growth = PointGrowth {
            features: TreeFeatures::draw(self.parameters, &self.data.binning.layout, number.into())
                .with_penalties(self.penalties.clone()),
            tree: top.tree,
            spare: vec![0; top.rows.len()],
            rows: top.rows,
            large: VecDeque::new(),
            small: Vec::new(),
            active: Vec::new(),
        };
        for OpenLeaf { node, path, rows } in top.open {
            let depth = growth.tree.nodes[node as usize].depth;
            let sums = self.sums(&growth.rows[rows.clone()]);
            growth.place(self, OpenForestNode { node, path, depth, sums, rows, bounds: ValueBounds::ALL });
        }
        growth
    }

    fn sums(&self, rows: &[u32]) -> K::Sums {
        let mut sums = K::Sums::default();
        rows.iter().for_each(|row| K::add(&mut sums, self.targets[*row as usize]));
        sums
    }
}

/// A tree that is being grown.
struct PointGrowth<K: Criterion> {
    features: TreeFeatures,
    tree: ForestTree,
    rows: Vec<u32>,
    spare: Vec<u32>,
    /// Large nodes that wait to be split, in the order of their indices.
    large: VecDeque<OpenForestNode<K::Sums>>,
    /// Nodes whose subtrees will be grown in a block.
    small: Vec<OpenForestNode<K::Sums>>,
    /// Large nodes that are being split.
    active: Vec<LargeNode<K>>,
}

impl<K: Criterion> PointGrowth<K> {
    /// Adds a node to the large or small nodes, unless it is a leaf.
    fn place(&mut self, grower: &PointGrower<'_, K>, node: OpenForestNode<K::Sums>) {
        if !grower.context.may_split(&node) {
            return;
        }
        if node.rows.len() <= grower.block_rows {
            self.small.push(node);
            return;
        }
        let rows = &self.rows[node.rows.clone()];
        let first = grower.targets[rows[0] as usize];
        if !rows.iter().all(|row| K::agree(grower.targets[*row as usize], first)) {
            self.large.push_back(node);
        }
    }

    /// Makes up to `nodes` large nodes active. Returns false if there are no active nodes.
    fn take(&mut self, nodes: usize) -> bool {
        let nodes = nodes.min(self.large.len());
        self.active.extend(self.large.drain(..nodes).map(LargeNode::new));
        !self.active.is_empty()
    }

    /// Samples the features of the next scan. Returns false if no node needs a scan. `room` is the memory limit for
    /// lists of rows, in bytes.
    fn draw(&mut self, grower: &PointGrower<'_, K>, room: usize) -> bool {
        let PointGrowth { active, features, .. } = self;
        let room = room / active.len().max(1);
        active.iter_mut().fold(false, |any, node| node.draw(&grower.context, features, room) | any)
    }

    /// Moves the rows of a partition to the children of their nodes.
    fn divide(&mut self, grower: &PointGrower<'_, K>, view: &PartitionView<'_>) {
        let PointGrowth { active, rows, spare, .. } = self;
        active.iter_mut().for_each(|node| node.divide(&grower.context, view, rows, spare));
    }

    /// Copies those rows of a node that are in a partition to a block.
    fn load(
        &self,
        grower: &PointGrower<'_, K>,
        view: &PartitionView<'_>,
        node: &OpenForestNode<K::Sums>,
        to: &mut BlockRows<K>,
    ) {
        let rows = &self.rows[node.rows.clone()];
        to.load(&grower.context.lanes, view, &rows[view.part(rows)], &grower.targets);
    }

    /// Applies the chosen splits after all rows were moved.
    fn settle(&mut self, grower: &PointGrower<'_, K>) {
        for node in std::mem::take(&mut self.active) {
            let children = node.settle(&grower.context, &mut self.tree, &mut self.rows, &self.spare);
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

    fn set_penalties(&mut self, penalties: Arc<[f64]>) -> Result<()> {
        let unit = self.context.criterion.unit();
        self.penalties = Some(penalties.iter().map(|penalty| penalty / unit).collect());
        self.context.rules.priced = true;
        Ok(())
    }

    fn grow_batch(&self, trees: Range<u32>, draw: &Draw<'_>) -> Result<Vec<ForestTree>> {
        let trees = trees.into_par_iter().with_max_len(1);
        if self.codes.is_empty() {
            return self.grow_mapped(trees.map(|tree| self.start(tree, draw(tree))).collect());
        }
        trees.map(|tree| self.grow(tree, draw(tree))).collect()
    }
}

impl<K: Criterion> GrowBelow for PointGrower<'_, K> {
    fn grow_below(&self, tree: u32, top: Top) -> Result<ForestTree> {
        self.finish(self.continue_from(tree, top))
    }
}

impl<K: Criterion> PointGrower<'_, K> {
    /// Grows a tree to completion.
    fn finish(&self, mut growth: PointGrowth<K>) -> Result<ForestTree> {
        interrupt::check()?;
        if self.codes.is_empty() {
            let grown = self.grow_mapped(vec![growth])?;
            return Ok(grown.into_iter().next().unwrap_or_default()); // the batch has one tree
        }
        let views: Vec<PartitionView<'_>> =
            self.codes.iter().enumerate().map(|(place, codes)| self.view(place, codes)).collect();
        let mut buffers = Buffers::new();
        let lanes = &self.context.lanes;
        // One node is split at a time, to limit the memory for sums.
        while growth.take(1) {
            while growth.draw(self, self.memory / rayon::current_num_threads()) {
                for node in &mut growth.active {
                    views
                        .iter()
                        .for_each(|view| node.count(lanes, view, &growth.rows, &self.targets, &mut buffers));
                    node.decide(&self.context);
                }
            }
            views.iter().for_each(|view| growth.divide(self, view));
            growth.settle(self);
        }
        let (mut block, mut block_rows) = (SubtreeGrower::new(), BlockRows::new());
        for node in std::mem::take(&mut growth.small) {
            block_rows.clear();
            views.iter().for_each(|view| growth.load(self, view, &node, &mut block_rows));
            block.grow(&self.context, &block_rows, &mut growth.features, &mut growth.tree, node);
        }
        Ok(growth.tree)
    }

    /// Grows trees on memory-mapped data. All trees share each scan of the partitions.
    fn grow_mapped(&self, mut growths: Vec<PointGrowth<K>>) -> Result<Vec<ForestTree>> {
        let features = growths.iter().map(|growth| LargeNode::<K>::bytes(&growth.features)).max();
        let node_bytes = features.unwrap_or(1).max(1) * growths.len().max(1);
        let at_a_time = (self.memory / node_bytes).max(1);
        let lanes = &self.context.lanes;
        while growths.iter_mut().fold(false, |any, growth| growth.take(at_a_time) | any) {
            let room = self.memory / growths.len().max(1);
            while growths.iter_mut().fold(false, |any, growth| growth.draw(self, room) | any) {
                self.each_partition(|view| {
                    growths.par_iter_mut().for_each_init(Buffers::new, |buffers, growth| {
                        let PointGrowth { active, rows, .. } = growth;
                        active
                            .iter_mut()
                            .for_each(|node| node.count(lanes, view, rows, &self.targets, buffers));
                    });
                })?;
                growths.par_iter_mut().for_each(|growth| {
                    growth.active.iter_mut().for_each(|node| node.decide(&self.context));
                });
            }
            self.each_partition(|view| growths.par_iter_mut().for_each(|growth| growth.divide(self, view)))?;
            growths.par_iter_mut().for_each(|growth| growth.settle(self));
        }
        self.grow_blocks(&mut growths)?;
        Ok(growths.into_iter().map(|growth| growth.tree).collect())
    }

    /// Grows the subtrees of all small nodes, in batches that fit in the memory limit.
    fn grow_blocks(&self, growths: &mut [PointGrowth<K>]) -> Result<()> {
        let row_bytes = self.context.lanes.row_bytes() + size_of::<K::Row>();
        let rows_each = self.memory / row_bytes / growths.len().max(1);
        let mut small: Vec<VecDeque<OpenForestNode<K::Sums>>> =
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
            growths.par_iter_mut().zip(blocks).for_each_init(
                SubtreeGrower::new,
                |block, (growth, blocks)| {
                    for (node, rows) in blocks {
                        block.grow(&self.context, &rows, &mut growth.features, &mut growth.tree, node);
                    }
                },
            );
        }
    }

    /// Visits all partitions in order.
    fn each_partition(&self, mut each: impl FnMut(&PartitionView<'_>)) -> Result<()> {
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
