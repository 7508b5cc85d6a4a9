//! Describes the costs of a model that was trained with `--costs`: by tree and by feature.

use planetree_base::size::shown_count;
use planetree_model::cost::{CostTable, FeatureCosts, TreeCosts};
use planetree_model::model::Model;
use serde_json::{Value, json};
use std::fmt::Write;

/// Prefix of the line in which the configuration of a model records the costs.
const RECORD: &str = "# feature_costs = ";

/// The costs of a model.
pub(super) struct ModelCosts {
    features: FeatureCosts,
    trees: TreeCosts,
}

impl ModelCosts {
    /// Returns the costs that a model records. `None` if it was trained without costs.
    pub(super) fn of(model: &Model) -> Option<Self> {
        let record = model.configuration.lines().find_map(|line| line.strip_prefix(RECORD))?;
        let table = CostTable::from_json(record, &model.origin.to_string())?;
        let names: Vec<&str> = model.features.iter().map(|feature| feature.name.as_str()).collect();
        let features = table.of_features(&names, "the model").ok()?;
        let trees = TreeCosts::of(TreeCosts::ensemble(model).ok()?, &features);
        Some(ModelCosts { features, trees })
    }

    /// Returns the used features by the tree that uses them first.
    fn used(&self) -> Vec<(usize, u32)> {
        let first = self.trees.first_use.iter().enumerate();
        let mut used: Vec<(usize, u32)> =
            first.filter_map(|(feature, tree)| Some(((*tree)?, feature as u32))).collect();
        used.sort_unstable();
        used
    }

    fn cumulative(&self) -> f64 {
        self.trees.trees.last().map_or(0.0, |tree| tree.cumulative)
    }

    /// Appends the costs: those of the whole model, and up to `top` features.
    pub(super) fn put(&self, text: &mut String, model: &Model, top: usize) {
        let mean = self.trees.trees.last().map_or(0.0, |tree| tree.mean);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\ncost of a document: {} (1 per tree, and every feature once); mean tree cost {mean:.4}",
            self.cumulative()
        );
        let _ = writeln!(text, "{:<22} {:>12} {:>12} {:>16}", "feature", "cost", "first tree", "cost so far");
        let used = self.used();
        for (tree, feature) in used.iter().take(top) {
            let name = &model.features[*feature as usize].name;
            let so_far = self.trees.trees[*tree].cumulative;
            let _ = writeln!(text, "{name:<22} {:>12} {tree:>12} {so_far:>16}", self.features.of(*feature));
        }
        if used.len() > top {
            let _ =
                writeln!(text, "... and {} more; --top shows more", shown_count((used.len() - top) as u64));
        }
    }

    /// Returns the costs of all trees and used features.
    pub(super) fn json(&self, model: &Model) -> Value {
        let trees = self.trees.trees.iter().map(|tree| {
            json!({ "own": tree.own, "added": tree.added, "cumulative": tree.cumulative, "mean": tree.mean })
        });
        let features = self.used().into_iter().map(|(tree, feature)| {
            let name = &model.features[feature as usize].name;
            json!({ "feature": name, "cost": self.features.of(feature), "first_tree": tree })
        });
        json!({
            "cumulative": self.cumulative(),
            "trees": trees.collect::<Vec<_>>(),
            "features": features.collect::<Vec<_>>(),
        })
    }
}
