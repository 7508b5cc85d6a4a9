//! Writing XGBoost's JSON.

use super::{Flag, TreeParameters, WORDS, XgboostTree};
use crate::exchange::Exported;
use crate::exchange::binary::{BinaryNode, binary};
use crate::exchange::names::cleaned;
use crate::model::Model;
use serde_json::json;
use std::collections::BTreeMap;

/// The attribute that says who wrote the file, and with which version.
const WRITER: &str = "planetree";

/// Whether a file is one that [`export`] wrote: XGBoost keeps attributes, but ends no file with a line break.
pub fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(br#"{"learner":{"attributes":{"planetree":"#) && bytes.ends_with(b"}\n")
}

/// Whom a root has for a parent.
const NOBODY: i64 = i32::MAX as i64;

/// Writes a model.
pub fn export(model: &Model) -> Exported {
    let (mut notes, mut losses) = (Vec::new(), Vec::new());
    if let Some(feature) = model.base_feature {
        let name = &model.features[feature as usize].name;
        losses.push(format!(
            "scores start from the value of feature {name}, which XGBoost cannot add: pass it as base_margin"
        ));
    }
    // Always: without names XGBoost counts from 0, and its dumps would call our f26 f25.
    let names = cleaned(&model.features, |letter| "[]<".contains(letter) || letter.is_control(), &mut notes);
    let types: Vec<&str> = names.iter().map(|_| "float").collect();
    let scale = model.tree_weight();
    let mut notes_of_leaves = Overflow::default();
    let trees: Vec<XgboostTree> = (0..)
        .zip(&model.trees)
        .map(|(id, tree)| {
            let nodes = binary(tree, &model.features);
            tree_of(id, &nodes, scale, model.features.len(), &mut notes_of_leaves)
        })
        .collect();
    if notes_of_leaves.0 {
        losses.push("some values are beyond the range of XGBoost's 32-bit numbers".to_owned());
    }
    let mut attributes = words(model, &mut notes);
    attributes.insert(WRITER, env!("CARGO_PKG_VERSION").to_owned());
    let count = trees.len();
    let value = json!({
        "learner": {
            "attributes": attributes,
            "feature_names": names,
            "feature_types": types,
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": { "num_parallel_tree": "1", "num_trees": count.to_string() },
                    "iteration_indptr": (0..=count).collect::<Vec<_>>(),
                    "tree_info": vec![0; count],
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": format!("{:E}", model.base_score as f32),
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": model.features.len().to_string(),
                "num_target": "1",
            },
            "objective": { "name": "reg:squarederror", "reg_loss_param": { "scale_pos_weight": "1" } },
        },
        "version": [2, 0, 0],
    });
    // The trees are put in as they are, so that 32-bit numbers are written in as few digits as they need.
    let mut text = value.to_string();
    let trees = serde_json::to_string(&trees).expect("numbers and strings become JSON");
    let at = text.find("\"tree_info\"").expect("it was written above");
    text.insert_str(at, &format!("\"trees\":{trees},"));
    text.push('\n');
    Exported { text, notes, losses }
}

/// The words of the features, as an attribute; XGBoost takes codes.
fn words(model: &Model, notes: &mut Vec<String>) -> BTreeMap<&'static str, String> {
    let features = model.features.iter();
    let words: Vec<_> =
        features.map(|feature| Some(&feature.words).filter(|words| !words.is_empty())).collect();
    let names: Vec<&str> = model
        .features
        .iter()
        .zip(&words)
        .filter(|(_, words)| words.is_some())
        .map(|(feature, _)| feature.name.as_str())
        .collect();
    if names.is_empty() {
        return BTreeMap::new();
    }
    notes.push(format!(
        "XGBoost does not map words: give it the codes of {}, the places in the lists of the attribute {WORDS}",
        names.join(", ")
    ));
    BTreeMap::from([(WORDS, serde_json::to_string(&words).expect("strings become JSON"))])
}

/// Whether a number was too large.
#[derive(Default)]
struct Overflow(bool);

impl Overflow {
    fn single(&mut self, number: f64) -> f32 {
        self.0 |= number.abs() > f64::from(f32::MAX);
        number.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
    }
}

fn tree_of(
    id: i64,
    nodes: &[BinaryNode],
    scale: f64,
    features: usize,
    overflow: &mut Overflow,
) -> XgboostTree {
    let mut tree = XgboostTree {
        id,
        parents: vec![NOBODY; nodes.len()],
        split_type: vec![0; nodes.len()],
        tree_param: TreeParameters {
            num_deleted: "0".to_owned(),
            num_feature: features.to_string(),
            num_nodes: nodes.len().to_string(),
            size_leaf_vector: "1".to_owned(),
        },
        ..XgboostTree::default()
    };
    for (place, node) in nodes.iter().enumerate() {
        let value = overflow.single(node.value * scale);
        let split = node.split.as_ref();
        if let Some(split) = split {
            tree.parents[split.left] = place as i64;
            tree.parents[split.right] = place as i64;
        }
        tree.base_weights.push(value);
        tree.sum_hessian.push(node.cover as f32);
        tree.default_left.push(Flag::Number(split.is_some_and(|split| split.missing_left).into()));
        tree.left_children.push(split.map_or(-1, |split| split.left as i64));
        tree.right_children.push(split.map_or(-1, |split| split.right as i64));
        tree.loss_changes.push(split.map_or(0.0, |split| split.gain.min(f64::from(f32::MAX)) as f32));
        tree.split_indices.push(split.map_or(0, |split| split.feature));
        // At most the threshold is less than the next number. Above the largest there is none, and nothing but
        // that number itself would notice.
        tree.split_conditions.push(split.map_or(value, |split| split.threshold.next_up().min(f32::MAX)));
    }
    tree
}
