//! Scores rows as RankLib does.

use super::parse::{RanklibModel, RanklibNode, parse, ranker};
use super::{ASCENT, FORESTS, REGRESSION};
use crate::exchange::verify::served::{
    Rules, ServedLinear, ServedModel, ServedNode, ServedSplit, ServedTrees, Sum, at_most, missing_as_zero,
};
use crate::exchange::{LINEAR, TREES};
use crate::model::ModelFeature;
use std::collections::BTreeMap;

/// Returns the kind of model in a file.
pub(crate) fn kind(bytes: &[u8]) -> &'static str {
    match std::str::from_utf8(bytes).ok().and_then(ranker) {
        Some(ASCENT | REGRESSION) => LINEAR,
        _ => TREES,
    }
}

/// Reads a file as RankLib does.
pub(crate) fn served(bytes: &[u8], _: &[ModelFeature]) -> Result<ServedModel, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text")?;
    let is_mean = ranker(text) == Some(FORESTS);
    let bags = match parse(text)? {
        RanklibModel::Trees(bags) => bags,
        RanklibModel::Linear(constant, weights) => {
            return Ok(ServedModel::Linear(ServedLinear {
                base_score: Some(constant),
                weights: weights.into_iter().map(|(feature, weight)| (feature - 1, weight)).collect(),
                missing: BTreeMap::new(),
                sum: Sum::Double,
            }));
        }
        RanklibModel::Stumps(_) => return Err("planetree does not export RankBoost".to_owned()),
    };
    let mut trees = Vec::new();
    for bag in bags {
        if is_mean && bag.len() != 1 {
            return Err(
                "an ensemble of a forest has several trees, which planetree does not export".to_owned()
            );
        }
        for tree in bag {
            let node = |node: &RanklibNode| match node {
                RanklibNode::Leaf(value) => ServedNode::Leaf(f64::from(*value) * tree.weight),
                RanklibNode::Split { feature, threshold, left, right } => ServedNode::Split(ServedSplit {
                    feature: *feature - 1,
                    threshold: f64::from(*threshold),
                    missing_left: false,
                    left: *left,
                    right: *right,
                }),
            };
            trees.push(tree.nodes.iter().map(node).collect());
        }
    }
    // A forest is a mean in 64 bits of ensembles in 32 bits; with one tree each, their values are 32-bit floats already.
    let rules = Rules {
        reads: missing_as_zero,
        goes_left: at_most,
        sum: if is_mean { Sum::DoubleThenSingle } else { Sum::Single },
        is_mean,
        test: "x <= t, absent is 0",
        blind: None,
    };
    Ok(ServedModel::Trees(ServedTrees { base_score: 0.0, trees, rules }))
}
