//! The costs of a model that was trained with costs of features: by tree and by feature.

use super::features::FeatureCosts;
use super::table::CostTable;
use super::trees::TreeCosts;
use crate::model::Model;

/// The costs of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCosts {
    /// The costs of its features.
    pub features: FeatureCosts,
    /// The costs of its trees.
    pub trees: TreeCosts,
}

impl ModelCosts {
    /// Returns the costs that a model records. `None` if it was trained without costs.
    pub fn recorded(model: &Model) -> Option<Self> {
        let table = CostTable::of_record(&model.configuration, &model.origin.to_string())?;
        let names: Vec<&str> = model.features.iter().map(|feature| feature.name.as_str()).collect();
        let features = table.of_features(&names, "the model").ok()?;
        let trees = TreeCosts::of(TreeCosts::ensemble(model).ok()?, &features);
        Some(ModelCosts { features, trees })
    }

    /// Returns the used features, each after the index of the tree that uses it first, in the order of these trees.
    pub fn used(&self) -> Vec<(usize, u32)> {
        let first = self.trees.first_use.iter().enumerate();
        let mut used: Vec<(usize, u32)> =
            first.filter_map(|(feature, tree)| Some(((*tree)?, feature as u32))).collect();
        used.sort_unstable();
        used
    }

    /// Returns the cost of scoring a document with all trees.
    pub fn cumulative(&self) -> f64 {
        self.trees.trees.last().map_or(0.0, |tree| tree.cumulative)
    }

    /// Returns the mean cost of the trees.
    pub fn mean(&self) -> f64 {
        self.trees.trees.last().map_or(0.0, |tree| tree.mean)
    }
}
