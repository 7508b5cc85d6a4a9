//! Brings a model into the form that other programs support: one ensemble of trees with two branches per split, or one
//! linear function of the features' values.

use super::binary::{BinaryNode, binary};
use super::fold::folded;
use crate::model::{Combine, FeatureNormalisation, LinearFunction, LinearTerm, Model};
use std::collections::BTreeMap;

/// A model as one ensemble of binary trees.
pub(super) struct PortableTrees {
    /// The trees.
    pub trees: Vec<Vec<BinaryNode>>,
    /// The constant to which the sum or mean of the trees is added.
    pub base_score: f64,
    /// Whether the value is a mean of the trees.
    pub is_mean: bool,
    /// Messages about feature values that are part of the score.
    pub losses: Vec<String>,
}

impl PortableTrees {
    /// Folds the parts of a model, which must be sums or means of trees. `program` is the name of the other program.
    pub(super) fn of(model: &Model, program: &str) -> Self {
        let folded = folded(model);
        PortableTrees {
            trees: folded.ensemble.trees.iter().map(|tree| binary(tree, &model.features)).collect(),
            base_score: folded.ensemble.base_score,
            is_mean: folded.ensemble.combine != Combine::Sum,
            losses: folded.losses(model, program, "add it to the scores there"),
        }
    }

    /// Turns a mean into a sum: the values of all nodes are divided by the number of trees.
    pub(super) fn into_sum(mut self) -> Self {
        if self.is_mean {
            let scale = 1.0 / self.trees.len().max(1) as f64;
            self.trees.iter_mut().flatten().for_each(|node| node.value *= scale);
            self.is_mean = false;
        }
        self
    }

    /// Moves the base score into the trees, for programs without one. A sum starts with a tree of one leaf, which keeps
    /// the order of additions. In a mean, the base score is added to the value of every node.
    pub(super) fn with_base_tree(mut self) -> Self {
        let constant = |value| vec![BinaryNode { split: None, value, cover: 0.0 }];
        let base_score = std::mem::replace(&mut self.base_score, 0.0);
        if self.trees.is_empty() {
            self.trees.push(constant(base_score));
        } else if self.is_mean {
            self.trees.iter_mut().flatten().for_each(|node| node.value += base_score);
        } else if base_score != 0.0 {
            self.trees.insert(0, constant(base_score));
        }
        self
    }
}

/// A model as one linear function of the features' values.
pub(super) struct PortableLinear {
    /// The constant to which the terms are added.
    pub base_score: f64,
    /// Pairs of a feature and its weight, by feature.
    pub weights: Vec<(u32, f64)>,
    /// For each feature with a weight other than 0, the value that a missing value counts as, if it is not 0.
    pub missing: Vec<(u32, f64)>,
}

impl PortableLinear {
    /// Folds the parts of a model, which must be linear functions that are not normalised by query. The normalisation
    /// of features by constants becomes part of the weights and of the base score.
    pub(super) fn of(model: &Model) -> Self {
        let mut weights: BTreeMap<u32, f64> = BTreeMap::new();
        let mut missing = BTreeMap::new();
        let mut base_score = model.intercept;
        for part in &model.parts {
            let Some(function) = part.family.linear() else { continue };
            base_score += part.weight * function.base_score;
            for term in &function.terms {
                let (centre, factor) = affine(function, term);
                let weight = part.weight * term.weight * factor;
                *weights.entry(term.feature).or_default() += weight;
                base_score -= weight * centre;
                let fill = model.features[term.feature as usize].fill;
                let counts_as = fill.map_or(centre, f64::from);
                if counts_as != 0.0 && weight != 0.0 {
                    missing.insert(term.feature, counts_as);
                }
            }
        }
        PortableLinear {
            base_score,
            weights: weights.into_iter().collect(),
            missing: missing.into_iter().collect(),
        }
    }

    /// Returns a message for each feature whose missing values do not count as 0, as they do in `program`.
    pub(super) fn losses(&self, model: &Model, program: &str) -> Vec<String> {
        let loss = |(feature, value): &(u32, f64)| {
            let name = &model.features[*feature as usize].name;
            format!(
                "missing values of feature {name} count as {value}, but as 0 in {program}: send {value} instead"
            )
        };
        self.missing.iter().map(loss).collect()
    }

    /// Returns the note that tells by how much scores are lower in a program without a constant.
    pub(super) fn constant_note(&self) -> Vec<String> {
        if self.base_score == 0.0 {
            return Vec::new();
        }
        vec![format!(
            "the format has no constant, so scores are lower by {:?}; the ranking is the same",
            self.base_score
        )]
    }
}

/// Returns what is subtracted from the values of a term's feature, and by what the difference is multiplied.
fn affine(function: &LinearFunction, term: &LinearTerm) -> (f64, f64) {
    match function.normalisation {
        FeatureNormalisation::None | FeatureNormalisation::Query => (0.0, 1.0),
        FeatureNormalisation::Z | FeatureNormalisation::Minmax => {
            (term.centre, if term.spread > 0.0 { 1.0 / term.spread } else { 0.0 })
        }
    }
}

/// Rounds a value to a 32-bit float within the range of finite numbers.
pub(super) fn single(value: f64) -> f32 {
    value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}
