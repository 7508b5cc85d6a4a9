//! The contributions of rows.

use super::layout::{LANES, Lanes, Part, Pass, lay_out};
use crate::model::Model;
use crate::predict::load_values;
use arrow::array::Float32Array;
use fearless_simd::{Level, dispatch};
use planetree_base::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Rows that are explained together, tree after tree, so that a tree's tables stay at hand.
const BLOCK: usize = 16;

/// A model made ready to explain many rows.
#[derive(Debug)]
pub struct Explainer {
    /// Features of the model, used or not.
    features: usize,
    expected: f64,
    /// The features that trees ask for, in ascending order, and what stands for a missing value.
    slots: Vec<(u32, f32)>,
    /// The feature whose value is added to the score, and what stands for a missing one.
    base_feature: Option<(u32, f32)>,
    /// What a tree's contributions are multiplied by.
    scale: f64,
    parts: Vec<Part>,
    level: Level,
}

/// What is reused from row to row.
struct Workspace {
    /// The values of a block's rows, slot after slot; missing ones filled where the model says so.
    values: Vec<f32>,
    /// The contributions of a block's rows so far, a number a point.
    sums: Vec<Lanes>,
    /// Whether the row follows all edges of a feature down to a place.
    follows: Vec<u8>,
    /// The row's state at the edge to a place.
    states: Vec<u8>,
    /// The product down to a place, and then the sum of the leaves below it.
    products: Vec<Lanes>,
}

impl Explainer {
    /// Prepares a model. It fails if the model does not say how many rows reached its nodes.
    pub fn new(model: &Model) -> Result<Self> {
        model.check_single_rows("there is nothing to explain")?;
        for (place, tree) in model.trees.iter().enumerate() {
            let is_known = tree.nodes.len() == 1 || tree.nodes[0].cover > 0.0;
            if !is_known || tree.nodes.iter().any(|node| node.cover.is_nan() || node.cover < 0.0) {
                return Err(Error::usage(
                    format_args!("tree {place} of the model does not say how many rows reached its nodes"),
                    "explain a model whose `cover` is known, such as one that planetree has trained",
                ));
            }
        }
        let fill = |feature: u32| model.features.get(feature as usize).and_then(|feature| feature.fill);
        let splits = model.trees.iter().flat_map(|tree| &tree.nodes).filter_map(|node| node.split.as_ref());
        let used: BTreeSet<u32> = splits.map(|split| split.feature).collect();
        let slot_of: BTreeMap<u32, u32> = used.iter().copied().zip(0..).collect();
        let scale = model.tree_weight();
        let mut parts = Vec::new();
        let mut expected = 0.0;
        for tree in &model.trees {
            let (of_tree, mean) = lay_out(tree, &slot_of);
            parts.extend(of_tree);
            expected += mean;
        }
        Ok(Explainer {
            features: model.features.len(),
            expected: model.base_score + expected * scale,
            slots: used.into_iter().map(|feature| (feature, fill(feature).unwrap_or(f32::NAN))).collect(),
            base_feature: model.base_feature.map(|feature| (feature, fill(feature).unwrap_or(0.0))),
            scale,
            parts,
            level: Level::new(),
        })
    }

    /// The score of a row of which nothing is known: the mean score of the training rows. The value of a
    /// feature that scores start from is not in it.
    pub fn expected_value(&self) -> f64 {
        self.expected
    }

    /// How many features the model has, and so how many contributions a row has.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The features that contributions depend on, in ascending order; all others contribute 0.
    pub fn used_features(&self) -> impl Iterator<Item = u32> {
        let slots = self.slots.iter().map(|(feature, _)| *feature);
        slots.chain(self.base_feature.map(|(feature, _)| feature)).collect::<BTreeSet<u32>>().into_iter()
    }

    /// The contributions of one row, which has a value for every feature of the model; a missing value is
    /// NaN, and so are those beyond the row's end. `out` has a place for every feature. With the expected
    /// value they add up to the score. Many rows are best explained by [`Explainer::explain_rows`].
    pub fn contributions(&self, row: &[f32], out: &mut [f64]) {
        self.explain_blocks(1, out, |_, _, feature, values| {
            values.fill(row.get(feature as usize).copied().unwrap_or(f32::NAN));
        });
    }

    /// The contributions of rows given one after another, all features of the model each.
    pub fn explain_rows(&self, rows: &[f32], out: &mut [f64]) {
        let width = self.features.max(1);
        self.explain_blocks(rows.len() / width, out, |first, count, feature, values| {
            for (row, value) in values[..count].iter_mut().enumerate() {
                *value = rows[(first + row) * width + feature as usize];
            }
        });
    }

    /// The contributions of some rows of columns, one for every feature of the model, row after row. A
    /// missing value is null or NaN, and so are all values of a feature without a column.
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

    /// Explains block after block. `load` is asked for the values of a feature: it is told the block's
    /// first row and how many there are.
    fn explain_blocks(
        &self,
        rows: usize,
        out: &mut [f64],
        mut load: impl FnMut(usize, usize, u32, &mut [f32; BLOCK]),
    ) {
        let places = self.parts.iter().map(|part| part.places).max().unwrap_or(0);
        let block = BLOCK.min(rows);
        let mut work = Workspace {
            values: vec![0.0; block * self.slots.len()],
            sums: vec![[0.0; LANES]; block * self.slots.len()],
            follows: vec![1; places],
            states: vec![0; places],
            products: vec![[0.0; LANES]; places],
        };
        let out = &mut out[..rows * self.features];
        for (block, out) in out.chunks_mut((BLOCK * self.features).max(1)).enumerate() {
            let (first, count) = (block * BLOCK, out.len() / self.features);
            let mut values = [f32::NAN; BLOCK];
            for (slot, (feature, fill)) in self.slots.iter().enumerate() {
                load(first, count, *feature, &mut values);
                for (row, value) in values[..count].iter().enumerate() {
                    work.values[row * self.slots.len() + slot] = if value.is_nan() { *fill } else { *value };
                }
            }
            work.sums.fill([0.0; LANES]);
            dispatch!(self.level, _ => self.explain_block(&mut work, count));
            out.fill(0.0);
            for (row, out) in out.chunks_mut(self.features).enumerate() {
                let sums = &work.sums[row * self.slots.len()..];
                for ((feature, _), sum) in self.slots.iter().zip(sums) {
                    out[*feature as usize] = sum.iter().sum::<f64>() * self.scale;
                }
            }
            if let Some((feature, fill)) = self.base_feature {
                load(first, count, feature, &mut values);
                for (out, value) in out.chunks_mut(self.features).zip(values) {
                    out[feature as usize] += f64::from(if value.is_nan() { fill } else { value });
                }
            }
        }
    }

    /// Explains one block. Everything below is inlined here, so that it is compiled for each kind of
    /// machine.
    #[inline(always)]
    fn explain_block(&self, work: &mut Workspace, rows: usize) {
        let slots = self.slots.len();
        let Workspace { values, sums, follows, states, products } = work;
        for part in &self.parts {
            for row in 0..rows {
                let range = row * slots..(row + 1) * slots;
                part.route(&values[range.clone()], follows, states);
                for pass in &part.passes {
                    part.add(pass, states, products, &mut sums[range.clone()]);
                }
            }
        }
    }
}

impl Part {
    /// Finds the row's state at every edge.
    #[inline(always)]
    fn route(&self, values: &[f32], follows: &mut [u8], states: &mut [u8]) {
        for fork in &self.forks {
            let value = values[fork.slot as usize];
            // A value that is no number is not above the threshold, nor at most it.
            let chosen = if value.is_nan() { fork.missing } else { u8::from(value > fork.threshold) };
            let before = follows[fork.above as usize];
            let first = fork.first as usize;
            for child in 0..usize::from(fork.children) {
                let now = before & u8::from(fork.branches[child] == chosen);
                follows[first + child] = now;
                states[first + child] = before + now;
            }
        }
    }

    /// Adds what the features are due at some points: down the tree products, up the tree sums.
    #[inline(always)]
    fn add(&self, pass: &Pass, states: &[u8], products: &mut [Lanes], sums: &mut [Lanes]) {
        products[0] = pass.weights;
        for fork in &self.forks {
            let product = products[fork.place as usize];
            let first = fork.first as usize;
            for place in first..first + usize::from(fork.children) {
                let factors = &pass.edges[place - 1].factors[usize::from(states[place])];
                products[place] = std::array::from_fn(|lane| product[lane] * factors[lane]);
            }
        }
        for (place, value) in &self.leaves {
            products[*place as usize].iter_mut().for_each(|product| *product *= value);
        }
        for fork in self.forks.iter().rev() {
            let first = fork.first as usize;
            let (mut below, mut due) = ([0.0; LANES], sums[fork.slot as usize]);
            for place in first..first + usize::from(fork.children) {
                let dues = &pass.edges[place - 1].dues[usize::from(states[place])];
                let sum = &products[place];
                for lane in 0..LANES {
                    below[lane] += sum[lane];
                    due[lane] += sum[lane] * dues[lane];
                }
            }
            products[fork.place as usize] = below;
            sums[fork.slot as usize] = due;
        }
    }
}
