//! What every model must satisfy, whoever made it: then prediction needs no checks of its own, and
//! always comes to an end.

use super::tree::{Branch, Split, Tree};
use super::{Model, ModelFeature};
use std::collections::HashSet;

impl Model {
    /// The first thing that is wrong with the model, if there is any.
    pub(crate) fn fault(&self) -> Option<String> {
        if !self.base_score.is_finite() {
            return Some(format!("the base score is {}", self.base_score));
        }
        let mut names = HashSet::new();
        for ModelFeature { name, fill, words } in &self.features {
            if !names.insert(name) {
                return Some(format!("two features are called {name}"));
            }
            if fill.is_some_and(|fill| !fill.is_finite()) {
                return Some(format!("missing values of feature {name} are filled with no finite number"));
            }
            let mut met = HashSet::new();
            if let Some(word) = words.iter().find(|word| !met.insert(*word)) {
                return Some(format!("the word {word:?} of feature {name} has two codes"));
            }
        }
        let features = self.features.len();
        if self.base_feature.is_some_and(|feature| feature as usize >= features) {
            return Some("its scores start from a feature that it does not have".to_owned());
        }
        self.trees.iter().enumerate().find_map(|(place, tree)| {
            tree.fault(features).map(|(node, problem)| format!("tree {place}, node {node}: {problem}"))
        })
    }
}

impl Tree {
    /// The first thing that is wrong with the tree, and the node it is wrong with.
    pub(super) fn fault(&self, features: usize) -> Option<(usize, String)> {
        if self.nodes.is_empty() {
            return Some((0, "there is no such node".to_owned()));
        }
        // The depth that each node's parent asks for.
        let mut depths: Vec<Option<u32>> = vec![None; self.nodes.len()];
        depths[0] = Some(0);
        for (place, node) in self.nodes.iter().enumerate() {
            let numbers = [("value", node.value), ("cover", node.cover)];
            if let Some((name, number)) = numbers.iter().find(|(_, number)| !number.is_finite()) {
                return Some((place, format!("its {name} is {number}")));
            }
            // Parents come first, so the depth is known by now.
            match depths[place] {
                None => return Some((place, "no other node leads to it".to_owned())),
                Some(depth) if depth != node.depth => {
                    return Some((place, format!("its depth is {}, not {depth}", node.depth)));
                }
                Some(_) => {}
            }
            let Some(split) = &node.split else { continue };
            if let Some(problem) = split.fault(features) {
                return Some((place, problem));
            }
            for child in split.children() {
                match depths.get_mut(child as usize).filter(|_| child as usize > place) {
                    None => return Some((place, format!("node {child} cannot be its child"))),
                    Some(Some(_)) => return Some((place, format!("its child {child} has two parents"))),
                    Some(depth) => *depth = Some(node.depth + 1),
                }
            }
        }
        None
    }
}

impl Split {
    /// The nodes below: left, right and, if there is one, middle.
    pub fn children(&self) -> impl Iterator<Item = u32> {
        [Some(self.left), Some(self.right), self.middle].into_iter().flatten()
    }

    fn fault(&self, features: usize) -> Option<String> {
        if self.feature as usize >= features {
            return Some(format!("there is no feature {}", self.feature));
        }
        if !self.threshold.is_finite() {
            return Some(format!("its threshold is {}", self.threshold));
        }
        if !self.gain.is_finite() {
            return Some(format!("its gain is {}", self.gain));
        }
        if (self.missing == Branch::Middle) != self.middle.is_some() {
            return Some("it has a middle branch exactly if missing values go there".to_owned());
        }
        None
    }
}
