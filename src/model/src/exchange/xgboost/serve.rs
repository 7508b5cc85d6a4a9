//! Scores rows as XGBoost does, and as the learning-to-rank plugins do with XGBoost's JSON.

use super::XgboostTree;
use crate::exchange::ltr_plugin::PLUGIN_RULES;
use crate::exchange::verify::served::{
    Rules, ServedModel, ServedNode, ServedSplit, ServedTrees, Sum, as_is, below,
};
use crate::model::ModelFeature;
use serde::Deserialize;

#[derive(Deserialize)]
struct ServedFile {
    learner: ServedLearner,
}

#[derive(Deserialize)]
struct ServedLearner {
    gradient_booster: ServedBooster,
    learner_model_param: ServedParameters,
}

#[derive(Deserialize)]
struct ServedBooster {
    model: ServedBoosterModel,
}

#[derive(Deserialize)]
struct ServedBoosterModel {
    trees: Vec<XgboostTree>,
}

#[derive(Deserialize)]
struct ServedParameters {
    base_score: String,
}

/// Which list has the values of leaves.
type LeafValues = fn(&XgboostTree) -> &[f32];

fn read(bytes: &[u8], leaves: LeafValues, rules: Rules) -> Result<ServedTrees, String> {
    let file: ServedFile = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let base = file.learner.learner_model_param.base_score;
    let base: f32 =
        base.trim_matches(['[', ']']).parse().map_err(|_| format!("base_score is {base:?}, not a number"))?;
    let tree = |tree: &XgboostTree| -> Result<Vec<ServedNode>, String> {
        let count = tree.left_children.len();
        let lengths = [
            tree.right_children.len(),
            tree.default_left.len(),
            tree.split_conditions.len(),
            tree.split_indices.len(),
            leaves(tree).len(),
        ];
        if lengths.iter().any(|length| *length != count) {
            return Err("the lists of nodes have different lengths".to_owned());
        }
        let node = |node: usize| match tree.left_children[node] {
            -1 => ServedNode::Leaf(f64::from(leaves(tree)[node])),
            left => ServedNode::Split(ServedSplit {
                feature: tree.split_indices[node],
                threshold: f64::from(tree.split_conditions[node]),
                missing_left: tree.default_left[node].is_set(),
                left: left as usize,
                right: tree.right_children[node] as usize,
            }),
        };
        Ok((0..count).map(node).collect())
    };
    let trees = file.learner.gradient_booster.model.trees.iter().map(tree).collect::<Result<_, _>>()?;
    Ok(ServedTrees { base_score: f64::from(base), trees, rules })
}

/// Returns whether a value is infinite or the largest finite one.
fn is_beyond(value: f32) -> bool {
    value.is_infinite() || value == f32::MAX
}

/// Reads a file as XGBoost does.
pub(crate) fn served(bytes: &[u8], _: &[ModelFeature]) -> Result<ServedModel, String> {
    let rules = Rules {
        reads: as_is,
        goes_left: below,
        sum: Sum::Single,
        is_mean: false,
        test: "x < t",
        blind: Some((
            is_beyond,
            "XGBoost refuses infinite values, and x < t cannot include the largest float32",
        )),
    };
    Ok(ServedModel::Trees(read(bytes, |tree| &tree.split_conditions, rules)?))
}

/// Reads a file as the learning-to-rank plugins do: leaves are `base_weights`, and there is no base score.
pub(crate) fn served_by_plugins(bytes: &[u8], _: &[ModelFeature]) -> Result<ServedModel, String> {
    let trees = read(bytes, |tree| &tree.base_weights, PLUGIN_RULES)?;
    Ok(ServedModel::Trees(ServedTrees { base_score: 0.0, ..trees }))
}
