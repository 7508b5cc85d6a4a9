//! Prepares a model for scoring with early exits.

use super::blocks::Blocks;
use super::rule::EarlyExit;
use crate::cost::ordered_trees;
use crate::family::trees::{BLOCK, Plane, QueryNormaliser, TreeScorer};
use crate::family::{Family, ModelFeature, RowValues};
use crate::model::{Combine, Model, TreeEnsemble};
use fearless_simd::Level;
use planetree_base::error::Result;
use rayon::prelude::*;

/// A model prepared for scoring with early exits: its trees, divided into segments that end with an exit.
#[derive(Debug)]
pub struct ExitScorer {
    pub(super) rule: EarlyExit,
    pub(super) combine: Combine,
    pub(super) base_score: f64,
    /// The feature whose value is added to the base score, and its fill value.
    pub(super) base_feature: Option<(usize, f32)>,
    /// Number of trees up to the end of each segment.
    pub(super) ends: Vec<u32>,
    /// Normalises the features of queries, if they are normalised by query.
    pub(super) normaliser: Option<QueryNormaliser>,
    trees: PreparedTrees,
}

/// The trees, and the form in which documents are kept between exits.
#[derive(Debug)]
enum PreparedTrees {
    /// Values are encoded once, for all trees.
    Encoded(Box<TreeScorer>),
    /// The trees have so many thresholds that codes would take more memory than values. Values are kept, and every
    /// segment encodes them for its own trees.
    Plain {
        segments: Vec<TreeScorer>,
        /// Features that the trees use, in ascending order.
        features: Vec<u32>,
    },
}

/// The values of documents.
pub(super) enum KeptValues {
    /// Encoded values: the planes of all trees.
    Codes(Blocks<i8>),
    /// One lane per feature that the trees use.
    Values(Blocks<f32>),
}

/// Number of blocks that a thread scores at a time.
const BLOCKS_PER_TASK: usize = 32;

impl ExitScorer {
    /// Prepares a model, which must be a single ensemble whose trees do not compare documents.
    pub fn new(model: &Model, rule: EarlyExit) -> Result<Self> {
        /// A code is a byte, and a value has this many.
        const MAX_PLANES_PER_FEATURE: usize = size_of::<f32>();
        Self::with_planes(model, rule, MAX_PLANES_PER_FEATURE)
    }

    /// Prepares a model. Values are encoded once if this takes at most so many planes per feature.
    pub(super) fn with_planes(model: &Model, rule: EarlyExit, most: usize) -> Result<Self> {
        rule.check()?;
        model.check_complete(&model.origin)?;
        let ensemble = ordered_trees(
            model,
            "early exits need a model that is a single ensemble of trees",
            "score without --exit-every and --exit-percent, or use a boosted model or a forest with one stage, without \
             classes, runs or blending",
        )?;
        let every = rule.every as usize;
        let scorer_of = |part: &_| TreeScorer::of_blocks(part, &model.features, Level::new());
        let whole = scorer_of(ensemble);
        let features: Vec<u32> = ensemble.used_features().into_iter().collect();
        let trees = if whole.planes() <= most * features.len() {
            PreparedTrees::Encoded(Box::new(whole))
        } else {
            let segment = |trees: &[_]| {
                scorer_of(&TreeEnsemble { trees: trees.to_vec(), base_feature: None, ..*ensemble })
            };
            PreparedTrees::Plain { segments: ensemble.trees.chunks(every).map(segment).collect(), features }
        };
        let fill = |feature: &ModelFeature| feature.fill.unwrap_or(0.0);
        let count = ensemble.trees.len();
        Ok(ExitScorer {
            rule,
            combine: ensemble.combine,
            base_score: ensemble.base_score,
            base_feature: ensemble
                .base_feature
                .map(|feature| (feature as usize, model.features.get(feature as usize).map_or(0.0, fill))),
            ends: (0..count).step_by(every).map(|start| (start + every).min(count) as u32).collect(),
            normaliser: QueryNormaliser::of(ensemble, &model.features),
            trees,
        })
    }

    /// Returns when documents exit.
    pub fn rule(&self) -> EarlyExit {
        self.rule
    }

    /// Creates an empty store for the values of this many documents.
    pub(super) fn empty(&self, rows: usize) -> KeptValues {
        match &self.trees {
            PreparedTrees::Encoded(scorer) => KeptValues::Codes(Blocks::new(scorer.planes(), rows)),
            PreparedTrees::Plain { features, .. } => KeptValues::Values(Blocks::new(features.len(), rows)),
        }
    }

    /// Appends a block with the first `count` rows.
    pub(super) fn append(&self, kept: &mut KeptValues, rows: RowValues<'_>, count: usize) {
        match (&self.trees, kept) {
            (PreparedTrees::Encoded(scorer), KeptValues::Codes(codes)) => {
                scorer.encode(rows, count, codes.push());
            }
            (PreparedTrees::Plain { features, .. }, KeptValues::Values(values)) => {
                for (lane, feature) in values.push().iter_mut().zip(features) {
                    rows.load(*feature as usize, &mut lane[..count]);
                }
            }
            _ => unreachable!("values are kept in the form that `empty` chose"),
        }
    }

    /// Adds the values of a segment's trees to the sums of all blocks.
    pub(super) fn add(&self, segment: usize, kept: &KeptValues, sums: &mut [[f64; BLOCK]]) {
        let tasks = sums.par_chunks_mut(BLOCKS_PER_TASK).enumerate();
        match (&self.trees, kept) {
            (PreparedTrees::Encoded(scorer), KeptValues::Codes(codes)) => {
                let start = segment.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
                let trees = start..self.ends[segment] as usize;
                let buffers = || scorer.encoded_buffers();
                tasks.for_each_init(buffers, |buffers, (task, sums)| {
                    let planes: &[Plane] = codes.starting_at(task * BLOCKS_PER_TASK);
                    scorer.add_encoded(trees.clone(), planes, sums, buffers);
                });
            }
            (PreparedTrees::Plain { segments, features }, KeptValues::Values(values)) => {
                tasks.for_each(|(task, sums)| {
                    let load = |block: usize, feature: u32, to: &mut [f32; BLOCK]| {
                        let lane = features.partition_point(|other| *other < feature);
                        *to = *values.lane(task * BLOCKS_PER_TASK + block, lane);
                    };
                    segments[segment].add_values(load, sums);
                });
            }
            _ => unreachable!("values are kept in the form that `empty` chose"),
        }
    }
}
