//! Scores rows as onnxruntime does.

use super::graph::{OnnxNode, read};
use super::{DOUBLE, FLOAT};
use crate::exchange::verify::served::{
    Rules, ServedModel, ServedNode, ServedSplit, ServedTrees, Sum, as_is, at_most,
};
use crate::model::ModelFeature;

/// Returns the kind of model in a file.
pub(crate) fn kind(bytes: &[u8]) -> &'static str {
    if read(bytes).is_ok_and(|model| model.is_double) { DOUBLE } else { FLOAT }
}

/// Reads a file as onnxruntime does.
pub(crate) fn served(bytes: &[u8], features: &[ModelFeature]) -> Result<ServedModel, String> {
    let model = read(bytes)?;
    if let Some(columns) = model.columns.filter(|columns| *columns != features.len()) {
        return Err(format!(
            "the input has {columns} columns, but the model has {} features",
            features.len()
        ));
    }
    let node = |node: OnnxNode| match node {
        OnnxNode::Leaf(value) => Ok(ServedNode::Leaf(value)),
        OnnxNode::Split { is_strict: true, .. } => Err("a split has another test than <=".to_owned()),
        OnnxNode::Split { feature, threshold, missing_left, left, right, .. } => {
            Ok(ServedNode::Split(ServedSplit { feature, threshold, missing_left, left, right }))
        }
    };
    let tree = |nodes: Vec<OnnxNode>| {
        // A tree of a single leaf is written as a split with two equal leaves.
        match nodes.as_slice() {
            [OnnxNode::Split { .. }, OnnxNode::Leaf(one), OnnxNode::Leaf(other)] if one == other => {
                Ok(vec![ServedNode::Leaf(*one)])
            }
            _ => nodes.into_iter().map(node).collect::<Result<Vec<_>, _>>(),
        }
    };
    let rules = Rules {
        reads: as_is,
        goes_left: at_most,
        sum: if model.is_double { Sum::Double } else { Sum::Single },
        is_mean: model.is_mean,
        test: "x <= t",
        blind: None,
    };
    let trees = model.trees.into_iter().map(tree).collect::<Result<_, _>>()?;
    Ok(ServedModel::Trees(ServedTrees { base_score: model.base_score, trees, rules }))
}
