//! Validation of models. It runs whenever a model is read or written, so prediction needs no checks of its own and
//! always terminates.

use super::tree::{Branch, Split, Tree};
use super::{Model, ModelFeature};
use std::collections::HashSet;

impl Model {
    /// Describes the first problem of the model, or returns `None` if it is valid.
    pub(crate) fn fault(&self) -> Option<String> {
        if !self.base_score.is_finite() {
            return Some(format!("the base score is {}", self.base_score));
        }
        let mut names = HashSet::new();
        for ModelFeature { name, fill, words } in &self.features {
            if !names.insert(name) {
                return Some(format!("duplicate feature name {name}"));
            }
            if fill.is_some_and(|fill| !fill.is_finite()) {
                return Some(format!("the fill value of feature {name} is not finite"));
            }
            let mut seen = HashSet::new();
            if let Some(word) = words.iter().find(|word| !seen.insert(*word)) {
                return Some(format!("category {word:?} of feature {name} has two codes"));
            }
        }
        let features = self.features.len();
        if self.base_feature.is_some_and(|feature| feature as usize >= features) {
            return Some("base_feature refers to a feature that does not exist".to_owned());
        }
        self.trees.iter().enumerate().find_map(|(number, tree)| {
            tree.fault(features).map(|(node, problem)| format!("tree {number}, node {node}: {problem}"))
        })
    }
}

impl Tree {
    /// Describes the first problem of the tree, with the node that has it, or returns `None` if the tree is valid.
    pub(super) fn fault(&self, features: usize) -> Option<(usize, String)> {
        if self.nodes.is_empty() {
            return Some((0, "the tree has no nodes".to_owned()));
        }
        // The depth of each node according to its parent.
        let mut depths: Vec<Option<u32>> = vec![None; self.nodes.len()];
        depths[0] = Some(0);
        for (number, node) in self.nodes.iter().enumerate() {
            let values = [("value", node.value), ("cover", node.cover)];
            if let Some((name, value)) = values.iter().find(|(_, value)| !value.is_finite()) {
                return Some((number, format!("the {name} is {value}")));
            }
            // Parents come before their children, so the depth is known by now.
            match depths[number] {
                None => return Some((number, "the node has no parent".to_owned())),
                Some(depth) if depth != node.depth => {
                    return Some((number, format!("the depth is {}, expected {depth}", node.depth)));
                }
                Some(_) => {}
            }
            let Some(split) = &node.split else { continue };
            if let Some(problem) = split.fault(features) {
                return Some((number, problem));
            }
            for child in split.children() {
                match depths.get_mut(child as usize).filter(|_| child as usize > number) {
                    None => return Some((number, format!("invalid child: {child}"))),
                    Some(Some(_)) => return Some((number, format!("child {child} has two parents"))),
                    Some(depth) => *depth = Some(node.depth + 1),
                }
            }
        }
        None
    }
}

impl Split {
    /// The child nodes: left, right and, if present, middle.
    pub fn children(&self) -> impl Iterator<Item = u32> {
        [Some(self.left), Some(self.right), self.middle].into_iter().flatten()
    }

    fn fault(&self, features: usize) -> Option<String> {
        if self.feature as usize >= features {
            return Some(format!("unknown feature {}", self.feature));
        }
        if !self.threshold.is_finite() {
            return Some(format!("the threshold is {}", self.threshold));
        }
        if !self.gain.is_finite() {
            return Some(format!("the gain is {}", self.gain));
        }
        if (self.missing == Branch::Middle) != self.middle.is_some() {
            return Some(
                "a middle child is required if missing values go there, and not allowed otherwise".to_owned(),
            );
        }
        None
    }
}
