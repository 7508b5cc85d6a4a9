//! Scores rows as another program would: with the model in its file, its tests and its arithmetic.

use std::collections::BTreeMap;

/// A node of a tree in another program.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::exchange) enum ServedNode {
    /// A leaf and its value.
    Leaf(f64),
    /// A split.
    Split(ServedSplit),
}

/// A split in another program.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::exchange) struct ServedSplit {
    /// Index of the feature in planetree's model.
    pub feature: u32,
    /// The threshold, in the precision that the program uses.
    pub threshold: f64,
    /// Whether missing values go left, if the program has a direction for them.
    pub missing_left: bool,
    /// Index of the left child.
    pub left: usize,
    /// Index of the right child.
    pub right: usize,
}

/// How another program tests values and adds up leaves.
#[derive(Debug, Clone, Copy)]
pub(in crate::exchange) struct Rules {
    /// Returns what the program reads if a feature has this value. NaN is a missing value.
    pub reads: fn(f32) -> f64,
    /// Returns whether a value goes left.
    pub goes_left: fn(f64, &ServedSplit) -> bool,
    /// How the values of the trees are added up.
    pub sum: Sum,
    /// Whether the sum is divided by the number of trees, before the base score is added.
    pub is_mean: bool,
    /// The test as shown in messages, such as `x < t`.
    pub test: &'static str,
    /// Which finite or infinite values the program cannot tell from others, and the reason. Differences on such values are
    /// counted apart.
    pub blind: Option<BlindSpot>,
}

/// Values that a program cannot tell from others, and the reason.
pub(crate) type BlindSpot = (fn(f32) -> bool, &'static str);

/// How the values of the trees are added up, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exchange) enum Sum {
    /// In 64-bit floats.
    Double,
    /// In 64-bit floats, and the result is rounded to 32 bits.
    DoubleThenSingle,
    /// In 32-bit floats: the sum is rounded after every tree.
    Single,
}

impl Sum {
    /// Returns the largest relative rounding error of a single operation.
    pub(super) fn precision(self) -> f64 {
        match self {
            Sum::Double => f64::EPSILON,
            Sum::DoubleThenSingle | Sum::Single => f64::from(f32::EPSILON),
        }
    }

    /// Returns the name of the arithmetic for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Sum::Double => "64-bit sums",
            Sum::DoubleThenSingle => "64-bit sums, rounded to 32 bits",
            Sum::Single => "32-bit sums",
        }
    }
}

/// A value as it is.
pub(in crate::exchange) fn as_is(value: f32) -> f64 {
    f64::from(value)
}

/// A value as it is, and a missing value as 0.
pub(in crate::exchange) fn missing_as_zero(value: f32) -> f64 {
    if value.is_nan() { 0.0 } else { f64::from(value) }
}

/// `x <= t`. A missing value follows the direction of the split.
pub(in crate::exchange) fn at_most(value: f64, split: &ServedSplit) -> bool {
    if value.is_nan() { split.missing_left } else { value <= split.threshold }
}

/// `x < t`. A missing value follows the direction of the split.
pub(in crate::exchange) fn below(value: f64, split: &ServedSplit) -> bool {
    if value.is_nan() { split.missing_left } else { value < split.threshold }
}

/// Trees in another program.
#[derive(Debug, Clone)]
pub(in crate::exchange) struct ServedTrees {
    /// The constant that the program adds to the trees.
    pub base_score: f64,
    /// The trees: the root is the first node.
    pub trees: Vec<Vec<ServedNode>>,
    /// The arithmetic.
    pub rules: Rules,
}

impl ServedTrees {
    /// Returns what a tree adds to the score of a row, before any division by the number of trees.
    pub(super) fn tree_value(&self, tree: usize, row: &[f32]) -> f64 {
        let nodes = &self.trees[tree];
        let mut node = &nodes[0];
        loop {
            match node {
                ServedNode::Leaf(value) => return *value,
                ServedNode::Split(split) => {
                    let value = (self.rules.reads)(row[split.feature as usize]);
                    let is_left = (self.rules.goes_left)(value, split);
                    node = &nodes[if is_left { split.left } else { split.right }];
                }
            }
        }
    }

    /// Returns the score of a row.
    pub(super) fn score(&self, row: &[f32]) -> f64 {
        let values = (0..self.trees.len()).map(|tree| self.tree_value(tree, row));
        let count = self.trees.len().max(1) as f64;
        let rounded = |value: f64| f64::from(value as f32);
        let start = if self.rules.is_mean { 0.0 } else { self.base_score };
        let finish = |sum: f64| if self.rules.is_mean { sum / count + self.base_score } else { sum };
        match self.rules.sum {
            Sum::Double => finish(values.fold(start, |sum, value| sum + value)),
            Sum::DoubleThenSingle => rounded(finish(values.fold(start, |sum, value| sum + value))),
            Sum::Single => rounded(finish(values.fold(rounded(start), |sum, value| rounded(sum + value)))),
        }
    }

    /// Checks that every child comes after its parent, so that scoring ends, and that features exist.
    pub(super) fn fault(&self, features: usize) -> Option<String> {
        for (number, nodes) in self.trees.iter().enumerate() {
            if nodes.is_empty() {
                return Some(format!("tree {number} has no nodes"));
            }
            for (index, node) in nodes.iter().enumerate() {
                let ServedNode::Split(split) = node else { continue };
                if split.feature as usize >= features {
                    return Some(format!("tree {number} splits on a feature that the model lacks"));
                }
                if [split.left, split.right].iter().any(|child| *child <= index || *child >= nodes.len()) {
                    return Some(format!("tree {number}: the nodes do not form a tree"));
                }
            }
        }
        None
    }
}

/// A linear function in another program.
#[derive(Debug, Clone)]
pub(in crate::exchange) struct ServedLinear {
    /// The constant, or `None` if the format has none.
    pub base_score: Option<f64>,
    /// Pairs of a feature and its weight.
    pub weights: Vec<(u32, f64)>,
    /// The values that replace missing values, by feature. Missing values of other features are 0.
    pub missing: BTreeMap<u32, f64>,
    /// How the terms are added up.
    pub sum: Sum,
}

impl ServedLinear {
    /// Returns the score of a row.
    pub(super) fn score(&self, row: &[f32]) -> f64 {
        let is_single = self.sum == Sum::Single;
        let rounded = |value: f64| if is_single { f64::from(value as f32) } else { value };
        let base = rounded(self.base_score.unwrap_or(0.0));
        let add = |sum: f64, (feature, weight): &(u32, f64)| {
            let value = match row[*feature as usize] {
                value if value.is_nan() => self.missing.get(feature).copied().unwrap_or(0.0),
                value => f64::from(value),
            };
            rounded(sum + rounded(weight * value))
        };
        let sum = self.weights.iter().fold(base, add);
        if self.sum == Sum::Double { sum } else { f64::from(sum as f32) }
    }
}

/// A model in another program.
pub(in crate::exchange) enum ServedModel {
    /// Trees.
    Trees(ServedTrees),
    /// A linear function.
    Linear(ServedLinear),
    /// A model of planetree, which is scored as such.
    Whole(Box<crate::model::Model>),
}
