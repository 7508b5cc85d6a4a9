//! Compares the scores of an exported model with planetree's, and explains the first difference.

use super::rows::{adversarial_rows, background, values_at};
use super::served::{ServedLinear, ServedModel, ServedNode, ServedTrees};
use crate::exchange::binary::{BinaryNode, binary};
use crate::exchange::fold::folded;
use crate::exchange::portable::PortableLinear;
use crate::model::{Branch, Combine, Model, ModelFeature, Tree};
use crate::predict::Scorer;
use planetree_base::random::Stream;
use serde::Serialize;

/// The largest number of tree evaluations for whole rows at thresholds. Single trees are always tried at every split.
const WHOLE_ROW_BUDGET: u64 = 5_000_000;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerifyReport {
    /// Name of the format.
    pub format: &'static str,
    /// The kind of model within the format.
    pub kind: &'static str,
    /// Number of trees in the file.
    pub trees: usize,
    /// How the program adds up scores.
    pub arithmetic: &'static str,
    /// Number of rows at thresholds that were tried on the tree of the threshold.
    pub split_rows: u64,
    /// Number of such rows that were tried on the whole model.
    pub whole_rows: u64,
    /// Number of rows of the dataset.
    pub data_rows: u64,
    /// Number of rows whose score is not planetree's in the program's arithmetic.
    pub mismatches: u64,
    /// Number of further rows that differ because the program cannot tell their values from others.
    pub blind_rows: u64,
    /// Why the program cannot tell these values from others.
    pub blind_reason: Option<&'static str>,
    /// The largest difference of scores over all rows that are no mismatch.
    pub largest_difference: f64,
    /// Number of documents of the dataset whose rank differs.
    pub changed_ranks: u64,
    /// What was subtracted from planetree's scores before the comparison, because the format has no constant.
    pub constant: f64,
    /// The first row that is a mismatch.
    pub first: Option<RowDifference>,
}

/// A row whose score differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowDifference {
    /// The row: its features that matter, or its number in the dataset.
    pub row: String,
    /// planetree's value.
    pub planetree: f64,
    /// The value at the target.
    pub target: f64,
    /// Why they differ.
    pub reason: String,
}

/// A model and its export, and what was found so far.
pub(super) struct Comparer<'a> {
    model: &'a Model,
    served: &'a ServedModel,
    scorer: Scorer,
    /// The scorer of the file, if it is a model of planetree.
    whole: Option<Scorer>,
    /// What the trees of the file should be. Empty for other models.
    expected: Vec<ExpectedTree>,
    linear: Option<PortableLinear>,
    report: VerifyReport,
}

/// A tree of the model, as the file should have it.
struct ExpectedTree {
    tree: Tree,
    nodes: Vec<BinaryNode>,
    /// The factor of the tree's value in the score.
    scale: f64,
    /// The share of the base score that is part of the tree.
    share: f64,
}

impl<'a> Comparer<'a> {
    pub(super) fn new(model: &'a Model, served: &'a ServedModel) -> Result<Self, String> {
        let mut comparer = Comparer {
            model,
            served,
            scorer: scorer_of(model)?,
            whole: match served {
                ServedModel::Whole(whole) => Some(scorer_of(whole)?),
                _ => None,
            },
            expected: Vec::new(),
            linear: None,
            report: VerifyReport {
                format: "",
                kind: "",
                trees: 0,
                arithmetic: super::served::Sum::Double.name(),
                split_rows: 0,
                whole_rows: 0,
                data_rows: 0,
                mismatches: 0,
                blind_rows: 0,
                blind_reason: None,
                largest_difference: 0.0,
                changed_ranks: 0,
                constant: 0.0,
                first: None,
            },
        };
        match served {
            ServedModel::Trees(trees) => comparer.expect_trees(trees)?,
            ServedModel::Linear(function) => comparer.expect_linear(function)?,
            ServedModel::Whole(whole) => {
                if whole.features.len() != model.features.len() {
                    return Err("the file is of a model with other features".to_owned());
                }
                comparer.report.trees = whole.trees().count();
            }
        }
        Ok(comparer)
    }

    fn expect_trees(&mut self, served: &ServedTrees) -> Result<(), String> {
        if let Some(fault) = served.fault(self.model.features.len()) {
            return Err(fault);
        }
        if self.model.parts.iter().any(|part| part.family.trees().is_none()) {
            return Err("the file has trees, but the model has other parts".to_owned());
        }
        let folded = folded(self.model);
        let ensemble = &*folded.ensemble;
        self.report.trees = served.trees.len();
        self.report.arithmetic = served.rules.sum.name();
        self.report.blind_reason = served.rules.blind.map(|(_, reason)| reason);
        let extra = served.trees.len().checked_sub(ensemble.trees.len());
        let base_leaf = match extra {
            Some(0) => None,
            Some(1) => match served.trees[0].as_slice() {
                [ServedNode::Leaf(value)] => Some(*value),
                _ => return Err("the file has one tree too many".to_owned()),
            },
            _ => {
                return Err(format!(
                    "the file has {} trees, but the model has {}",
                    served.trees.len(),
                    ensemble.trees.len()
                ));
            }
        };
        let scale = ensemble.tree_weight();
        let has_own_base = base_leaf.is_some() || served.base_score != 0.0;
        let is_spread = !has_own_base && ensemble.combine == Combine::Mean;
        let share = if is_spread { ensemble.base_score * scale } else { 0.0 };
        let expected = |tree: &Tree| ExpectedTree {
            nodes: binary(tree, &self.model.features),
            tree: tree.clone(),
            scale,
            share,
        };
        self.expected = ensemble.trees.iter().map(expected).collect();
        Ok(())
    }

    fn expect_linear(&mut self, served: &ServedLinear) -> Result<(), String> {
        if let Some((feature, _)) =
            served.weights.iter().find(|(feature, _)| *feature as usize >= self.model.features.len())
        {
            return Err(format!("feature {feature} does not exist in the model"));
        }
        if self.model.parts.iter().any(|part| part.family.linear().is_none()) {
            return Err("the file has weights, but the model has other parts".to_owned());
        }
        let linear = PortableLinear::of(self.model);
        self.report.constant = if served.base_score.is_none() { linear.base_score } else { 0.0 };
        self.report.arithmetic = served.sum.name();
        self.report.blind_reason = Some("planetree treats infinite values as missing");
        self.linear = Some(linear);
        Ok(())
    }

    /// Tries the rows at the thresholds of all splits.
    pub(super) fn try_splits(&mut self) {
        let thresholds = self.thresholds();
        let mut stream = Stream::new(&[0x7665_7269_6679]);
        match self.served {
            ServedModel::Trees(served) => {
                let first = served.trees.len() - self.expected.len();
                let splits: usize = self
                    .expected
                    .iter()
                    .map(|tree| tree.nodes.iter().filter(|node| node.split.is_some()).count())
                    .sum();
                let rows = (splits * values_at(0.0).len()) as u64;
                let step = (rows * served.trees.len() as u64).div_ceil(WHOLE_ROW_BUDGET).max(1);
                let expected = std::mem::take(&mut self.expected);
                for (number, tree) in expected.iter().enumerate() {
                    let mut row = background(&thresholds, &mut stream);
                    adversarial_rows(&tree.nodes, &mut row, &mut |row| {
                        self.try_tree(served, first + number, tree, row);
                        if self.report.split_rows.is_multiple_of(step) {
                            self.report.whole_rows += 1;
                            self.try_row(row, &expected, &mut || row_text(self.model, row, &tree.nodes));
                        }
                    });
                }
                // Trees without splits, and sums of many trees near thresholds.
                for _ in 0..100 {
                    let row = background(&thresholds, &mut stream);
                    self.report.whole_rows += 1;
                    self.try_row(&row, &expected, &mut || shown_row(self.model, &row));
                }
                self.expected = expected;
            }
            ServedModel::Linear(_) | ServedModel::Whole(_) => {
                for feature in 0..thresholds.len() {
                    let mut row = background(&thresholds, &mut stream);
                    let edges = values_at(thresholds[feature].first().copied().unwrap_or(1.0));
                    for value in edges.into_iter().chain([1e30, -1e30, 1e-30]) {
                        row[feature] = value;
                        self.report.whole_rows += 1;
                        self.try_row(&row, &[], &mut || shown_row(self.model, &row));
                    }
                }
            }
        }
    }

    /// Returns the thresholds of each feature.
    fn thresholds(&self) -> Vec<Vec<f32>> {
        let mut thresholds: Vec<Vec<f32>> = vec![Vec::new(); self.model.features.len()];
        let nodes = self.model.trees().flat_map(|tree| &tree.nodes);
        for split in nodes.filter_map(|node| node.split.as_ref()) {
            let known = &mut thresholds[split.feature as usize];
            // A sample is enough for the features off the path.
            if known.len() < 256 {
                known.push(split.threshold);
            }
        }
        thresholds
    }

    /// Tries a row of a dataset. Returns planetree's score and the score at the target.
    pub(super) fn try_data_row(&mut self, row: &[f32], name: &mut dyn FnMut() -> String) -> (f64, f64) {
        self.report.data_rows += 1;
        let expected = std::mem::take(&mut self.expected);
        let scores = self.try_row(row, &expected, name);
        self.expected = expected;
        scores
    }

    /// Adds documents of the dataset whose rank differs.
    pub(super) fn add_changed_ranks(&mut self, changed: u64) {
        self.report.changed_ranks += changed;
    }

    pub(super) fn report(mut self, format: &'static str, kind: &'static str) -> VerifyReport {
        (self.report.format, self.report.kind) = (format, kind);
        self.report
    }

    /// Compares the value of one tree.
    fn try_tree(&mut self, served: &ServedTrees, number: usize, tree: &ExpectedTree, row: &[f32]) {
        self.report.split_rows += 1;
        let values = tree_values(served, number, tree, row, &self.model.features);
        if values.agree(served.rules.sum.precision()) {
            return;
        }
        if self.is_blind(row, Some(&tree.nodes)) {
            self.report.blind_rows += 1;
            return;
        }
        self.report.mismatches += 1;
        if self.report.first.is_none() {
            self.report.first = Some(RowDifference {
                row: row_text(self.model, row, &tree.nodes),
                planetree: values.expected,
                target: values.found,
                reason: tree_reason(self.model, served, number, tree, row),
            });
        }
    }

    /// Returns whether a row has a value that the program cannot tell from others, in a feature that matters.
    fn is_blind(&self, row: &[f32], nodes: Option<&[BinaryNode]>) -> bool {
        match self.served {
            ServedModel::Trees(served) => {
                let Some((is_blind, _)) = served.rules.blind else { return false };
                match nodes {
                    Some(nodes) => nodes
                        .iter()
                        .filter_map(|node| node.split.as_ref())
                        .any(|split| is_blind(row[split.feature as usize])),
                    None => row.iter().any(|value| is_blind(*value)),
                }
            }
            ServedModel::Linear(_) => row.iter().any(|value| value.is_infinite()),
            ServedModel::Whole(_) => false,
        }
    }

    /// Compares the score of a row. Returns planetree's score and the score at the target.
    fn try_row(
        &mut self,
        row: &[f32],
        expected: &[ExpectedTree],
        name: &mut dyn FnMut() -> String,
    ) -> (f64, f64) {
        let ours = score_of(&self.scorer, row) - self.report.constant;
        let (theirs, bound) = match self.served {
            ServedModel::Trees(served) => (served.score(row), self.trees_bound(served, expected, row)),
            ServedModel::Linear(served) => (served.score(row), self.linear_bound(served, row)),
            ServedModel::Whole(_) => {
                (self.whole.as_ref().map_or(f64::NAN, |scorer| score_of(scorer, row)), 0.0)
            }
        };
        let difference = (theirs - ours).abs();
        if difference <= bound || theirs.to_bits() == ours.to_bits() {
            self.report.largest_difference = self.report.largest_difference.max(difference);
            return (ours, theirs);
        }
        if self.is_blind(row, None) {
            self.report.blind_rows += 1;
            return (ours, theirs);
        }
        self.report.mismatches += 1;
        if self.report.first.is_none() {
            let reason = match self.served {
                ServedModel::Trees(served) => self.row_reason(served, expected, row),
                ServedModel::Linear(_) => self.linear_reason(row),
                ServedModel::Whole(_) => "the file has another model".to_owned(),
            };
            self.report.first = Some(RowDifference { row: name(), planetree: ours, target: theirs, reason });
        }
        (ours, theirs)
    }

    /// Returns the largest difference that the rounding of values and sums can cause.
    fn trees_bound(&self, served: &ServedTrees, expected: &[ExpectedTree], row: &[f32]) -> f64 {
        let value = |tree: &ExpectedTree| {
            (tree_value(&tree.tree, row, &self.model.features) * tree.scale).abs() + tree.share.abs()
        };
        let base = folded_base(self.model);
        let magnitude = base.abs() + expected.iter().map(value).sum::<f64>();
        magnitude * served.rules.sum.precision() * (expected.len() + 3) as f64 + 1e-40
    }

    fn linear_bound(&self, served: &ServedLinear, row: &[f32]) -> f64 {
        let Some(linear) = &self.linear else { return 0.0 };
        let term = |(feature, weight): &(u32, f64)| {
            let value = row[*feature as usize];
            if value.is_finite() { (weight * f64::from(value)).abs() } else { 0.0 }
        };
        let terms: f64 = linear.weights.iter().map(term).sum();
        // The constants of normalised features cancel out in planetree's score, but not here.
        let magnitude = terms + linear.base_score.abs() + self.constants();
        magnitude * served.sum.precision() * (linear.weights.len() + 3) as f64 + 1e-40
    }

    /// Returns the sum of the absolute constants that the normalisation of features adds.
    fn constants(&self) -> f64 {
        let functions = self.model.parts.iter().filter_map(|part| Some((part.weight, part.family.linear()?)));
        let constant = |(weight, function): (f64, &crate::model::LinearFunction)| -> f64 {
            let terms = function.terms.iter().filter(|term| term.spread > 0.0);
            terms.map(|term| (weight * term.weight * term.centre / term.spread).abs()).sum()
        };
        functions.map(constant).sum()
    }

    fn row_reason(&self, served: &ServedTrees, expected: &[ExpectedTree], row: &[f32]) -> String {
        let first = served.trees.len() - expected.len();
        for (number, tree) in expected.iter().enumerate() {
            let values = tree_values(served, first + number, tree, row, &self.model.features);
            if !values.agree(served.rules.sum.precision()) {
                return tree_reason(self.model, served, first + number, tree, row);
            }
        }
        let features = folded(self.model).base_features;
        match features.is_empty() {
            true => "all trees agree, but their sum does not: the base score differs".to_owned(),
            false => "the score includes the value of a feature, which the format cannot add".to_owned(),
        }
    }

    fn linear_reason(&self, row: &[f32]) -> String {
        let missing = self.linear.as_ref().map(|linear| linear.missing.as_slice()).unwrap_or_default();
        match missing.iter().find(|(feature, _)| row[*feature as usize].is_nan()) {
            Some((feature, value)) => format!(
                "{} is missing, which counts as {value}, but as 0 at the target",
                self.model.features[*feature as usize].name
            ),
            None => "a weight differs".to_owned(),
        }
    }
}

fn scorer_of(model: &Model) -> Result<Scorer, String> {
    Scorer::new(model).map_err(|error| error.to_string())
}

fn score_of(scorer: &Scorer, row: &[f32]) -> f64 {
    let mut scores = [0.0];
    scorer.score(row, &mut scores);
    scores[0]
}

fn folded_base(model: &Model) -> f64 {
    let parts = model.parts.iter().filter_map(|part| Some(part.weight * part.family.trees()?.base_score));
    model.intercept.abs() + parts.map(f64::abs).sum::<f64>()
}

/// The value of a tree in the file and in the model, as shares of the score.
struct TreeValues {
    found: f64,
    expected: f64,
    /// The sum of the absolute values of the terms of the expected value.
    magnitude: f64,
}

impl TreeValues {
    /// Returns whether the value in the file is that of the model, rounded to a precision.
    fn agree(&self, precision: f64) -> bool {
        (self.found - self.expected).abs() <= 2.0 * precision * self.magnitude + 1e-44
    }
}

/// Returns the values of a tree for a row.
fn tree_values(
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

/// Explains why a tree has another value for a row: where the two paths part.
fn tree_reason(
    model: &Model,
    served: &ServedTrees,
    number: usize,
    tree: &ExpectedTree,
    row: &[f32],
) -> String {
    let theirs = &served.trees[number];
    let side = |is_left| if is_left { "left" } else { "right" };
    let (mut ours_at, mut theirs_at) = (0, 0);
    loop {
        match (&tree.nodes[ours_at].split, &theirs[theirs_at]) {
            (Some(split), ServedNode::Split(other)) => {
                let name = &model.features[split.feature as usize].name;
                if split.feature != other.feature {
                    return format!(
                        "tree {number} splits on {name} here, but on another feature in the file"
                    );
                }
                let value = row[split.feature as usize];
                let is_left = if value.is_nan() { split.missing_left } else { value <= split.threshold };
                let goes_left = (served.rules.goes_left)((served.rules.reads)(value), other);
                if is_left != goes_left {
                    let read = (served.rules.reads)(value);
                    let read = match read.is_nan() || read == f64::from(value) {
                        true => String::new(),
                        false => format!(" read as {read:?}"),
                    };
                    return format!(
                        "tree {number}: {name} = {}{read} goes {} here (x <= {:?}), but {} there ({}, t = {:?})",
                        shown(value),
                        side(is_left),
                        split.threshold,
                        side(goes_left),
                        served.rules.test,
                        other.threshold
                    );
                }
                (ours_at, theirs_at) = match is_left {
                    true => (split.left, other.left),
                    false => (split.right, other.right),
                };
            }
            (None, ServedNode::Leaf(_)) => return format!("tree {number}: the value of a leaf differs"),
            _ => return format!("tree {number} has another shape in the file"),
        }
    }
}

fn shown(value: f32) -> String {
    if value.is_nan() { "missing".to_owned() } else { format!("{value:?}") }
}

/// Shows the features of a row that a tree uses.
fn row_text(model: &Model, row: &[f32], nodes: &[BinaryNode]) -> String {
    let used: std::collections::BTreeSet<u32> =
        nodes.iter().filter_map(|node| Some(node.split.as_ref()?.feature)).collect();
    shown_values(model, row, used.into_iter())
}

fn shown_row(model: &Model, row: &[f32]) -> String {
    shown_values(model, row, model.used_features().into_iter())
}

/// Shows the first features of a row.
fn shown_values(model: &Model, row: &[f32], features: impl Iterator<Item = u32>) -> String {
    const SHOWN: usize = 8;
    let all: Vec<u32> = features.collect();
    let value = |feature: &u32| {
        format!("{}={}", model.features[*feature as usize].name, shown(row[*feature as usize]))
    };
    let more = if all.len() > SHOWN { " ..." } else { "" };
    format!("{}{more}", all.iter().take(SHOWN).map(value).collect::<Vec<_>>().join(" "))
}
