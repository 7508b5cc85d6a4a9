//! Scores rows with trees. The values of the trees are added in order, so that scores are bit-identical to the
//! scores that training computes. Training relies on this when it rebuilds its state from a model.

use super::by_query::QueryNormaliser;
use super::dense::{DenseTree, DenseTrees, MAX_LEAVES, Registers};
use super::ensemble::{Combine, TreeEnsemble};
use super::layout::{FlatNode, flatten};
use super::planes::{BLOCK, Plane, Planes};
use super::single::{MAX_ROWS, SingleTrees};
use super::tree::Tree;
use super::walk::{WalkTree, WalkTrees};
use super::wins::win_rates;
use crate::family::{Family, ModelFeature, PartScorer, RowValues, load_values};
use fearless_simd::{Level, dispatch};
use std::ops::Range;

/// Trees prepared for scoring many rows.
#[derive(Debug)]
pub(crate) struct TreeScorer {
    combine: Combine,
    base_score: f64,
    /// The feature whose value is added to the base score, and its fill value.
    base_feature: Option<(u32, f32)>,
    /// The fill value of every feature of the model, or NaN if the feature has none. Empty unless the model is
    /// pairwise.
    fills: Vec<f32>,
    planes: Planes,
    trees: Vec<PreparedTree>,
    dense: DenseTrees,
    walk: WalkTrees,
    /// The trees once more, for scoring few rows. `None` if they are too large, or few rows are never scored.
    single: Option<SingleTrees>,
    /// Number of values of a row that the trees use: the largest index of a feature, plus 1.
    width: usize,
    /// Normalises the features of a query before they are scored, if they are normalised by query.
    normaliser: Option<QueryNormaliser>,
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

/// Buffers for scoring encoded rows.
pub(crate) struct EncodedBuffers {
    registers: Registers,
    /// The planes of one block.
    copied: Vec<Plane>,
}

/// What the values of the trees are added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SumStart {
    /// The base score. The result is the value of the ensemble.
    Base,
    /// Sums of earlier trees, which are passed in. The result is a sum, too.
    Earlier,
}

/// Number of blocks that are scored together if there are large trees, so that each tree is fetched from memory once
/// for all of these blocks.
const BLOCKS_PER_BATCH: usize = 32;

impl TreeScorer {
    /// Prepares the trees of an ensemble. They must be valid, as the trees of a trained or read model always are:
    /// children come after their parents, and no threshold is NaN.
    pub(crate) fn new(ensemble: &TreeEnsemble, features: &[ModelFeature], level: Level) -> Self {
        let single = SingleTrees::new(ensemble, features);
        TreeScorer { single, ..Self::of_blocks(ensemble, features, level) }
    }

    /// Like [`TreeScorer::new`], but only for scoring blocks of rows.
    pub(crate) fn of_blocks(ensemble: &TreeEnsemble, features: &[ModelFeature], level: Level) -> Self {
        let mut planes = Planes::of(ensemble, features);
        let (mut dense, mut walk) = (DenseTrees::new(), WalkTrees::default());
        let prepare = |tree: &Tree| {
            let nodes = flatten(&tree.with_untaken_branches(), &mut planes);
            let leaves = nodes.iter().filter(|node| matches!(node, FlatNode::Leaf(_))).count();
            if leaves <= MAX_LEAVES {
                PreparedTree::Dense(dense.add(&nodes))
            } else {
                PreparedTree::Walk(walk.add(&nodes))
            }
        };
        let trees = ensemble.trees.iter().map(prepare).collect();
        let fill = |feature: &ModelFeature| feature.fill.unwrap_or(f32::NAN);
        TreeScorer {
            combine: ensemble.combine,
            base_score: ensemble.base_score,
            base_feature: ensemble.base_feature.map(|feature| {
                (feature, features.get(feature as usize).and_then(|it| it.fill).unwrap_or(0.0))
            }),
            fills: match ensemble.combine {
                Combine::Wins => features.iter().map(fill).collect(),
                Combine::Sum | Combine::Mean => Vec::new(),
            },
            planes,
            trees,
            dense,
            walk,
            single: None,
            width: ensemble.used_features().last().map_or(1, |feature| *feature as usize + 1),
            normaliser: QueryNormaliser::of(ensemble, features),
            level,
        }
    }

    /// Returns the number of planes per block of encoded rows.
    pub(crate) fn planes(&self) -> usize {
        self.planes.count()
    }

    /// Encodes the first `count` rows as one block. There is one entry of `planes` per plane. Features are not normalised.
    pub(crate) fn encode(&self, rows: RowValues<'_>, count: usize, planes: &mut [Plane]) {
        dispatch!(self.level, _ => self.planes.code(planes, |feature, values| {
            rows.load(feature as usize, &mut values[..count]);
        }));
    }

    /// Returns buffers for [`TreeScorer::add_encoded`], which can be used any number of times.
    pub(crate) fn encoded_buffers(&self) -> EncodedBuffers {
        EncodedBuffers { registers: Registers::new(), copied: vec![[0; BLOCK]; self.planes.count()] }
    }

    /// Adds the values of some trees to sums of earlier trees, in order, for blocks of encoded rows. The base score is
    /// left out, and sums are not divided by the number of trees.
    pub(crate) fn add_encoded(
        &self,
        trees: Range<usize>,
        planes: &[Plane],
        sums: &mut [[f64; BLOCK]],
        buffers: &mut EncodedBuffers,
    ) {
        let (trees, count, at_a_time) = (&self.trees[trees], self.planes.count(), self.blocks_per_batch());
        let EncodedBuffers { registers, copied } = buffers;
        for (batch, sums) in sums.chunks_mut(at_a_time).enumerate() {
            let mut planes = &planes[batch * at_a_time * count..];
            if at_a_time == 1 {
                // Trees use planes in any order. Copying reads them from memory in order, which is faster.
                copied.copy_from_slice(&planes[..count]);
                planes = copied;
            }
            dispatch!(self.level, _ => self.add_trees(trees, planes, registers, sums));
        }
    }

    /// Adds the values of all trees to sums of earlier trees, like [`TreeScorer::add_encoded`]. `load(block, feature,
    /// values)` writes the values of a feature.
    pub(crate) fn add_values(&self, load: impl Fn(usize, u32, &mut [f32; BLOCK]), sums: &mut [[f64; BLOCK]]) {
        self.score_blocks(sums.as_flattened_mut(), SumStart::Earlier, |first, _, feature, values| {
            load(first / BLOCK, feature, values);
        });
    }

    /// Returns the number of blocks that are scored together.
    fn blocks_per_batch(&self) -> usize {
        if self.walk.is_empty() { 1 } else { BLOCKS_PER_BATCH }
    }

    /// Scores few rows, one by one.
    fn score_single_rows(&self, single: &SingleTrees, rows: RowValues<'_>, scores: &mut [f64]) {
        let mut values = vec![f32::NAN; self.width];
        for (row, score) in scores.iter_mut().enumerate() {
            match rows {
                RowValues::Matrix { values: all, width } => {
                    let row = all.get(row * width..).unwrap_or_default();
                    let present = row.len().min(width).min(values.len());
                    values[..present].copy_from_slice(&row[..present]);
                    values[present..].fill(f32::NAN);
                }
                RowValues::Columns { .. } => {
                    for feature in self.planes.features() {
                        values[feature as usize] = rows.value(row, feature as usize);
                    }
                    if let Some((feature, _)) = self.base_feature {
                        values[feature as usize] = rows.value(row, feature as usize);
                    }
                }
            }
            let base = self.base_feature.map_or(self.base_score, |(feature, fill)| {
                let value = values[feature as usize];
                self.base_score + f64::from(if value.is_nan() { fill } else { value })
            });
            *score = match self.combine {
                Combine::Sum => single.add_values(&values, base),
                Combine::Mean | Combine::Wins => {
                    base + single.add_values(&values, 0.0) / self.trees.len().max(1) as f64
                }
            };
        }
    }

    /// Scores every row separately.
    fn score_rows(&self, rows: RowValues<'_>, scores: &mut [f64]) {
        if let Some(single) = self.single.as_ref().filter(|_| scores.len() <= MAX_ROWS) {
            return self.score_single_rows(single, rows, scores);
        }
        match rows {
            RowValues::Matrix { values: all, width } => {
                self.score_blocks(scores, SumStart::Base, |first, count, feature, values| {
                    for (row, value) in values[..count].iter_mut().enumerate() {
                        let index = (first + row) * width + feature as usize;
                        *value = all.get(index).copied().unwrap_or(f32::NAN);
                    }
                });
            }
            RowValues::Columns { columns, first: skipped } => {
                self.score_blocks(scores, SumStart::Base, |first, count, feature, values| {
                    let first = skipped + first;
                    match columns.get(feature as usize).copied().flatten() {
                        Some(column) if first + count <= column.len() => {
                            load_values(column, first, &mut values[..count]);
                        }
                        _ => values.fill(f32::NAN),
                    }
                });
            }
        }
    }

    /// Scores the documents of one query by comparing them with each other.
    fn score_by_wins(&self, rows: RowValues<'_>, scores: &mut [f64]) {
        let width = self.fills.len().max(1);
        let mut documents = self.fills.repeat(scores.len());
        documents.resize(scores.len() * width, f32::NAN);
        let base = self.base_feature.map(|(feature, _)| feature);
        let planes = self.planes.features();
        for feature in planes.chain(base).map(|feature| feature as usize) {
            for row in 0..scores.len() {
                let value = rows.value(row, feature);
                if !value.is_nan() {
                    documents[row * width + feature] = value;
                }
            }
        }
        let rates = win_rates(&documents, width, |differences, probabilities| {
            self.score_rows(RowValues::Matrix { values: differences, width }, probabilities);
        });
        scores.copy_from_slice(&rates);
    }

    /// Scores rows block by block. `load(first, count, feature, values)` writes the values of a feature to `values`,
    /// for `count` rows starting with row `first`.
    fn score_blocks(
        &self,
        scores: &mut [f64],
        start: SumStart,
        mut load: impl FnMut(usize, usize, u32, &mut [f32; BLOCK]),
    ) {
        let batch_blocks = self.blocks_per_batch();
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
            if start == SumStart::Earlier {
                for (scores, sums) in scores.chunks(BLOCK).zip(&mut buffers.sums) {
                    sums[..scores.len()].copy_from_slice(scores);
                }
            }
            dispatch!(self.level, _ => self.score_batch(&mut buffers, blocks, start, load));
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
        start: SumStart,
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
            if start == SumStart::Earlier {
                continue;
            }
            bases[block] = base;
            sums[block] = if self.combine == Combine::Sum { base } else { [0.0; BLOCK] };
        }
        self.add_trees(&self.trees, planes, registers, &mut sums[..blocks]);
        if self.combine != Combine::Sum && start == SumStart::Base {
            let trees = self.trees.len().max(1) as f64;
            for (sums, base) in sums.iter_mut().zip(bases) {
                sums.iter_mut().zip(base).for_each(|(sum, base)| *sum = *base + *sum / trees);
            }
        }
    }

    /// Adds the values of trees to the sums of blocks.
    #[inline(always)]
    fn add_trees(
        &self,
        trees: &[PreparedTree],
        planes: &[Plane],
        registers: &mut Registers,
        sums: &mut [[f64; BLOCK]],
    ) {
        let count = self.planes.count();
        for tree in trees {
            for (block, sums) in sums.iter_mut().enumerate() {
                let planes = &planes[block * count..][..count];
                match tree {
                    PreparedTree::Dense(tree) => self.dense.add_values(tree, planes, registers, sums),
                    PreparedTree::Walk(tree) => self.walk.add_values(tree, planes, sums),
                }
            }
        }
    }
}

impl PartScorer for TreeScorer {
    fn score(&self, rows: RowValues<'_>, values: &mut [f64]) {
        let normaliser = self.normaliser.as_ref();
        let normalised = normaliser.map(|normaliser| normaliser.normalise(rows, &[0, values.len()]));
        let rows = normalised.as_ref().map_or(rows, |normalised| normalised.rows());
        match self.combine {
            Combine::Sum | Combine::Mean => self.score_rows(rows, values),
            Combine::Wins => self.score_by_wins(rows, values),
        }
    }
}
