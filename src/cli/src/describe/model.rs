//! Describes a model: its parts, training data, parameters and feature importance.

use super::model_costs;
use super::weights::{layers_as_text, weights_as_text};
use super::{TableDescription, line, short};
use planetree_base::error::Result;
use planetree_base::size::{counted, shown_count};
use planetree_data::table::TableReader;
use planetree_model::cost::ModelCosts;
use planetree_model::model::{
    FeatureImportance, FeatureNormalisation, Model, ModelFeature, Part, PartFamily, Tree,
};
use serde_json::{Value, json};
use std::fmt::Write;

/// Default of `--top`.
const TOP: usize = 20;

/// Describes a model.
pub(super) fn describe(table: &TableReader, top: Option<usize>) -> Result<TableDescription> {
    let model = Model::from_table(table)?;
    let summary = ModelSummary::of(&model);
    let mut text = as_text(table, &model, &summary, top.unwrap_or(TOP));
    if let Some(costs) = ModelCosts::recorded(&model) {
        model_costs::put(&costs, &mut text, &model, top.unwrap_or(TOP));
    }
    Ok(TableDescription { text, json: as_json(table, &model, &summary, top.unwrap_or(usize::MAX)) })
}

/// Statistics of all trees of a model.
struct ModelSummary {
    /// Minimum, mean and maximum number of leaves of a tree.
    leaves: Option<(usize, f64, usize)>,
    depth: u32,
    /// Features with a split, most important first.
    used: Vec<FeatureImportance>,
    gain: f64,
}

impl ModelSummary {
    fn of(model: &Model) -> Self {
        let leaves: Vec<usize> = model.trees().map(leaf_count).collect();
        let mean = leaves.iter().sum::<usize>() as f64 / leaves.len().max(1) as f64;
        let extremes = leaves.iter().min().zip(leaves.iter().max());
        let nodes = model.trees().flat_map(|tree| &tree.nodes);
        let used: Vec<_> = model.importance().into_iter().filter(|feature| feature.splits > 0).collect();
        ModelSummary {
            leaves: extremes.map(|(least, most)| (*least, mean, *most)),
            depth: nodes.map(|node| node.depth).max().unwrap_or(0),
            gain: used.iter().map(|feature| feature.gain).sum(),
            used,
        }
    }

    fn share(&self, feature: &FeatureImportance) -> f64 {
        if self.gain > 0.0 { feature.gain / self.gain } else { 0.0 }
    }
}

fn categorical_features(model: &Model) -> impl Iterator<Item = &ModelFeature> {
    model.features.iter().filter(|feature| !feature.words.is_empty())
}

fn leaf_count(tree: &Tree) -> usize {
    tree.nodes.iter().filter(|node| node.split.is_none()).count()
}

fn as_json(table: &TableReader, model: &Model, summary: &ModelSummary, top: usize) -> Value {
    let importance: Vec<Value> = summary
        .used
        .iter()
        .take(top)
        .map(|feature| {
            json!({
                "feature": model.features[feature.feature as usize].name,
                "gain": feature.gain,
                "gain_share": summary.share(feature),
                "cover": feature.cover,
                "splits": feature.splits,
            })
        })
        .collect();
    json!({
        "model": table.location().to_string(),
        "writer": table.metadata("planetree.writer"),
        "intercept": model.intercept,
        "parts": model.parts.iter().map(part_as_json).collect::<Vec<_>>(),
        "groups": model.groups,
        "trees": model.trees().count(),
        "leaves": summary.leaves.map(|(min, mean, max)| json!({ "min": min, "mean": mean, "max": max })),
        "depth": summary.depth,
        "rounds": model.rounds,
        "start_scores": model.start_scores,
        "features": model.features.len(),
        "features_used": summary.used.len(),
        "categories": categorical_features(model)
            .map(|feature| json!({ "feature": feature.name, "words": feature.words }))
            .collect::<Vec<_>>(),
        "data": model.data,
        "configuration": model.configuration,
        "importance": importance,
        "costs": ModelCosts::recorded(model).map(|costs| model_costs::json(&costs, model)),
    })
}

fn as_text(table: &TableReader, model: &Model, summary: &ModelSummary, top: usize) -> String {
    let mut text = String::new();
    line(&mut text, "model", table.location());
    line(&mut text, "written by", table.metadata("planetree.writer").unwrap_or("-"));
    let rounds = counted(model.rounds.into(), "round", "rounds");
    if model.parts.iter().any(|part| part.family.trees().is_some()) {
        let trees = shown_count(model.trees().count() as u64);
        line(&mut text, "trees", format_args!("{trees} ({rounds} trained)"));
        if let Some((least, mean, most)) = summary.leaves {
            line(&mut text, "leaves per tree", format_args!("min {least}  mean {}  max {most}", short(mean)));
        }
        line(&mut text, "depth", format_args!("max {}", summary.depth));
    } else {
        line(&mut text, "rounds trained", shown_count(model.rounds.into()));
    }
    line(&mut text, "intercept", model.intercept);
    if let Some(digest) = model.start_scores {
        let text = &mut text;
        line(
            text,
            "start scores",
            format_args!("{digest}; not part of the model, its value is added to them"),
        );
    }
    let all = shown_count(model.features.len() as u64);
    line(&mut text, "features used", format_args!("{} of {all}", shown_count(summary.used.len() as u64)));
    let words: Vec<String> = categorical_features(model)
        .map(|feature| format!("{} ({})", feature.name, shown_count(feature.words.len() as u64)))
        .collect();
    if !words.is_empty() {
        line(&mut text, "categorical features", words.join(", "));
    }
    for data in &model.data {
        let rows = counted(data.rows, "row", "rows");
        let queries = counted(data.queries, "query", "queries");
        let name = if data.name == "train" { "trained on" } else { &data.name };
        line(&mut text, name, format_args!("{rows}, {queries}, {}", data.fingerprint));
    }
    text.push('\n');
    text.push_str(&parts_as_text(model));
    text.push_str(&groups_as_text(model));
    if !model.configuration.trim().is_empty() {
        text.push_str("\nconfiguration\n");
        for parameter in model.configuration.lines() {
            let _ = writeln!(text, "  {parameter}");
        }
    }
    if !summary.used.is_empty() && top > 0 {
        text.push('\n');
        text.push_str(&importance_as_text(model, summary, top));
        text.push_str(&weights_as_text(model, top));
        text.push_str(&layers_as_text(model));
    }
    text
}

/// Returns the kind of a part (a term of the model's sum) and its main settings: how trees are combined, and how
/// features are normalised.
fn kind_of(part: &Part) -> String {
    let kind = part.family.kind();
    match &part.family {
        PartFamily::Trees(ensemble) => match ensemble.normalisation {
            FeatureNormalisation::None => format!("{kind}: {}", ensemble.combine.name()),
            normalisation => format!("{kind}: {}, {}", ensemble.combine.name(), normalisation.name()),
        },
        PartFamily::Linear(function) => format!("{kind}: {}", function.normalisation.name()),
        PartFamily::Net(net) => format!("{kind}: {}", net.normalisation.name()),
    }
}

fn part_as_json(part: &Part) -> Value {
    let mut json = json!({
        "name": part.name,
        "kind": part.family.kind(),
        "weight": part.weight,
        "normalisation": part.normalisation,
        "configuration": part.configuration,
        "role": part.role,
        "rows": part.family.row_count(),
        "trees": part.family.trees().map(|ensemble| ensemble.trees.len()),
    });
    json.as_object_mut().into_iter().for_each(|object| object.extend(part.family.settings()));
    json
}

fn parts_as_text(model: &Model) -> String {
    let width = model.parts.iter().map(|part| part.name.chars().count()).max().unwrap_or(0).clamp(4, 40);
    let mut text = format!(
        "{:<5} {:<width$} {:<12} {:>12} {:<14} {:>8} {:>22}\n",
        "part", "name", "kind", "weight", "normalisation", "trees", "base score"
    );
    for (number, part) in model.parts.iter().enumerate() {
        let ensemble = part.family.trees();
        let trees = ensemble.map_or("-".to_owned(), |ensemble| shown_count(ensemble.trees.len() as u64));
        let base = part.family.settings().get("base_score").and_then(Value::as_f64);
        let base = base.map_or("-".to_owned(), |base| base.to_string());
        let (name, kind) = (&part.name, kind_of(part));
        let (weight, normalisation) = (part.weight, part.normalisation.name());
        let _ = writeln!(
            text,
            "{number:<5} {name:<width$} {kind:<12} {weight:>12} {normalisation:<14} {trees:>8} {base:>22}"
        );
    }
    text
}

/// Lists the groups of parts: each is one term of the score, or of the group that contains it.
fn groups_as_text(model: &Model) -> String {
    if model.groups.is_empty() {
        return String::new();
    }
    let width = model.groups.iter().map(|group| group.name.chars().count()).max().unwrap_or(0).clamp(4, 40);
    let mut text = format!(
        "\n{:<5} {:<width$} {:<12} {:>12} {:<14} {:>8} {:>22}\n",
        "group", "name", "link", "weight", "normalisation", "parts", "intercept"
    );
    for (number, group) in model.groups.iter().enumerate() {
        let (name, link, weight, normalisation) =
            (&group.name, group.link.name(), group.weight, group.normalisation.name());
        let (range, intercept) = (group.range(), group.intercept);
        let parts = format!("{}-{}", range.start, range.end - 1);
        let _ = writeln!(
            text,
            "{number:<5} {name:<width$} {link:<12} {weight:>12} {normalisation:<14} {parts:>8} {intercept:>22}"
        );
    }
    text
}

fn importance_as_text(model: &Model, summary: &ModelSummary, top: usize) -> String {
    let shown = &summary.used[..top.min(summary.used.len())];
    let name = |feature: &FeatureImportance| model.features[feature.feature as usize].name.as_str();
    let width = shown.iter().map(|feature| name(feature).chars().count()).max().unwrap_or(0).clamp(7, 40);
    let mut text =
        format!("{:<width$} {:>12} {:>9} {:>14} {:>9}\n", "feature", "gain", "share", "cover", "splits");
    for feature in shown {
        let _ = writeln!(
            text,
            "{:<width$} {:>12} {:>7.2} % {:>14} {:>9}",
            name(feature),
            short(feature.gain),
            100.0 * summary.share(feature),
            short(feature.cover),
            shown_count(feature.splits),
        );
    }
    let hidden = summary.used.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(text, "... and {hidden} more; --top {} shows all", summary.used.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::storage::Location;
    use planetree_data::table::TableKind;
    use planetree_model::model::example;

    fn described(top: Option<usize>) -> Result<TableDescription> {
        let root = tempfile::tempdir().unwrap();
        let location = Location::Local(root.path().join("model"));
        example().write(&location).unwrap();
        describe(&TableReader::open(&location, TableKind::Model).unwrap(), top)
    }

    #[test]
    fn a_model_is_described() {
        let TableDescription { text, json } = described(None).unwrap();
        for expected in [
            "trees                 3 (12 rounds trained)\n",
            "leaves per tree       min 1  mean 2.3333  max 4\n",
            "depth                 max 2\n",
            "intercept             0\n",
            "\n0     trees trees: sum              1 none                  3    0.30000000000000004\n",
            "features used         2 of 3\n",
            " rows, 9 queries, ",
            "\nconfiguration\n  num_trees = 3\n  learning_rate = 0.1\n",
            "f3            3.5000   63.64 %            110         2\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
        }
        assert_eq!((&json["parts"][0]["combine"], &json["features_used"]), (&json!("sum"), &json!(2)));
        assert_eq!(json["importance"][1]["feature"], "f1");
    }

    #[test]
    fn only_the_top_features_are_shown() {
        let TableDescription { text, json } = described(Some(1)).unwrap();
        assert!(text.ends_with("... and 1 more; --top 2 shows all\n"), "{text}");
        assert_eq!(json["importance"].as_array().map(Vec::len), Some(1));
    }
}
