//! Explains why the score of a row differs.

use super::compare::Comparer;
use super::served::{ServedNode, ServedTrees};
use super::values::{ExpectedTree, tree_values};
use crate::exchange::binary::BinaryNode;
use crate::exchange::fold::folded;
use crate::model::Model;
use std::collections::BTreeSet;

impl Comparer<'_> {
    pub(super) fn row_reason(&self, served: &ServedTrees, expected: &[ExpectedTree], row: &[f32]) -> String {
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

    pub(super) fn linear_reason(&self, row: &[f32]) -> String {
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

/// Explains why a tree has another value for a row: where the two paths part.
pub(super) fn tree_reason(
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
pub(super) fn row_text(model: &Model, row: &[f32], nodes: &[BinaryNode]) -> String {
    let used: BTreeSet<u32> = nodes.iter().filter_map(|node| Some(node.split.as_ref()?.feature)).collect();
    shown_values(model, row, used.into_iter())
}

pub(super) fn shown_row(model: &Model, row: &[f32]) -> String {
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
