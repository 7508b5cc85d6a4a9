//! A tree whose splits compare codes (bin numbers) instead of feature values, so that it can predict the score of any
//! binned row.

use super::cell::GradientSums;
use super::grow::{GrownNode, GrownTree};
use super::rows::NodeId;
use super::split::{FoundSplit, SplitRules};
use crate::bins::{Binning, Codes, FeatureCodes, MissingBranch};
use planetree_model::model;
use serde::{Deserialize, Serialize};

/// Meaning of a node's cover, which is the size of the node as recorded in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// Sum of row weights.
    Weight,
    /// Number of rows, for objectives whose hessians take the place of weights.
    Rows,
}

/// A tree whose splits compare codes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CodedTree {
    nodes: Vec<CodedNode>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CodedNode {
    depth: u32,
    value: f64,
    cover: f64,
    split: Option<(FoundSplit, NodeId)>,
}

/// Converts a split of a model that was trained on these bins. Returns `None` if the split does not match the bins.
pub(crate) fn split_of_model(split: &model::Split, binning: &Binning) -> Option<FoundSplit> {
    let bins = binning.features.get(split.feature as usize)?;
    Some(FoundSplit {
        feature: split.feature,
        code: bins.code_up_to(split.threshold),
        threshold: split.threshold,
        missing_code: bins.missing_code,
        missing: MissingBranch::of_model(split)?,
        gain: split.gain,
    })
}

/// Routes the rows of one partition through a tree.
pub struct CodedRouter<'a> {
    tree: &'a CodedTree,
    columns: Vec<Option<FeatureCodes<'a>>>,
}

impl CodedTree {
    /// Converts a grown tree. Leaf values are multiplied by the learning rate and, if `in_units` is set, rounded to
    /// whole units of gradients.
    pub fn of_grown(
        tree: &GrownTree,
        rules: &SplitRules,
        learning_rate: f64,
        in_units: bool,
        cover: Cover,
    ) -> Self {
        let root = tree.nodes.first().map_or_else(GradientSums::default, |root| root.sums);
        let mut is_right = vec![false; tree.nodes.len()];
        tree.nodes.iter().filter_map(|node| node.split).for_each(|(_, left)| is_right[left + 1] = true);
        let value = |place: usize, node: &GrownNode| match (
            learning_rate * node.bounds.nearest(rules.value(node.sums, root, is_right[place])),
            rules.scale.gradient,
        ) {
            (value, units) if in_units => (value * units).round() / units,
            (value, _) => value,
        };
        let nodes = tree.nodes.iter().enumerate().map(|(place, node)| CodedNode {
            depth: node.depth,
            value: value(place, node),
            cover: match cover {
                Cover::Weight => node.sums.weight as f64 / rules.scale.weight,
                Cover::Rows => node.sums.count as f64,
            },
            split: node.split,
        });
        CodedTree { nodes: nodes.collect() }
    }

    /// Converts a tree of a model that was trained on these bins. Returns `None` if a split does not match the bins.
    pub fn of_model(tree: &model::Tree, binning: &Binning) -> Option<Self> {
        let nodes = tree.nodes.iter().map(|node| {
            let split = match &node.split {
                None => None,
                Some(split) => Some((split_of_model(split, binning)?, split.left as NodeId)),
            };
            Some(CodedNode { depth: node.depth, value: node.value, cover: node.cover, split })
        });
        Some(CodedTree { nodes: nodes.collect::<Option<_>>()? })
    }

    /// Converts the tree to a model tree.
    pub fn to_model(&self) -> model::Tree {
        let nodes = self.nodes.iter().map(|node| model::Node {
            depth: node.depth,
            value: node.value,
            cover: node.cover,
            split: node.split.map(|(split, left)| {
                let (missing, middle) = split.missing.to_model(left as u32);
                model::Split {
                    feature: split.feature,
                    threshold: split.threshold,
                    missing,
                    left: left as u32,
                    right: left as u32 + 1,
                    middle,
                    gain: split.gain,
                }
            }),
        });
        model::Tree { nodes: nodes.collect() }
    }

    /// Returns whether the tree has no split.
    pub fn is_leaf(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Returns the values of all nodes in whole units of gradients.
    pub fn in_units(&self, units: f64) -> Vec<i64> {
        self.nodes.iter().map(|node| (node.value * units) as i64).collect()
    }

    /// Returns all leaves with their values.
    pub fn leaves(&self) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        self.nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.split.is_none())
            .map(|(id, node)| (id, node.value))
    }

    /// Returns the sorted columns of all features that the tree splits on.
    pub fn columns(&self, binning: &Binning) -> Vec<usize> {
        let mut columns: Vec<usize> = self
            .nodes
            .iter()
            .filter_map(|node| self.place(node, binning))
            .map(|place| place.column)
            .collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    fn place(&self, node: &CodedNode, binning: &Binning) -> Option<crate::bins::FeaturePlace> {
        binning.layout.places[node.split.as_ref()?.0.feature as usize]
    }

    /// Creates a router for a partition. `codes` must include the columns returned by [`CodedTree::columns`].
    pub fn router<'a>(&'a self, binning: &Binning, codes: &'a Codes) -> CodedRouter<'a> {
        let column = |node: &CodedNode| {
            let place = self.place(node, binning)?;
            Some(codes.column(place, &binning.features[node.split.as_ref()?.0.feature as usize]))
        };
        CodedRouter { tree: self, columns: self.nodes.iter().map(column).collect() }
    }
}

impl CodedRouter<'_> {
    /// Returns the tree's prediction for a row.
    #[inline]
    pub fn value(&self, row: u32) -> f64 {
        let mut id = 0;
        loop {
            let node = &self.tree.nodes[id];
            let Some((split, left)) = &node.split else { return node.value };
            // A constant feature has no column, because all rows have code 0.
            let code = self.columns[id].as_ref().map_or(0, |column| column.code(row));
            let Some(child) = split.child_of(code) else { return node.value };
            id = left + child;
        }
    }
}
