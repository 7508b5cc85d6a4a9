//! Folds a weighted sum of tree parts into one ensemble, for programs that have only one.
//!
//! A single part without weight and intercept is exported as it is, to the bit. Otherwise every value of a tree is
//! multiplied by the weight of its part, and, if several parts become one sum, divided by the number of trees of a mean.
//! The products and their sums are rounded, so scores agree to about fifteen digits.

use crate::model::{Combine, Model, Node, Tree, TreeEnsemble};
use std::borrow::Cow;

/// A model as one ensemble of trees.
pub struct FoldedModel<'a> {
    /// The ensemble, without base feature.
    pub ensemble: Cow<'a, TreeEnsemble>,
    /// The features whose values are added to the score, with their factors.
    pub base_features: Vec<(u32, f64)>,
}

/// Folds the parts of a model, all of which are sums or means of trees without normalisation.
pub fn folded(model: &Model) -> FoldedModel<'_> {
    let parts = || model.parts.iter().filter_map(|part| Some((part.weight, part.family.trees()?)));
    let base_features =
        parts().filter_map(|(weight, ensemble)| Some((ensemble.base_feature?, weight))).collect();
    if let Some(ensemble) = model.only_trees() {
        return FoldedModel { ensemble: Cow::Borrowed(ensemble), base_features };
    }
    let is_single_mean = model.parts.len() == 1 && parts().all(|(_, part)| part.combine == Combine::Mean);
    let mut sum = TreeEnsemble {
        combine: if is_single_mean { Combine::Mean } else { Combine::Sum },
        base_score: model.intercept,
        base_feature: None,
        trees: Vec::new(),
    };
    for (weight, ensemble) in parts() {
        sum.base_score += weight * ensemble.base_score;
        let scale = if is_single_mean { weight } else { weight * ensemble.tree_weight() };
        sum.trees.extend(ensemble.trees.iter().map(|tree| scaled(tree, scale)));
    }
    FoldedModel { ensemble: Cow::Owned(sum), base_features }
}

fn scaled(tree: &Tree, scale: f64) -> Tree {
    let node = |node: &Node| Node { value: node.value * scale, ..node.clone() };
    Tree { nodes: tree.nodes.iter().map(node).collect() }
}

impl FoldedModel<'_> {
    /// The loss for every feature that is added to the score, which `program` cannot do; `remedy` says what to do there.
    pub fn losses(&self, model: &Model, program: &str, remedy: &str) -> Vec<String> {
        let loss = |(feature, weight): &(u32, f64)| {
            let name = &model.features[*feature as usize].name;
            let times = if *weight == 1.0 { String::new() } else { format!(" times {weight}") };
            format!("scores include the value of feature {name}{times}, which {program} cannot add: {remedy}")
        };
        self.base_features.iter().map(loss).collect()
    }
}
