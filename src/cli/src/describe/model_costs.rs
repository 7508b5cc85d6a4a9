//! Describes the costs of a model that was trained with `--costs`: by tree and by feature.

use planetree_base::size::shown_count;
use planetree_model::cost::{ModelCosts, TreeCost};
use planetree_model::model::Model;
use serde_json::{Value, json};
use std::fmt::Write;

/// Appends the costs: those of the whole model, and up to `top` features and trees.
pub(super) fn put(costs: &ModelCosts, text: &mut String, model: &Model, top: usize) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\ncost of a document: {} (1 per tree, and every feature once); mean tree cost {:.4}",
        costs.cumulative(),
        costs.mean()
    );
    let _ = writeln!(text, "{:<22} {:>12} {:>12} {:>16}", "feature", "cost", "first tree", "cost so far");
    let used = costs.used();
    for (tree, feature) in used.iter().take(top) {
        let name = &model.features[*feature as usize].name;
        let so_far = costs.trees.trees[*tree].cumulative;
        let _ = writeln!(text, "{name:<22} {:>12} {tree:>12} {so_far:>16}", costs.features.of(*feature));
    }
    more(text, used.len(), top);
    let _ = writeln!(
        text,
        "\n{:<22} {:>12} {:>12} {:>16}",
        "tree that adds costs", "its features", "added", "cost so far"
    );
    let adding: Vec<(usize, &TreeCost)> =
        costs.trees.trees.iter().enumerate().filter(|(_, tree)| tree.added > 0.0).collect();
    for (number, TreeCost { own, added, cumulative, .. }) in adding.iter().take(top) {
        let _ = writeln!(text, "{number:<22} {own:>12} {added:>12} {cumulative:>16}");
    }
    more(text, adding.len(), top);
}

/// Appends how many rows are not shown.
fn more(text: &mut String, all: usize, top: usize) {
    if all > top {
        let _ = writeln!(text, "... and {} more; --top shows more", shown_count((all - top) as u64));
    }
}

/// Returns the costs of all trees and used features.
pub(super) fn json(costs: &ModelCosts, model: &Model) -> Value {
    let trees = costs.trees.trees.iter().map(|tree| {
        json!({ "own": tree.own, "added": tree.added, "cumulative": tree.cumulative, "mean": tree.mean })
    });
    let features = costs.used().into_iter().map(|(tree, feature)| {
        let name = &model.features[feature as usize].name;
        json!({ "feature": name, "cost": costs.features.of(feature), "first_tree": tree })
    });
    json!({
        "cumulative": costs.cumulative(),
        "trees": trees.collect::<Vec<_>>(),
        "features": features.collect::<Vec<_>>(),
    })
}
