//! The model files that Vespa's `lightgbm()` and `xgboost()` read: LightGBM's and XGBoost's dumps as JSON.
//!
//! Vespa tests `x < t` in both, although LightGBM's file means `x <= t`. So the next larger 32-bit float is written. Vespa
//! evaluates small trees in 32-bit floats and others in 64-bit floats; for values that are 32-bit floats, both decide the
//! same at such a threshold, whereas the next larger 64-bit float would be rounded back to the threshold.

use super::binary::BinaryNode;
use super::feature_index::FeatureIndex;
use super::json_text::{JsonText, JsonValue, ROOT};
use super::nested::{Visit, visit_nested};
use super::portable::PortableTrees;
use super::verify::served::{Rules, ServedModel, ServedNode, ServedSplit, ServedTrees, Sum, as_is};
use super::xgboost::dump::{START, quoted_names, read_trees, write_tree};
use super::{ExportOptions, ExportedModel};
use crate::model::{Model, ModelFeature};
use std::fmt::Write;

/// Name of the kind for Vespa's `lightgbm()`.
pub(super) const LIGHTGBM: &str = "lightgbm";
/// Name of the kind for Vespa's `xgboost()`.
pub(super) const XGBOOST: &str = "xgboost";

/// The start of a file for `lightgbm()`. Vespa ignores the first key.
const LIGHTGBM_START: &str = "{\"planetree\":\"";

/// Returns whether a file was written by [`export`].
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    let is_lightgbm = || {
        bytes.starts_with(LIGHTGBM_START.as_bytes())
            && memchr::memmem::find(bytes, b"\"tree_info\":[").is_some()
    };
    bytes.strip_prefix(b"[").is_some_and(|rest| rest.starts_with(START.as_bytes())) || is_lightgbm()
}

/// Returns the kind of model in a file.
pub(super) fn kind(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"[") { XGBOOST } else { LIGHTGBM }
}

/// Writes a model.
pub(super) fn export(model: &Model, options: &ExportOptions) -> ExportedModel {
    let portable = PortableTrees::of(model, "Vespa").into_sum().with_base_tree();
    let names = quoted_names(&model.features);
    let text = match options.kind {
        XGBOOST => xgboost_text(&portable.trees, &names),
        _ => lightgbm_text(&portable.trees, &names),
    };
    ExportedModel { bytes: text.into_bytes(), notes: Vec::new(), losses: portable.losses }
}

fn xgboost_text(trees: &[Vec<BinaryNode>], names: &[String]) -> String {
    let mut text = "[".to_owned();
    for (number, nodes) in trees.iter().enumerate() {
        text.push_str(if number > 0 { ",\n" } else { "" });
        write_tree(&mut text, nodes, names, LAST_CUT);
    }
    text.push_str("]\n");
    text
}

fn lightgbm_text(trees: &[Vec<BinaryNode>], names: &[String]) -> String {
    let mut text = format!(
        "{LIGHTGBM_START}{}\",\"name\":\"tree\",\"version\":\"v4\",\"num_class\":1,\"num_tree_per_iteration\":1,\
         \"label_index\":0,\"max_feature_idx\":{},\"objective\":\"regression\",\"average_output\":false,\
         \"feature_names\":[{}],\"monotone_constraints\":[],\"feature_infos\":{{}},\"tree_info\":[",
        env!("CARGO_PKG_VERSION"),
        names.len().max(1) - 1,
        names.join(","),
    );
    for (number, nodes) in trees.iter().enumerate() {
        let leaves = nodes.iter().filter(|node| node.split.is_none()).count();
        let comma = if number > 0 { "," } else { "" };
        let _ = write!(
            text,
            "{comma}\n{{\"tree_index\":{number},\"num_leaves\":{leaves},\"num_cat\":0,\"shrinkage\":1,\"tree_structure\":"
        );
        let (mut splits, mut leaves) = (0, 0);
        visit_nested(nodes, &mut |place, visit| {
            let node = &nodes[place.index];
            let _ = match visit {
                Visit::Leaf(leaf) => {
                    leaves += 1;
                    write!(text, "{{\"leaf_index\":{},\"leaf_value\":{:?}}}", leaves - 1, leaf.value)
                }
                Visit::Open(split) => {
                    splits += 1;
                    write!(
                        text,
                        "{{\"split_index\":{},\"split_feature\":{},\"split_gain\":{:?},\"threshold\":{:?},\
                         \"decision_type\":\"<=\",\"default_left\":{},\"missing_type\":\"NaN\",\"internal_value\":{:?},\
                         \"left_child\":",
                        splits - 1,
                        split.feature,
                        split.gain,
                        next_larger(split.threshold),
                        split.missing_left,
                        node.value
                    )
                }
                Visit::Between => write!(text, ",\"right_child\":"),
                Visit::Close => write!(text, "}}"),
            };
        });
        text.push('}');
    }
    text.push_str("],\"pandas_categorical\":[]}\n");
    text
}

/// A number beyond all 32-bit floats. Vespa reads thresholds as 64-bit floats.
const LAST_CUT: f64 = 2.0 * f32::MAX as f64;

/// Returns the next larger 32-bit float, or a number beyond all of them if there is none.
fn next_larger(threshold: f32) -> f64 {
    if threshold < f32::MAX { f64::from(threshold.next_up()) } else { LAST_CUT }
}

/// Vespa's test. Both precisions must agree that a value goes left.
fn below_in_both(value: f64, split: &ServedSplit) -> bool {
    match value.is_nan() {
        true => split.missing_left,
        false => value < split.threshold && (value as f32) < (split.threshold as f32),
    }
}

/// Reads a file as Vespa does.
pub(super) fn served(bytes: &[u8], features: &[ModelFeature]) -> Result<ServedModel, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text")?;
    let json = JsonText::parse(text)?;
    let index = FeatureIndex::new(features);
    let trees = match kind(bytes) {
        XGBOOST => read_trees(&json, ROOT, &index)?,
        _ => {
            let name = |name: &usize| match json.value(*name) {
                JsonValue::Text(name) => index.of(name),
                _ => Err("a name is not a string".to_owned()),
            };
            let names: Vec<u32> =
                json.list(ROOT, "feature_names")?.iter().map(name).collect::<Result<_, String>>()?;
            let tree = |tree: &usize| read_tree(&json, json.required(*tree, "tree_structure")?, &names);
            json.list(ROOT, "tree_info")?.iter().map(tree).collect::<Result<_, String>>()?
        }
    };
    let rules = Rules {
        reads: as_is,
        goes_left: below_in_both,
        // The leaves of a dump of XGBoost are 32-bit floats.
        sum: if kind(bytes) == XGBOOST { Sum::DoubleThenSingle } else { Sum::Double },
        is_mean: false,
        test: "x < t",
        blind: None,
    };
    Ok(ServedModel::Trees(ServedTrees { base_score: 0.0, trees, rules }))
}

fn read_tree(json: &JsonText, root: usize, names: &[u32]) -> Result<Vec<ServedNode>, String> {
    let mut nodes = Vec::new();
    let mut pending = vec![root];
    while let Some(value) = pending.get(nodes.len()).copied() {
        if json.member(value, "leaf_value").is_some() {
            nodes.push(ServedNode::Leaf(json.number(value, "leaf_value")?));
            continue;
        }
        let feature = names.get(json.number(value, "split_feature")? as usize);
        let next = pending.len();
        pending.extend([json.required(value, "left_child")?, json.required(value, "right_child")?]);
        nodes.push(ServedNode::Split(ServedSplit {
            feature: *feature.ok_or("a split uses a feature that is not listed")?,
            threshold: json.number(value, "threshold")?,
            missing_left: *json.value(json.required(value, "default_left")?) == JsonValue::Word(Some(true)),
            left: next,
            right: next + 1,
        }));
    }
    Ok(nodes)
}
