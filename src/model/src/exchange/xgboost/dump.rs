//! The nested JSON of XGBoost's `dump_model`, which the learning-to-rank plugins and Vespa read.

use crate::exchange::binary::BinaryNode;
use crate::exchange::feature_index::FeatureIndex;
use crate::exchange::json_text::{JsonText, JsonValue};
use crate::exchange::nested::{Visit, visit_nested};
use crate::exchange::portable::single;
use crate::exchange::verify::served::{ServedNode, ServedSplit};
use std::fmt::Write;

/// What every dump of planetree starts with, after the bracket of the list of trees. XGBoost writes spaces.
pub(in crate::exchange) const START: &str = "{\"nodeid\":0,";

/// Appends a tree. `names` are the names of the features as JSON strings. `last_cut` is written for the largest threshold,
/// which no 32-bit float exceeds.
pub(in crate::exchange) fn write_tree(
    text: &mut String,
    nodes: &[BinaryNode],
    names: &[String],
    last_cut: f64,
) {
    visit_nested(nodes, &mut |place, visit| {
        let _ = match visit {
            Visit::Leaf(leaf) => {
                write!(text, "{{\"nodeid\":{},\"leaf\":{:?}}}", place.index, single(leaf.value))
            }
            Visit::Open(split) => write!(
                text,
                "{{\"nodeid\":{},\"depth\":{},\"split\":{},\"split_condition\":{},\"yes\":{},\"no\":{},\"missing\":{},\
                 \"children\":[",
                place.index,
                place.depth,
                names[split.feature as usize],
                // `value <= threshold` is the same as `value < next_up(threshold)`.
                match split.threshold < f32::MAX {
                    true => format!("{:?}", split.threshold.next_up()),
                    false => format!("{last_cut:?}"),
                },
                split.left,
                split.right,
                if split.missing_left { split.left } else { split.right },
            ),
            Visit::Between => write!(text, ","),
            Visit::Close => write!(text, "]}}"),
        };
    });
}

/// Returns names as JSON strings.
pub(in crate::exchange) fn quoted_names(features: &[crate::model::ModelFeature]) -> Vec<String> {
    let quoted = |name: &str| serde_json::to_string(name).expect("strings can be written as JSON");
    features.iter().map(|feature| quoted(&feature.name)).collect()
}

/// Reads a tree.
pub(in crate::exchange) fn read_tree(
    json: &JsonText,
    root: usize,
    features: &FeatureIndex<'_>,
) -> Result<Vec<ServedNode>, String> {
    let mut nodes = Vec::new();
    let mut pending = vec![root];
    while let Some(value) = pending.get(nodes.len()).copied() {
        if json.member(value, "leaf").is_some() {
            nodes.push(ServedNode::Leaf(f64::from(json.number(value, "leaf")? as f32)));
            continue;
        }
        let [left, right] = json.list(value, "children")? else {
            return Err("a split does not have two children".to_owned());
        };
        let [yes, no, missing] = ["yes", "no", "missing"].map(|key| json.number(value, key));
        let (yes, no, missing) = (yes?, no?, missing?);
        if json.number(*left, "nodeid")? != yes || json.number(*right, "nodeid")? != no {
            return Err("the children of a split are not in the order yes, no".to_owned());
        }
        let next = pending.len();
        pending.extend([*left, *right]);
        nodes.push(ServedNode::Split(ServedSplit {
            feature: features.of(json.text(value, "split")?)?,
            threshold: f64::from(json.number(value, "split_condition")? as f32),
            missing_left: missing == yes,
            left: next,
            right: next + 1,
        }));
    }
    Ok(nodes)
}

/// Reads a list of trees.
pub(in crate::exchange) fn read_trees(
    json: &JsonText,
    list: usize,
    features: &FeatureIndex<'_>,
) -> Result<Vec<Vec<ServedNode>>, String> {
    match json.value(list) {
        JsonValue::List(trees) => trees.iter().map(|tree| read_tree(json, *tree, features)).collect(),
        _ => Err("the trees are not a list".to_owned()),
    }
}
