//! Computes the values of trees as planetree does, and how much rounding can change scores at the target.

use super::compare::Comparer;
use super::served::{ServedLinear, ServedTrees};
use crate::exchange::binary::BinaryNode;
use crate::model::{Branch, LinearFunction, Model, ModelFeature, Tree};

/// A tree of the model, as the file should have it.
pub(super) struct ExpectedTree {
    pub tree: Tree,
    pub nodes: Vec<BinaryNode>,
    /// The factor of the tree's value in the score.
    pub scale: f64,
    /// The share of the base score that is part of the tree.
    pub share: f64,
}

/// The value of a tree in the file and in the model, as shares of the score.
pub(super) struct TreeValues {
    pub found: f64,
    pub expected: f64,
    /// The sum of the absolute values of the terms of the expected value.
    magnitude: f64,
}

impl TreeValues {
    /// Returns whether the value in the file is that of the model, rounded to a precision.
    pub(super) fn agree(&self, precision: f64) -> bool {
        (self.found - self.expected).abs() <= 2.0 * precision * self.magnitude + 1e-44
    }
}

/// Returns the values of a tree for a row.
pub(super) fn tree_values(
    served: &ServedTrees,
    number: usize,
    tree: &ExpectedTree,
    row: &[f32],
    features: &[ModelFeature],
) -> TreeValues {
    let divisor = if served.rules.is_mean { served.trees.len() as f64 } else { 1.0 };
    let value = tree_value(&tree.tree, row, features) * tree.scale;
    TreeValues {
        found: served.tree_value(number, row) / divisor,
        expected: value + tree.share,
        magnitude: value.abs() + tree.share.abs(),
    }
}

/// Returns the value of the leaf that a row reaches in planetree.
fn tree_value(tree: &Tree, row: &[f32], features: &[ModelFeature]) -> f64 {
    let mut node = &tree.nodes[0];
    while let Some(split) = &node.split {
        let value = match (row[split.feature as usize], features[split.feature as usize].fill) {
            (value, Some(fill)) if value.is_nan() => fill,
            (value, _) => value,
        };
        let branch = match () {
            () if value.is_nan() => split.missing,
            () if value <= split.threshold => Branch::Left,
            () => Branch::Right,
        };
        let child = match (branch, split.middle) {
            (Branch::Left, _) => split.left,
            (Branch::Right, _) => split.right,
            (Branch::Middle, Some(middle)) => middle,
            // Without a child of their own, missing values have the value of the node itself.
            (Branch::Middle, None) => return node.value,
        };
        node = &tree.nodes[child as usize];
    }
    node.value
}

impl Comparer<'_> {
    /// Returns the largest difference that the rounding of values and sums can cause.
    pub(super) fn trees_bound(&self, served: &ServedTrees, expected: &[ExpectedTree], row: &[f32]) -> f64 {
        let value = |tree: &ExpectedTree| {
            (tree_value(&tree.tree, row, &self.model.features) * tree.scale).abs() + tree.share.abs()
        };
        let base = folded_base(self.model);
        let magnitude = base.abs() + expected.iter().map(value).sum::<f64>();
        magnitude * served.rules.sum.precision() * (expected.len() + 3) as f64 + 1e-40
    }

    /// Returns the largest difference that the rounding of terms and sums can cause, for a row of this magnitude.
    pub(super) fn linear_bound(&self, served: &ServedLinear, magnitude: f64) -> f64 {
        let terms = self.linear.as_ref().map_or(0, |linear| linear.weights.len());
        magnitude * served.sum.precision() * (terms + 3) as f64 + 1e-40
    }

    /// Returns the sum of the absolute values of everything that is added up for the score of a row.
    pub(super) fn linear_magnitude(&self, row: &[f32]) -> f64 {
        let Some(linear) = &self.linear else { return 0.0 };
        let counts_as = |feature: u32| {
            let place = linear.missing.binary_search_by_key(&feature, |(missing, _)| *missing);
            place.map_or(0.0, |place| linear.missing[place].1)
        };
        let term = |(feature, weight): &(u32, f64)| {
            let value = row[*feature as usize];
            let value = if value.is_finite() { f64::from(value) } else { counts_as(*feature) };
            (weight * value).abs()
        };
        // The constants of normalised features cancel out in planetree's score, but not here.
        linear.weights.iter().map(term).sum::<f64>() + linear.base_score.abs() + self.constants()
    }

    /// Returns the size of terms that matter as much, all together, as the constants of a linear function.
    pub(super) fn term_size(&self) -> f64 {
        let Some(linear) = &self.linear else { return 1.0 };
        let size = (linear.base_score.abs() + self.constants()) / linear.weights.len().max(1) as f64;
        if size.is_normal() { size } else { 1.0 }
    }

    /// Returns the sum of the absolute constants that the normalisation of features adds.
    fn constants(&self) -> f64 {
        let functions = self.model.parts.iter().filter_map(|part| Some((part.weight, part.family.linear()?)));
        let constant = |(weight, function): (f64, &LinearFunction)| -> f64 {
            let terms = function.terms.iter().filter(|term| term.spread > 0.0);
            terms.map(|term| (weight * term.weight * term.centre / term.spread).abs()).sum()
        };
        functions.map(constant).sum()
    }
}

fn folded_base(model: &Model) -> f64 {
    let parts = model.parts.iter().filter_map(|part| Some(part.weight * part.family.trees()?.base_score));
    model.intercept.abs() + parts.map(f64::abs).sum::<f64>()
}
