//! Explains the values of a part that consists of trees.

use super::explainer::PartExplainer;
use super::layout::{LANES, Lanes, PointBatch, Subtree, split_by_points};
use crate::family::RowValues;
use crate::family::trees::QueryNormaliser;
use crate::model::{Model, TreeEnsemble};
use fearless_simd::{Level, dispatch};
use planetree_base::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Number of rows per block. The rows of a block are explained together, tree by tree, so that the tables of a tree
/// stay in the cache.
const BLOCK: usize = 16;

/// Trees prepared for explaining many rows.
#[derive(Debug)]
pub(super) struct TreesExplainer {
    expected: f64,
    /// The features that trees use, in ascending order, with their fill values (NaN if there is none). A *slot* is an
    /// index into this list.
    slots: Vec<(u32, f32)>,
    /// The feature whose value is added to the base score, and its fill value.
    base_feature: Option<(u32, f32)>,
    /// The weight of the part, by which the value of the base feature is multiplied.
    weight: f64,
    /// The factor by which the contributions of each tree are multiplied.
    scale: f64,
    subtrees: Vec<Subtree>,
    /// Normalises the features of a query, if they are normalised by query.
    normaliser: Option<QueryNormaliser>,
    level: Level,
}

/// Buffers that are reused from row to row.
struct ExplainBuffers {
    /// The feature values of a block's rows: row after row, with one value per slot. The fill values of the model are
    /// already applied.
    values: Vec<f32>,
    /// The contributions of a block's rows so far, in the same order as `values`, with one partial sum for each lane
    /// (each of the [`LANES`] points that are processed at a time).
    sums: Vec<Lanes>,
    /// For each node, 1 if the row follows all edges on the path to the node that belong to the same feature as the
    /// last edge; otherwise 0.
    follows: Vec<u8>,
    /// For each node, the state of the row at the edge that leads to the node. `layout.rs` defines the states.
    states: Vec<u8>,
    /// For each node, the product of the factors along its path during the pass down the tree, and the sum over the
    /// leaves below it during the pass up.
    products: Vec<Lanes>,
}

impl TreesExplainer {
    /// Prepares the trees of the part with the given number. Returns an error if the part lacks the number of training
    /// rows per node (`cover`).
    pub(super) fn new(model: &Model, part: usize, ensemble: &TreeEnsemble) -> Result<Self> {
        check_cover(model, part, ensemble)?;
        let weight = model.parts[part].weight;
        let fill = |feature: u32| model.features.get(feature as usize).and_then(|feature| feature.fill);
        let used: BTreeSet<u32> = ensemble.splits().map(|split| split.feature).collect();
        let slot_of: BTreeMap<u32, u32> = used.iter().copied().zip(0..).collect();
        let (mut subtrees, mut mean) = (Vec::new(), 0.0);
        for tree in &ensemble.trees {
            let (of_tree, mean_of_tree) = split_by_points(tree, &slot_of);
            subtrees.extend(of_tree);
            mean += mean_of_tree;
        }
        Ok(TreesExplainer {
            expected: weight * (ensemble.base_score + mean * ensemble.tree_weight()),
            slots: used.into_iter().map(|feature| (feature, fill(feature).unwrap_or(f32::NAN))).collect(),
            base_feature: ensemble.base_feature.map(|feature| (feature, fill(feature).unwrap_or(0.0))),
            weight,
            scale: weight * ensemble.tree_weight(),
            subtrees,
            normaliser: QueryNormaliser::of(ensemble, &model.features),
            level: Level::new(),
        })
    }

    /// Computes the contributions for the rows of a block. All functions that it calls are inlined, so that they are
    /// compiled once for each level of vector instructions.
    #[inline(always)]
    fn explain_block(&self, buffers: &mut ExplainBuffers, rows: usize) {
        let slots = self.slots.len();
        let ExplainBuffers { values, sums, follows, states, products } = buffers;
        for subtree in &self.subtrees {
            for row in 0..rows {
                let range = row * slots..(row + 1) * slots;
                subtree.route(&values[range.clone()], follows, states);
                for batch in &subtree.batches {
                    subtree.add(batch, states, products, &mut sums[range.clone()]);
                }
            }
        }
    }
}

impl PartExplainer for TreesExplainer {
    fn expected(&self) -> f64 {
        self.expected
    }

    fn used_features(&self) -> BTreeSet<u32> {
        let slots = self.slots.iter().map(|(feature, _)| *feature);
        slots.chain(self.base_feature.map(|(feature, _)| feature)).collect()
    }

    fn add(&self, rows: RowValues<'_>, features: usize, out: &mut [f64]) {
        let normaliser = self.normaliser.as_ref();
        let normalised =
            normaliser.map(|normaliser| normaliser.normalise(rows, &[0, out.len() / features.max(1)]));
        let rows = normalised.as_ref().map_or(rows, |normalised| normalised.rows());
        let nodes = self.subtrees.iter().map(|subtree| subtree.nodes).max().unwrap_or(0);
        let block = BLOCK.min(out.len() / features.max(1));
        let mut buffers = ExplainBuffers {
            values: vec![0.0; block * self.slots.len()],
            sums: vec![[0.0; LANES]; block * self.slots.len()],
            follows: vec![1; nodes],
            states: vec![0; nodes],
            products: vec![[0.0; LANES]; nodes],
        };
        for (block, out) in out.chunks_mut((BLOCK * features).max(1)).enumerate() {
            let (rows, count) = (rows.skip(block * BLOCK), out.len() / features);
            let mut values = [f32::NAN; BLOCK];
            for (slot, (feature, fill)) in self.slots.iter().enumerate() {
                rows.load(*feature as usize, &mut values[..count]);
                for (row, value) in values[..count].iter().enumerate() {
                    buffers.values[row * self.slots.len() + slot] =
                        if value.is_nan() { *fill } else { *value };
                }
            }
            buffers.sums.fill([0.0; LANES]);
            dispatch!(self.level, _ => self.explain_block(&mut buffers, count));
            for (row, out) in out.chunks_mut(features).enumerate() {
                let sums = &buffers.sums[row * self.slots.len()..];
                for ((feature, _), sum) in self.slots.iter().zip(sums) {
                    out[*feature as usize] += sum.iter().sum::<f64>() * self.scale;
                }
            }
            let Some((feature, fill)) = self.base_feature else { continue };
            rows.load(feature as usize, &mut values[..count]);
            for (out, value) in out.chunks_mut(features).zip(values) {
                let value = f64::from(if value.is_nan() { fill } else { value });
                out[feature as usize] += self.weight * value;
            }
        }
    }
}

/// Returns an error if a tree lacks the number of training rows per node, which contributions depend on.
fn check_cover(model: &Model, part: usize, ensemble: &TreeEnsemble) -> Result<()> {
    for (number, tree) in ensemble.trees.iter().enumerate() {
        let is_known = tree.nodes.len() == 1 || tree.nodes[0].cover > 0.0;
        if !is_known || tree.nodes.iter().any(|node| node.cover.is_nan() || node.cover < 0.0) {
            return Err(Error::usage(
                format_args!(
                    "tree {number} of {} has no row counts (`cover`), which explanations need",
                    model.part_label(part)
                ),
                "use a model with `cover`, such as one trained by planetree",
            ));
        }
    }
    Ok(())
}

impl Subtree {
    /// Determines the state of a row at every edge of the subtree.
    #[inline(always)]
    fn route(&self, values: &[f32], follows: &mut [u8], states: &mut [u8]) {
        for split in &self.splits {
            let value = values[split.slot as usize];
            let chosen = if value.is_nan() { split.missing } else { u8::from(value > split.threshold) };
            let before = follows[split.above as usize];
            let first = split.first as usize;
            for child in 0..usize::from(split.children) {
                let now = before & u8::from(split.branches[child] == chosen);
                follows[first + child] = now;
                states[first + child] = before + now;
            }
        }
    }

    /// Adds the contributions at a batch of points to `sums`. One pass down the tree computes products along the paths,
    /// and one pass up computes sums over the leaves.
    #[inline(always)]
    fn add(&self, batch: &PointBatch, states: &[u8], products: &mut [Lanes], sums: &mut [Lanes]) {
        products[0] = batch.weights;
        for split in &self.splits {
            let product = products[split.node as usize];
            let first = split.first as usize;
            for node in first..first + usize::from(split.children) {
                let factors = &batch.edges[node - 1].factors[usize::from(states[node])];
                products[node] = std::array::from_fn(|lane| product[lane] * factors[lane]);
            }
        }
        for (node, value) in &self.leaves {
            products[*node as usize].iter_mut().for_each(|product| *product *= value);
        }
        for split in self.splits.iter().rev() {
            let first = split.first as usize;
            let (mut below, mut contribution) = ([0.0; LANES], sums[split.slot as usize]);
            for node in first..first + usize::from(split.children) {
                let shares = &batch.edges[node - 1].contributions[usize::from(states[node])];
                let sum = &products[node];
                for lane in 0..LANES {
                    below[lane] += sum[lane];
                    contribution[lane] += sum[lane] * shares[lane];
                }
            }
            products[split.node as usize] = below;
            sums[split.slot as usize] = contribution;
        }
    }
}
