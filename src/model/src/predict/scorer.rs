//! The scores of rows. A row's score is, to the bit, what adding up the trees' values one after another
//! gives: training rebuilds its state from a model this way.

use super::dense::{DenseTree, DenseTrees, MOST_LEAVES, Registers};
use super::layout::{Place, lay_out};
use super::planes::{BLOCK, Plane, Planes};
use super::walk::{WalkTree, WalkTrees};
use crate::model::{Ensemble, Model};
use arrow::array::{Array, Float32Array};
use fearless_simd::{Level, dispatch};

/// A model made ready to score many rows.
#[derive(Debug)]
pub struct Scorer {
    ensemble: Ensemble,
    base_score: f64,
    /// The feature whose value is added to it, and what stands for a missing one.
    base_feature: Option<(u32, f32)>,
    /// Features of the model, used or not.
    features: usize,
    planes: Planes,
    trees: Vec<Form>,
    dense: DenseTrees,
    walk: WalkTrees,
    /// What the machine's vector instructions can do.
    level: Level,
}

/// How a tree is evaluated.
#[derive(Debug)]
enum Form {
    Dense(DenseTree),
    Walk(WalkTree),
}

/// What is reused from block to block.
struct Workspace {
    /// The planes of each block that is scored together with others, one block's after another's.
    planes: Vec<Plane>,
    bases: Vec<[f64; BLOCK]>,
    sums: Vec<[f64; BLOCK]>,
    registers: Registers,
}

/// Blocks that go through a large tree together: it is fetched once for all of them.
const BLOCKS_TOGETHER: usize = 32;

impl Scorer {
    /// Prepares a model. Its trees must be well formed, as those of a model that was read or trained are:
    /// children after their parents, thresholds that are numbers.
    pub fn new(model: &Model) -> Self {
        Self::for_level(model, Level::new())
    }

    /// Prepares a model for some of the machine's vector instructions.
    pub(super) fn for_level(model: &Model, level: Level) -> Self {
        let mut planes = Planes::of(model);
        let (mut dense, mut walk) = (DenseTrees::new(), WalkTrees::default());
        let form = |tree| {
            let places = lay_out(tree, &mut planes);
            let leaves = places.iter().filter(|place| matches!(place, Place::Leaf(_))).count();
            if leaves <= MOST_LEAVES {
                Form::Dense(dense.add(&places))
            } else {
                Form::Walk(walk.add(&places))
            }
        };
        let trees = model.trees.iter().map(form).collect();
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

    /// The features that scores depend on, in ascending order; no others are read.
    pub fn used_features(&self) -> impl Iterator<Item = u32> {
        let mut used: Vec<u32> = self.planes.features().collect();
        if let Some((feature, _)) = self.base_feature
            && let Err(place) = used.binary_search(&feature)
        {
            used.insert(place, feature);
        }
        used.into_iter()
    }

    /// Scores rows given one after another, all features of the model each. A missing value is NaN; the
    /// model's own fills are applied here. Values beyond the end of `rows` are missing.
    pub fn score(&self, rows: &[f32], scores: &mut [f64]) {
        self.score_blocks(scores, |first, count, feature, values| {
            for (row, value) in values[..count].iter_mut().enumerate() {
                let place = (first + row) * self.features + feature as usize;
                *value = rows.get(place).copied().unwrap_or(f32::NAN);
            }
        });
    }

    /// Scores the rows of some columns, one for every feature of the model. A missing value is null or
    /// NaN, and so are all values of a feature without a column or beyond its end; the model's own fills
    /// are applied here.
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

    /// Scores block after block. `load` is asked for the values of a feature: it is told the block's
    /// first row and how many there are.
    fn score_blocks(&self, scores: &mut [f64], mut load: impl FnMut(usize, usize, u32, &mut [f32; BLOCK])) {
        let together = if self.walk.is_empty() { 1 } else { BLOCKS_TOGETHER };
        let blocks = together.min(scores.len().div_ceil(BLOCK));
        let mut work = Workspace {
            planes: vec![[0; BLOCK]; blocks * self.planes.count()],
            bases: vec![[0.0; BLOCK]; blocks],
            sums: vec![[0.0; BLOCK]; blocks],
            registers: Registers::new(),
        };
        for (stretch, scores) in scores.chunks_mut(together * BLOCK).enumerate() {
            let first = stretch * together * BLOCK;
            let rows = scores.len();
            let load = |block: usize, feature, values: &mut [f32; BLOCK]| {
                load(first + block * BLOCK, (rows - block * BLOCK).min(BLOCK), feature, values);
            };
            let blocks = rows.div_ceil(BLOCK);
            dispatch!(self.level, _ => self.score_some(&mut work, blocks, load));
            for (scores, sums) in scores.chunks_mut(BLOCK).zip(&work.sums) {
                scores.copy_from_slice(&sums[..scores.len()]);
            }
        }
    }

    /// Scores some blocks. Everything below is inlined here, so that it is compiled for each kind of
    /// machine.
    #[inline(always)]
    fn score_some(
        &self,
        work: &mut Workspace,
        blocks: usize,
        mut load: impl FnMut(usize, u32, &mut [f32; BLOCK]),
    ) {
        let Workspace { planes, bases, sums, registers } = work;
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
                    Form::Dense(tree) => self.dense.add_values(tree, planes, registers, sums),
                    Form::Walk(tree) => self.walk.add_values(tree, planes, sums),
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

/// Values of a column from a row on, NaN where they are null.
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
