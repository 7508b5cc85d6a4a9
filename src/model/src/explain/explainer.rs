//! Computes the contributions of the features to the scores of rows.

use super::layout::{LANES, Lanes, PointBatch, Subtree, split_by_points};
use crate::family::load_values;
use crate::model::{Model, TreeEnsemble};
use arrow::array::Float32Array;
use fearless_simd::{Level, dispatch};
use planetree_base::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Number of rows per block. The rows of a block are explained together, tree by tree, so that the tables of a tree
/// stay in the cache.
const BLOCK: usize = 16;

/// A model prepared for explaining many rows.
#[derive(Debug)]
pub struct Explainer {
    /// Number of features of the model, including those that no tree uses.
    features: usize,
    expected: f64,
    /// The features that trees use, in ascending order, with their fill values (NaN if there is none). A *slot* is an
    /// index into this list.
    slots: Vec<(u32, f32)>,
    parts: Vec<ExplainedPart>,
    level: Level,
}

/// A part of the model, prepared for explaining. The score is a sum over the parts, so the contributions to the parts
/// are added up.
#[derive(Debug)]
struct ExplainedPart {
    /// The feature whose value is added to the base score, and its fill value.
    base_feature: Option<(u32, f32)>,
    /// The weight of the part, by which the value of the base feature is multiplied.
    weight: f64,
    /// The factor by which the contributions of each tree are multiplied.
    scale: f64,
    subtrees: Vec<Subtree>,
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

impl Explainer {
    /// Prepares a model. Returns an error if a part is not a sum or mean of trees, is normalised, or lacks the number
    /// of training rows per node (`cover`).
    pub fn new(model: &Model) -> Result<Self> {
        model.check_single_rows("cannot explain scores")?;
        let mut ensembles = Vec::with_capacity(model.parts.len());
        for (number, part) in model.parts.iter().enumerate() {
            let ensemble = part.family.trees().ok_or_else(|| {
                Error::usage(
                    format_args!(
                        "cannot explain scores: {} has no trees (its kind is {})",
                        model.part_label(number),
                        part.family.kind()
                    ),
                    "explain a model that consists of trees only",
                )
            })?;
            check_cover(model, number, ensemble)?;
            ensembles.push((part.weight, ensemble));
        }
        let fill = |feature: u32| model.features.get(feature as usize).and_then(|feature| feature.fill);
        let splits = ensembles.iter().flat_map(|(_, ensemble)| ensemble.splits());
        let used: BTreeSet<u32> = splits.map(|split| split.feature).collect();
        let slot_of: BTreeMap<u32, u32> = used.iter().copied().zip(0..).collect();
        let mut expected = model.intercept;
        let mut parts = Vec::with_capacity(ensembles.len());
        for (weight, ensemble) in ensembles {
            let (mut subtrees, mut mean) = (Vec::new(), 0.0);
            for tree in &ensemble.trees {
                let (of_tree, mean_of_tree) = split_by_points(tree, &slot_of);
                subtrees.extend(of_tree);
                mean += mean_of_tree;
            }
            expected += weight * (ensemble.base_score + mean * ensemble.tree_weight());
            parts.push(ExplainedPart {
                base_feature: ensemble.base_feature.map(|feature| (feature, fill(feature).unwrap_or(0.0))),
                weight,
                scale: weight * ensemble.tree_weight(),
                subtrees,
            });
        }
        Ok(Explainer {
            features: model.features.len(),
            expected,
            slots: used.into_iter().map(|feature| (feature, fill(feature).unwrap_or(f32::NAN))).collect(),
            parts,
            level: Level::new(),
        })
    }

    /// Returns the expected score of a row whose features are all unknown. In place of each tree's prediction, it has
    /// the mean of the tree's leaf values, weighted by `cover`. The value of `base_feature` is not included.
    pub fn expected_value(&self) -> f64 {
        self.expected
    }

    /// Returns the number of features of the model, which is also the number of contributions per row.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Returns the indices of the features that contributions depend on, in ascending order. Other features contribute
    /// 0.
    pub fn used_features(&self) -> impl Iterator<Item = u32> {
        let slots = self.slots.iter().map(|(feature, _)| *feature);
        let bases = self.parts.iter().filter_map(|part| part.base_feature).map(|(feature, _)| feature);
        slots.chain(bases).collect::<BTreeSet<u32>>().into_iter()
    }

    /// Computes the contributions of one row, which has a value for every feature of the model. Missing values are
    /// NaN; values beyond the end of `row` count as missing. `out` has one element per feature. The contributions and
    /// the expected value add up to the score. For many rows, [`Explainer::explain_rows`] is faster.
    pub fn contributions(&self, row: &[f32], out: &mut [f64]) {
        self.explain_blocks(1, out, |_, _, feature, values| {
            values.fill(row.get(feature as usize).copied().unwrap_or(f32::NAN));
        });
    }

    /// Computes the contributions of several rows. Both `rows` and `out` are in row-major order, with one number per
    /// feature of the model.
    pub fn explain_rows(&self, rows: &[f32], out: &mut [f64]) {
        let width = self.features.max(1);
        self.explain_blocks(rows.len() / width, out, |first, count, feature, values| {
            for (row, value) in values[..count].iter_mut().enumerate() {
                *value = rows[(first + row) * width + feature as usize];
            }
        });
    }

    /// Computes the contributions of a range of rows. `columns` has one entry per feature of the model. Nulls, NaN and
    /// all values of a feature without a column count as missing. `out` is in row-major order.
    pub fn explain_columns(&self, columns: &[Option<&Float32Array>], rows: Range<usize>, out: &mut [f64]) {
        self.explain_blocks(rows.len(), out, |first, count, feature, values| {
            let first = rows.start + first;
            match columns.get(feature as usize).copied().flatten() {
                Some(column) if first + count <= column.len() => {
                    load_values(column, first, &mut values[..count]);
                }
                _ => values.fill(f32::NAN),
            }
        });
    }

    /// Explains rows block by block. `load(first, count, feature, values)` writes the values of a feature to `values`,
    /// for `count` rows starting with row `first`.
    fn explain_blocks(
        &self,
        rows: usize,
        out: &mut [f64],
        mut load: impl FnMut(usize, usize, u32, &mut [f32; BLOCK]),
    ) {
        let subtrees = self.parts.iter().flat_map(|part| &part.subtrees);
        let nodes = subtrees.map(|subtree| subtree.nodes).max().unwrap_or(0);
        let block = BLOCK.min(rows);
        let mut buffers = ExplainBuffers {
            values: vec![0.0; block * self.slots.len()],
            sums: vec![[0.0; LANES]; block * self.slots.len()],
            follows: vec![1; nodes],
            states: vec![0; nodes],
            products: vec![[0.0; LANES]; nodes],
        };
        let out = &mut out[..rows * self.features];
        for (block, out) in out.chunks_mut((BLOCK * self.features).max(1)).enumerate() {
            let (first, count) = (block * BLOCK, out.len() / self.features);
            let mut values = [f32::NAN; BLOCK];
            for (slot, (feature, fill)) in self.slots.iter().enumerate() {
                load(first, count, *feature, &mut values);
                for (row, value) in values[..count].iter().enumerate() {
                    buffers.values[row * self.slots.len() + slot] =
                        if value.is_nan() { *fill } else { *value };
                }
            }
            out.fill(0.0);
            for part in &self.parts {
                buffers.sums.fill([0.0; LANES]);
                dispatch!(self.level, _ => self.explain_block(part, &mut buffers, count));
                for (row, out) in out.chunks_mut(self.features).enumerate() {
                    let sums = &buffers.sums[row * self.slots.len()..];
                    for ((feature, _), sum) in self.slots.iter().zip(sums) {
                        out[*feature as usize] += sum.iter().sum::<f64>() * part.scale;
                    }
                }
            }
            for part in &self.parts {
                let Some((feature, fill)) = part.base_feature else { continue };
                load(first, count, feature, &mut values);
                for (out, value) in out.chunks_mut(self.features).zip(values) {
                    let value = f64::from(if value.is_nan() { fill } else { value });
                    out[feature as usize] += part.weight * value;
                }
            }
        }
    }

    /// Computes the contributions to one part of the model for the rows of a block. All functions that it calls are
    /// inlined, so that they are compiled once for each level of vector instructions.
    #[inline(always)]
    fn explain_block(&self, part: &ExplainedPart, buffers: &mut ExplainBuffers, rows: usize) {
        let slots = self.slots.len();
        let ExplainBuffers { values, sums, follows, states, products } = buffers;
        for subtree in &part.subtrees {
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
