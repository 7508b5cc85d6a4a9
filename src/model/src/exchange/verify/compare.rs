//! Compares the scores of an exported model with planetree's.

use super::reason::{row_text, shown_row, tree_reason};
use super::report::{RowDifference, VerifyReport};
use super::rows::{adversarial_rows, background, balanced, values_at};
use super::served::{ServedLinear, ServedModel, ServedNode, ServedTrees, Sum};
use super::values::{ExpectedTree, tree_values};
use crate::exchange::binary::{BinaryNode, binary};
use crate::exchange::fold::folded;
use crate::exchange::portable::PortableLinear;
use crate::model::{Combine, Model, Tree};
use crate::predict::Scorer;
use planetree_base::random::Stream;

/// The largest number of tree evaluations for whole rows at thresholds. Single trees are always tried at every split.
const WHOLE_ROW_BUDGET: u64 = 5_000_000;

/// The number of rows without extreme values on which a linear function is tried.
const BALANCED_ROWS: u64 = 1_000;

/// A model and its export, and what was found so far.
pub(super) struct Comparer<'a> {
    pub(super) model: &'a Model,
    pub(super) served: &'a ServedModel,
    scorer: Scorer,
    /// The scorer of the file, if it is a model of planetree.
    whole: Option<Scorer>,
    /// What the trees of the file should be. Empty for other models.
    expected: Vec<ExpectedTree>,
    pub(super) linear: Option<PortableLinear>,
    report: VerifyReport,
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
            report: VerifyReport { arithmetic: Sum::Double.name(), ..VerifyReport::default() },
        };
        match served {
            ServedModel::Trees(trees) => comparer.expect_trees(trees)?,
            ServedModel::Linear(function) => comparer.expect_linear(function)?,
            ServedModel::Whole(whole) => {
                if whole.features.len() != model.features.len() {
                    return Err("the file is of a model with other features".to_owned());
                }
                // Rows are tried one by one, which tells nothing about parts that compare the documents of a query.
                if model.needs_queries() && !has_same_content(whole, model) {
                    return Err("the file is of a model with other parts".to_owned());
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
        self.report.trees = ensemble.trees.len();
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
        self.report.base_leaf = base_leaf;
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
        self.report.is_relative = true;
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
            ServedModel::Linear(_) => {
                let size = self.term_size();
                let weights = self.linear.as_ref().map(|linear| linear.weights.clone()).unwrap_or_default();
                let mut draw = || balanced(thresholds.len(), &weights, size, &mut stream);
                for _ in 0..BALANCED_ROWS {
                    self.try_whole_row(&draw());
                }
                for feature in 0..thresholds.len() {
                    self.try_edges(draw(), feature, 1.0);
                }
            }
            ServedModel::Whole(_) => {
                for (feature, known) in thresholds.iter().enumerate() {
                    let threshold = known.first().copied().unwrap_or(1.0);
                    self.try_edges(background(&thresholds, &mut stream), feature, threshold);
                }
            }
        }
    }

    /// Tries a row with the values at a threshold, and with extreme ones, of a feature.
    fn try_edges(&mut self, mut row: Vec<f32>, feature: usize, threshold: f32) {
        for value in values_at(threshold).into_iter().chain([1e30, -1e30, 1e-30]) {
            row[feature] = value;
            self.try_whole_row(&row);
        }
    }

    /// Tries a row of a model that has no trees of its own in the file.
    fn try_whole_row(&mut self, row: &[f32]) {
        self.report.whole_rows += 1;
        let model = self.model;
        self.try_row(row, &[], &mut || shown_row(model, row));
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
        let agrees = values.agree(served.rules.sum.precision());
        if !agrees && self.is_blind(row, Some(&tree.nodes)) {
            self.report.blind_rows += 1;
            return;
        }
        self.add_difference((values.found - values.expected).abs());
        if agrees {
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

    /// Adds a difference to the largest one. That of infinite scores is no number.
    fn add_difference(&mut self, difference: f64) {
        if difference.is_finite() {
            self.report.largest_difference = self.report.largest_difference.max(difference);
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
        // What a difference is relative to.
        let mut unit = 1.0;
        let (theirs, bound) = match self.served {
            ServedModel::Trees(served) => (served.score(row), self.trees_bound(served, expected, row)),
            ServedModel::Linear(served) => {
                let magnitude = self.linear_magnitude(row);
                unit = if magnitude > 0.0 { magnitude } else { 1.0 };
                (served.score(row), self.linear_bound(served, magnitude))
            }
            ServedModel::Whole(_) => {
                (self.whole.as_ref().map_or(f64::NAN, |scorer| score_of(scorer, row)), 0.0)
            }
        };
        let difference = (theirs - ours).abs();
        let agrees = difference <= bound || theirs.to_bits() == ours.to_bits();
        if !agrees && self.is_blind(row, None) {
            self.report.blind_rows += 1;
            return (ours, theirs);
        }
        self.add_difference(difference / unit);
        if agrees {
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
}

/// Checks whether two models compute the same score from the same values.
fn has_same_content(one: &Model, other: &Model) -> bool {
    let fills = |model: &Model| model.features.iter().map(|feature| feature.fill).collect::<Vec<_>>();
    one.intercept == other.intercept
        && one.parts == other.parts
        && one.groups == other.groups
        && fills(one) == fills(other)
}

fn scorer_of(model: &Model) -> Result<Scorer, String> {
    Scorer::new(model).map_err(|error| error.to_string())
}

fn score_of(scorer: &Scorer, row: &[f32]) -> f64 {
    let mut scores = [0.0];
    scorer.score(row, &mut scores);
    scores[0]
}
