//! Writes XGBoost's JSON format.

use super::{Flag, WORDS, XgboostTree, XgboostTreeParameters};
use crate::exchange::binary::{BinaryNode, binary};
use crate::exchange::fold::folded;
use crate::exchange::names::portable_names;
use crate::exchange::{ExportOptions, ExportedModel};
use crate::model::{Combine, Model, Node, Tree, TreeEnsemble};
use serde_json::json;
use std::collections::BTreeMap;

/// Name of the attribute that contains the version of planetree that wrote the file.
const WRITER: &str = "planetree";

/// Returns whether a file was written by [`export`]. If XGBoost saves such a model again, it preserves the attributes,
/// but its files do not end with a line break.
pub(crate) fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(br#"{"learner":{"attributes":{"planetree":"#) && bytes.ends_with(b"}\n")
}

/// The number that XGBoost writes as the parent of a root.
const NO_PARENT: i64 = i32::MAX as i64;

/// Writes a model.
pub(crate) fn export(model: &Model, _: &ExportOptions) -> ExportedModel {
    let folded = folded(model);
    let losses = folded.losses(model, "XGBoost", "pass it as base_margin");
    written(model, &folded.ensemble, losses, "reg:squarederror")
}

/// Writes a model for the learning-to-rank plugins, which ignore the base score and know few objectives. The base score
/// becomes a first tree with a single leaf.
pub(crate) fn export_for_plugins(model: &Model) -> ExportedModel {
    let folded = folded(model);
    let losses = folded.losses(model, "the plugin", "add it to the scores there");
    let mut ensemble = folded.ensemble.into_owned();
    let base_score = std::mem::replace(&mut ensemble.base_score, 0.0);
    if base_score != 0.0 || ensemble.trees.is_empty() {
        let scale = ensemble.tree_weight();
        for node in ensemble.trees.iter_mut().flat_map(|tree| &mut tree.nodes) {
            node.value *= scale;
        }
        ensemble.combine = Combine::Sum;
        let leaf = Node { depth: 0, split: None, value: base_score, cover: 0.0 };
        ensemble.trees.insert(0, Tree { nodes: vec![leaf] });
    }
    written(model, &ensemble, losses, "rank:pairwise")
}

fn written(
    model: &Model,
    ensemble: &TreeEnsemble,
    mut losses: Vec<String>,
    objective: &str,
) -> ExportedModel {
    let mut notes = Vec::new();
    // Names are always written. Without names, XGBoost numbers features from 0, and its dumps would show the feature
    // `f26` as `f25`.
    let names =
        portable_names(&model.features, |letter| "[]<".contains(letter) || letter.is_control(), &mut notes);
    let types: Vec<&str> = names.iter().map(|_| "float").collect();
    let scale = ensemble.tree_weight();
    let mut range = SingleRange::default();
    let trees: Vec<XgboostTree> = (0..)
        .zip(&ensemble.trees)
        .map(|(id, tree)| {
            let nodes = binary(tree, &model.features);
            tree_of(id, &nodes, scale, model.features.len(), &mut range)
        })
        .collect();
    if range.exceeded {
        losses.push(
            "some tree values exceed the range of XGBoost's 32-bit floats and are clamped to it".to_owned(),
        );
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
                "base_score": format!("{:E}", ensemble.base_score as f32),
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": model.features.len().to_string(),
                "num_target": "1",
            },
            "objective": { "name": objective, "reg_loss_param": { "scale_pos_weight": "1" } },
        },
        "version": [2, 0, 0],
    });
    // The trees are inserted as text, because a JSON value would convert their 32-bit floats to 64-bit floats with more
    // digits.
    let mut text = value.to_string();
    let trees = serde_json::to_string(&trees).expect("numbers and strings can be written as JSON");
    let at = text.find("\"tree_info\"").expect("the key is written above");
    text.insert_str(at, &format!("\"trees\":{trees},"));
    text.push('\n');
    ExportedModel { bytes: text.into_bytes(), notes, losses }
}

/// Returns the attribute that contains the categories of the features. Empty if no feature is categorical.
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
        "categorical features: {}; pass XGBoost the code of each category, which is its index in the feature's list in the model \
         attribute {WORDS}",
        names.join(", ")
    ));
    BTreeMap::from([(WORDS, serde_json::to_string(&words).expect("strings can be written as JSON"))])
}

/// Converts numbers to 32-bit floats, and detects numbers that are out of range.
#[derive(Default)]
struct SingleRange {
    /// Whether a number was out of range.
    exceeded: bool,
}

impl SingleRange {
    fn clamped(&mut self, number: f64) -> f32 {
        self.exceeded |= number.abs() > f64::from(f32::MAX);
        number.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
    }
}

fn tree_of(
    id: i64,
    nodes: &[BinaryNode],
    scale: f64,
    features: usize,
    range: &mut SingleRange,
) -> XgboostTree {
    let mut tree = XgboostTree {
        id,
        parents: vec![NO_PARENT; nodes.len()],
        split_type: vec![0; nodes.len()],
        tree_param: XgboostTreeParameters {
            num_deleted: "0".to_owned(),
            num_feature: features.to_string(),
            num_nodes: nodes.len().to_string(),
            size_leaf_vector: "1".to_owned(),
        },
        ..XgboostTree::default()
    };
    for (index, node) in nodes.iter().enumerate() {
        let value = range.clamped(node.value * scale);
        let split = node.split.as_ref();
        if let Some(split) = split {
            tree.parents[split.left] = index as i64;
            tree.parents[split.right] = index as i64;
        }
        tree.base_weights.push(value);
        tree.sum_hessian.push(node.cover as f32);
        tree.default_left.push(Flag::Number(split.is_some_and(|split| split.missing_left).into()));
        tree.left_children.push(split.map_or(-1, |split| split.left as i64));
        tree.right_children.push(split.map_or(-1, |split| split.right as i64));
        tree.loss_changes.push(split.map_or(0.0, |split| split.gain.min(f64::from(f32::MAX)) as f32));
        tree.split_indices.push(split.map_or(0, |split| split.feature));
        // `value <= threshold` is the same as `value < next_up(threshold)`. The largest float has no finite
        // successor, so this threshold is written unchanged, and values equal to it go right instead of left.
        tree.split_conditions.push(split.map_or(value, |split| split.threshold.next_up().min(f32::MAX)));
    }
    tree
}
