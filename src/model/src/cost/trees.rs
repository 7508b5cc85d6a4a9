//! Adds up the costs of a model, tree by tree.

use super::features::{FeatureCosts, PaidFeatures};
use crate::model::{Combine, Model, TreeEnsemble};
use planetree_base::error::{Error, Result};

/// The costs of one tree, and of all trees up to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeCost {
    /// Cost of the features of the tree, as if no other tree had used them (eq. 6.3 of the thesis).
    pub own: f64,
    /// Cost of the features that no earlier tree has used.
    pub added: f64,
    /// Cost of scoring a document with the trees up to this one: 1 per tree, and every feature when it is first used.
    pub cumulative: f64,
    /// Mean cost of the trees up to this one (eq. 6.4).
    pub mean: f64,
}

/// The costs of the trees of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeCosts {
    /// The costs of each tree, in order.
    pub trees: Vec<TreeCost>,
    /// For each feature, the index of the first tree that uses it. `None` if no tree does.
    pub first_use: Vec<Option<usize>>,
}

impl TreeCosts {
    /// Computes the costs of the trees of an ensemble.
    pub fn of(ensemble: &TreeEnsemble, costs: &FeatureCosts) -> Self {
        let mut paid = PaidFeatures::new(costs.clone());
        let mut first_use = vec![None; costs.features()];
        // The feature of the base score is computed before the first tree.
        let mut cumulative = paid.pay(ensemble.base_feature.into_iter());
        let mut sum = 0.0;
        let trees = ensemble.trees.iter().enumerate().map(|(number, tree)| {
            let used = tree.used_features();
            for feature in &used {
                first_use[*feature as usize].get_or_insert(number);
            }
            let own = costs.total(used.iter().copied());
            let added = paid.pay(used.into_iter());
            cumulative += 1.0 + added;
            sum += own;
            TreeCost { own, added, cumulative, mean: sum / (number + 1) as f64 }
        });
        TreeCosts { trees: trees.collect(), first_use }
    }

    /// Returns the trees of a model whose costs are defined: a single ensemble of trees that score documents.
    pub fn ensemble(model: &Model) -> Result<&TreeEnsemble> {
        let otherwise = "costs are defined only for a model that is a single ensemble of trees";
        ordered_trees(model, otherwise, REMEDY)
    }
}

const REMEDY: &str = "use a boosted model or a forest with one stage, without classes, runs or blending";

/// Returns the trees of a model that are evaluated one after the other, each for a document alone: those of a single
/// ensemble. `otherwise` is the problem if the model consists of more or of something else.
pub(crate) fn ordered_trees<'a>(model: &'a Model, otherwise: &str, remedy: &str) -> Result<&'a TreeEnsemble> {
    let problem = match model.only_trees() {
        Some(ensemble) if ensemble.combine != Combine::Wins => return Ok(ensemble),
        Some(_) => {
            "a pairwise model scores documents by comparing them, so its trees have no order of evaluation"
        }
        None => otherwise,
    };
    Err(Error::place(&model.origin, problem, remedy))
}
