//! The models of Solr's learning-to-rank module: `MultipleAdditiveTreesModel` and `LinearModel`.
//!
//! Solr adds 0.000001 to every threshold, in 32-bit floats, and then tests `x <= t`. So the threshold that is written must
//! give the wanted one after that addition. Some numbers near 0 are the sum of 0.000001 and no other 32-bit float; then
//! the nearest one is written, and the loss is reported.

use super::feature_index::FeatureIndex;
use super::json_text::{JsonText, JsonValue, ROOT};
use super::nested::{Visit, visit_nested};
use super::portable::{PortableLinear, PortableTrees, single};
use super::verify::served::{
    Rules, ServedLinear, ServedModel, ServedNode, ServedSplit, ServedTrees, Sum, as_is, at_most,
    missing_as_zero,
};
use super::xgboost::dump::quoted_names;
use super::{ExportOptions, ExportedModel, LINEAR, TREES};
use crate::model::{Model, ModelFeature};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What Solr adds to every threshold.
const SLACK: f32 = 1e-6;
const TREES_CLASS: &str = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel";
const LINEAR_CLASS: &str = "org.apache.solr.ltr.model.LinearModel";
/// Start of every file. Solr ignores the key.
const START: &str = "{\"planetree\":\"";

/// Returns whether a file was written by [`export`].
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(START.as_bytes())
        && memchr::memmem::find(bytes, b"org.apache.solr.ltr.model.").is_some()
}

/// Returns the kind of model in a file.
pub(super) fn kind(bytes: &[u8]) -> &'static str {
    if memchr::memmem::find(bytes, LINEAR_CLASS.as_bytes()).is_some() { LINEAR } else { TREES }
}

/// Writes a model.
pub(super) fn export(model: &Model, options: &ExportOptions) -> ExportedModel {
    if options.kind == LINEAR { linear(model, options) } else { trees(model, options) }
}

fn header(class: &str, features: &[String], options: &ExportOptions) -> String {
    let features: Vec<String> = features.iter().map(|name| format!("{{\"name\":{name}}}")).collect();
    let name = serde_json::to_string(&options.name).expect("strings can be written as JSON");
    format!(
        "{START}{}\",\"class\":\"{class}\",\"name\":{name},\"features\":[{}],\"params\":{{",
        env!("CARGO_PKG_VERSION"),
        features.join(",")
    )
}

fn trees(model: &Model, options: &ExportOptions) -> ExportedModel {
    let portable = PortableTrees::of(model, "Solr").into_sum().with_base_tree();
    let mut losses = portable.losses.clone();
    let names = quoted_names(&model.features);
    let splits = || portable.trees.iter().flatten().filter_map(|node| node.split.as_ref());
    // Directions for missing values need a newer Solr, so they are written only if 0 would go elsewhere.
    let has_directions =
        splits().any(|split| !split.zero_filled && split.missing_left != (0.0 <= split.threshold));
    let missed: Vec<f32> =
        splits().map(|split| split.threshold).filter(|threshold| solr_threshold(*threshold).1).collect();
    if let Some(first) = missed.first() {
        losses.push(format!(
            "{} thresholds cannot be written exactly, because Solr adds 0.000001 to each (the first is {first:?}; the nearest is \
             {:?}): train with other values of the feature, such as multiples of it",
            missed.len(),
            solr_threshold(*first).0 + SLACK
        ));
    }
    let mut text = header(TREES_CLASS, &names, options);
    let mut notes = Vec::new();
    if has_directions {
        text.push_str("\"isNullSameAsZero\":\"false\",");
        notes.push(
            "missing values have directions of their own (isNullSameAsZero is false): give the features in Solr's feature \
             store the parameter \"defaultValue\":\"NaN\""
                .to_owned(),
        );
    }
    text.push_str("\"trees\":[");
    for (number, nodes) in portable.trees.iter().enumerate() {
        text.push_str(if number > 0 { ",\n" } else { "\n" });
        text.push_str("{\"weight\":\"1\",\"root\":");
        visit_nested(nodes, &mut |_, visit| {
            let _ = match visit {
                Visit::Leaf(leaf) => write!(text, "{{\"value\":\"{:?}\"}}", single(leaf.value)),
                Visit::Open(split) => {
                    let missing = match (has_directions, split.missing_left) {
                        (false, _) => "",
                        (true, true) => "\"missing\":\"left\",",
                        (true, false) => "\"missing\":\"right\",",
                    };
                    write!(
                        text,
                        "{{\"feature\":{},\"threshold\":\"{:?}\",{missing}\"left\":",
                        names[split.feature as usize],
                        solr_threshold(split.threshold).0
                    )
                }
                Visit::Between => write!(text, ",\"right\":"),
                Visit::Close => write!(text, "}}"),
            };
        });
        text.push('}');
    }
    text.push_str("]}}\n");
    ExportedModel { bytes: text.into_bytes(), notes, losses }
}

/// Returns the number to write for a threshold, and whether Solr's sum is another number than the threshold.
fn solr_threshold(threshold: f32) -> (f32, bool) {
    let mut nearest = threshold - SLACK;
    let mut candidate = nearest;
    for _ in 0..4 {
        candidate = candidate.next_down();
    }
    for _ in 0..9 {
        let distance = |written: f32| f64::from(written + SLACK) - f64::from(threshold);
        if distance(candidate).abs() < distance(nearest).abs() {
            nearest = candidate;
        }
        candidate = candidate.next_up();
    }
    (nearest, nearest + SLACK != threshold)
}

fn linear(model: &Model, options: &ExportOptions) -> ExportedModel {
    let portable = PortableLinear::of(model);
    let names = quoted_names(&model.features);
    let mut text = header(LINEAR_CLASS, &names, options);
    // Every feature needs a weight.
    let weights: BTreeMap<u32, f64> = portable.weights.iter().copied().collect();
    let weight = |(feature, name): (u32, &String)| {
        format!("{name}:{:?}", single(weights.get(&feature).copied().unwrap_or(0.0)))
    };
    let weights: Vec<String> = (0..).zip(&names).map(weight).collect();
    let _ = writeln!(text, "\"weights\":{{{}}}}}}}", weights.join(","));
    let losses = portable.losses(model, "Solr");
    ExportedModel { bytes: text.into_bytes(), notes: portable.constant_note(), losses }
}

/// Reads a file as Solr does.
pub(super) fn served(bytes: &[u8], features: &[ModelFeature]) -> Result<ServedModel, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text")?;
    let json = JsonText::parse(text)?;
    let index = FeatureIndex::new(features);
    let listed = json.list(ROOT, "features")?;
    let listed: Vec<&str> =
        listed.iter().map(|feature| json.text(*feature, "name")).collect::<Result<_, _>>()?;
    let params = json.required(ROOT, "params")?;
    match json.text(ROOT, "class")? {
        LINEAR_CLASS => {
            let weights = json.required(params, "weights")?;
            let weight = |name: &&str| Ok((index.of(name)?, f64::from(json.number(weights, name)? as f32)));
            let weights = listed.iter().map(weight).collect::<Result<_, String>>()?;
            let missing = BTreeMap::new();
            Ok(ServedModel::Linear(ServedLinear { base_score: None, weights, missing, sum: Sum::Single }))
        }
        TREES_CLASS => {
            let is_zero = !matches!(
                json.member(params, "isNullSameAsZero").map(|value| json.value(value)),
                Some(JsonValue::Text(word)) if word == "false"
            );
            let trees = json.list(params, "trees")?;
            let tree = |tree: &usize| {
                let weight = json.number(*tree, "weight")? as f32;
                read_tree(&json, json.required(*tree, "root")?, weight, &listed, &index)
            };
            let trees = trees.iter().map(tree).collect::<Result<_, String>>()?;
            let rules = Rules {
                reads: if is_zero { missing_as_zero } else { as_is },
                goes_left: at_most,
                sum: Sum::Single,
                is_mean: false,
                test: "x <= t in 32 bits, where t includes 0.000001",
                blind: None,
            };
            Ok(ServedModel::Trees(ServedTrees { base_score: 0.0, trees, rules }))
        }
        other => Err(format!("unknown class {other}")),
    }
}

fn read_tree(
    json: &JsonText,
    root: usize,
    weight: f32,
    listed: &[&str],
    features: &FeatureIndex<'_>,
) -> Result<Vec<ServedNode>, String> {
    let mut nodes = Vec::new();
    let mut pending = vec![root];
    while let Some(value) = pending.get(nodes.len()).copied() {
        if json.member(value, "value").is_some() {
            nodes.push(ServedNode::Leaf(f64::from(json.number(value, "value")? as f32 * weight)));
            continue;
        }
        let name = json.text(value, "feature")?;
        if !listed.contains(&name) {
            return Err(format!("feature {name} is not in the list of features, so Solr scores 0"));
        }
        let next = pending.len();
        pending.extend([json.required(value, "left")?, json.required(value, "right")?]);
        nodes.push(ServedNode::Split(ServedSplit {
            feature: features.of(name)?,
            threshold: f64::from(json.number(value, "threshold")? as f32 + SLACK),
            missing_left: json.text(value, "missing").is_ok_and(|side| side == "left"),
            left: next,
            right: next + 1,
        }));
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_survive_the_slack_of_solr() {
        for threshold in [0.0, 1.0, -1.5, 0.5, 1e-6, 3.0e-6, 1e30, -1e30, 123.456, 0.1, 16.0, f32::MAX] {
            let (written, is_missed) = solr_threshold(threshold);
            assert!(!is_missed && written + 1e-6f32 == threshold, "{threshold}: {written}");
        }
        // Just beyond -1, 32-bit floats are too far apart: the sums are -1.0000001 and -0.99999994.
        assert!(solr_threshold(-1.0).1);
        // The sum of 0.000001 and a number near -0.000001 is a multiple of 2^-43, and so are all sums near 0.
        let (written, is_missed) = solr_threshold(1e-45);
        assert!(is_missed && (written + 1e-6f32).abs() < 1e-12, "{written}");
    }
}
