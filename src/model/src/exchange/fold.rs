//! Folds the parts of a model into a single ensemble of trees, because models of other programs do not have parts.
//!
//! If a model has a single part with weight 1 and no intercept, the part is used unchanged, and folding does not
//! change scores. Otherwise every tree value is multiplied by the weight of its part. If several parts become one
//! sum, the values of a part that is a mean are also divided by its number of trees. The results are rounded, so
//! scores agree to about fifteen digits.

use crate::model::{Combine, Model, Node, Tree, TreeEnsemble};
use std::borrow::Cow;

/// A model whose parts are folded into one ensemble of trees.
pub(super) struct FoldedModel<'a> {
    /// The ensemble. Use `base_features` instead of its own `base_feature`.
    pub ensemble: Cow<'a, TreeEnsemble>,
    /// The features whose values are added to the score, each with the factor by which its value is multiplied.
    pub base_features: Vec<(u32, f64)>,
}

/// Folds the parts of a model. All parts must be sums or means of trees without normalisation.
pub(super) fn folded(model: &Model) -> FoldedModel<'_> {
    let parts = || model.parts.iter().filter_map(|part| Some((part.weight, part.family.trees()?)));
    let base_features =
        parts().filter_map(|(weight, ensemble)| Some((ensemble.base_feature?, weight))).collect();
    if let Some(ensemble) = model.only_trees() {
        return FoldedModel { ensemble: Cow::Borrowed(ensemble), base_features };
    }
    let is_single_mean = model.parts.len() == 1 && parts().all(|(_, part)| part.combine == Combine::Mean);
    let combine = if is_single_mean { Combine::Mean } else { Combine::Sum };
    let mut sum = TreeEnsemble::new(combine, model.intercept, None, Vec::new());
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
    /// Returns one message for each feature whose value is added to the score, because `program` cannot add feature
    /// values. `remedy` tells users of that program what to do instead.
    pub(super) fn losses(&self, model: &Model, program: &str, remedy: &str) -> Vec<String> {
        let loss = |(feature, weight): &(u32, f64)| {
            let name = &model.features[*feature as usize].name;
            let times = if *weight == 1.0 { String::new() } else { format!(" times {weight}") };
            format!("scores include the value of feature {name}{times}, which {program} cannot add: {remedy}")
        };
        self.base_features.iter().map(loss).collect()
    }
}
