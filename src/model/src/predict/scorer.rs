//! Scores rows. A score is, to the bit, the sum of the trees' values in order: training rebuilds its state from a model
//! this way.

use super::dense::{DenseTree, DenseTrees, MAX_LEAVES, Registers};
use super::layout::{FlatNode, flatten};
use super::planes::{BLOCK, Plane, Planes};
use super::walk::{WalkTree, WalkTrees};
use crate::model::{Ensemble, Model};
use arrow::array::{Array, Float32Array};
use fearless_simd::{Level, dispatch};

/// A model prepared for scoring many rows.
#[derive(Debug)]
pub struct Scorer {
    ensemble: Ensemble,
    base_score: f64,
    /// The feature whose value is added to the base score, and its fill value.
    base_feature: Option<(u32, f32)>,
    /// Number of features of the model, used or not.
    features: usize,
    planes: Planes,
    trees: Vec<PreparedTree>,
    dense: DenseTrees,
    walk: WalkTrees,
    /// The vector instructions to use.
    level: Level,
}

/// A tree in the storage of the kernel that evaluates it.
#[derive(Debug)]
enum PreparedTree {
    Dense(DenseTree),
    Walk(WalkTree),
}

/// Buffers that are reused from block to block.
struct ScoreBuffers {
    /// The planes of the blocks that are scored together, block by block.
    planes: Vec<Plane>,
    bases: Vec<[f64; BLOCK]>,
    sums: Vec<[f64; BLOCK]>,
    registers: Registers,
}

/// Blocks that are scored together if there are large trees: a tree is fetched from memory once for all of them.
const BLOCKS_PER_BATCH: usize = 32;

impl Scorer {
    /// Prepares a model. Its trees must be valid, as those of a trained or read model always are: children come after
    /// their parents, and no threshold is NaN.
    pub fn new(model: &Model) -> Self {
        Self::for_level(model, Level::new())
    }

    /// Prepares a model for given vector instructions.
    pub(super) fn for_level(model: &Model, level: Level) -> Self {
        let mut planes = Planes::of(model);
        let (mut dense, mut walk) = (DenseTrees::new(), WalkTrees::default());
        let prepare = |tree| {
            let nodes = flatten(tree, &mut planes);
            let leaves = nodes.iter().filter(|node| matches!(node, FlatNode::Leaf(_))).count();
            if leaves <= MAX_LEAVES {
                PreparedTree::Dense(dense.add(&nodes))
            } else {
                PreparedTree::Walk(walk.add(&nodes))
            }
        };
        let trees = model.trees.iter().map(prepare).collect();
        Scorer {
            ensemble: model.ensemble,
            base_score: model.base_score,
            base_feature: model.base_feature.map(|feature| {
                (feature, model.features.get(feature as usize).and_then(|it| it.fill).unwrap_or(0.0))
            }),
            features: model.features.len(),
            planes,
            trees,
            dense,
            walk,
            level,
        }
    }

    /// The features that scores depend on, in ascending order. Other features are not read.
    pub fn used_features(&self) -> impl Iterator<Item = u32> {
        let mut used: Vec<u32> = self.planes.features().collect();
        if let Some((feature, _)) = self.base_feature
            && let Err(index) = used.binary_search(&feature)
        {
            used.insert(index, feature);
        }
        used.into_iter()
    }

    /// Scores rows in row-major order, each with a value for every feature of the model. Missing values are NaN;
    /// the model's fill values are applied. Values beyond the end of `rows` count as missing.
    pub fn score(&self, rows: &[f32], scores: &mut [f64]) {
        self.score_blocks(scores, |first, count, feature, values| {
            for (row, value) in values[..count].iter_mut().enumerate() {
                let index = (first + row) * self.features + feature as usize;
                *value = rows.get(index).copied().unwrap_or(f32::NAN);
            }
        });
    }

    /// Scores rows given as columns, one for every feature of the model. Missing values are null or NaN; the model's
    /// fill values are applied. A feature without a column is missing, and so are values beyond the end of a column.
    pub fn score_columns(&self, columns: &[Option<&Float32Array>], scores: &mut [f64]) {
        self.score_blocks(scores, |first, count, feature, values| {
            match columns.get(feature as usize).copied().flatten() {
                Some(column) if first + count <= column.len() => {
                    load_values(column, first, &mut values[..count])
                }
                _ => values.fill(f32::NAN),
            }
        });
    }

    /// Scores block by block. `load(first, count, feature, values)` writes the values of a feature for `count` rows
    /// from row `first` on.
    fn score_blocks(&self, scores: &mut [f64], mut load: impl FnMut(usize, usize, u32, &mut [f32; BLOCK])) {
        let batch_blocks = if self.walk.is_empty() { 1 } else { BLOCKS_PER_BATCH };
        let blocks = batch_blocks.min(scores.len().div_ceil(BLOCK));
        let mut buffers = ScoreBuffers {
            planes: vec![[0; BLOCK]; blocks * self.planes.count()],
            bases: vec![[0.0; BLOCK]; blocks],
            sums: vec![[0.0; BLOCK]; blocks],
            registers: Registers::new(),
        };
        for (batch, scores) in scores.chunks_mut(batch_blocks * BLOCK).enumerate() {
            let first = batch * batch_blocks * BLOCK;
            let rows = scores.len();
            let load = |block: usize, feature, values: &mut [f32; BLOCK]| {
                load(first + block * BLOCK, (rows - block * BLOCK).min(BLOCK), feature, values);
            };
            let blocks = rows.div_ceil(BLOCK);
            dispatch!(self.level, _ => self.score_batch(&mut buffers, blocks, load));
            for (scores, sums) in scores.chunks_mut(BLOCK).zip(&buffers.sums) {
                scores.copy_from_slice(&sums[..scores.len()]);
            }
        }
    }

    /// Scores a batch of blocks. All functions that it calls are inlined, so that they are compiled once for each
    /// level of vector instructions.
    #[inline(always)]
    fn score_batch(
        &self,
        buffers: &mut ScoreBuffers,
        blocks: usize,
        mut load: impl FnMut(usize, u32, &mut [f32; BLOCK]),
    ) {
        let ScoreBuffers { planes, bases, sums, registers } = buffers;
        let count = self.planes.count();
        for block in 0..blocks {
            let mut base = [self.base_score; BLOCK];
            if let Some((feature, fill)) = self.base_feature {
                let mut values = [0.0; BLOCK];
                load(block, feature, &mut values);
                for (base, value) in base.iter_mut().zip(values) {
                    *base += f64::from(if value.is_nan() { fill } else { value });
                }
            }
            let planes = &mut planes[block * count..][..count];
            self.planes.code(planes, |feature, values| load(block, feature, values));
            bases[block] = base;
            sums[block] = if self.ensemble == Ensemble::Boost { base } else { [0.0; BLOCK] };
        }
        for tree in &self.trees {
            for block in 0..blocks {
                let (planes, sums) = (&planes[block * count..][..count], &mut sums[block]);
                match tree {
                    PreparedTree::Dense(tree) => self.dense.add_values(tree, planes, registers, sums),
                    PreparedTree::Walk(tree) => self.walk.add_values(tree, planes, sums),
                }
            }
        }
        if self.ensemble != Ensemble::Boost {
            let trees = self.trees.len().max(1) as f64;
            for (sums, base) in sums.iter_mut().zip(bases) {
                sums.iter_mut().zip(base).for_each(|(sum, base)| *sum = *base + *sum / trees);
            }
        }
    }
}

/// Copies values of a column, from row `first` on, with NaN in place of nulls.
pub(crate) fn load_values(column: &Float32Array, first: usize, values: &mut [f32]) {
    values.copy_from_slice(&column.values()[first..first + values.len()]);
    let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) else { return };
    let present = nulls.inner().slice(first, values.len());
    for (values, present) in values.chunks_mut(64).zip(present.bit_chunks().iter_padded()) {
        for (row, value) in values.iter_mut().enumerate() {
            *value = if (present >> row) & 1 == 1 { *value } else { f32::NAN };
        }
    }
}
