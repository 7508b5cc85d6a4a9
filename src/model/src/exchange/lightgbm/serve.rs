//! Scores rows as LightGBM does.

use super::read::{TextSection, number, numbers, sections};
use super::{CATEGORICAL, MISSING_KIND, MISSING_LEFT, NAN, NOTHING, TINY};
use crate::exchange::verify::served::{
    Rules, ServedModel, ServedNode, ServedSplit, ServedTrees, Sum, at_most,
};
use crate::model::ModelFeature;

fn is_tiny(value: f32) -> bool {
    value != 0.0 && value.abs() <= TINY
}

fn reads(value: f32) -> f64 {
    if is_tiny(value) { 0.0 } else { f64::from(value) }
}

/// Reads a file as LightGBM does.
pub(crate) fn served(bytes: &[u8], _: &[ModelFeature]) -> Result<ServedModel, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text")?;
    let (sections, is_complete) = sections(text)?;
    if !is_complete {
        return Err("the line `end of trees` is missing".to_owned());
    }
    let rules = Rules {
        reads,
        goes_left: at_most,
        sum: Sum::Double,
        is_mean: sections[0].contains_key("average_output"),
        test: "x <= t",
        blind: Some((is_tiny, "LightGBM reads values closer to 0 than 1e-35 as 0")),
    };
    let trees = sections[1..].iter().map(tree).collect::<Result<_, _>>()?;
    Ok(ServedModel::Trees(ServedTrees { base_score: 0.0, trees, rules }))
}

fn tree(section: &TextSection<'_>) -> Result<Vec<ServedNode>, String> {
    let leaves: usize = number(section, "num_leaves")?;
    let splits = leaves.checked_sub(1).ok_or("num_leaves is 0")?;
    let values: Vec<f64> = numbers(section, "leaf_value", leaves)?;
    let features: Vec<u32> = numbers(section, "split_feature", splits)?;
    let thresholds: Vec<f64> = numbers(section, "threshold", splits)?;
    let kinds: Vec<u8> = numbers(section, "decision_type", splits)?;
    let left: Vec<i64> = numbers(section, "left_child", splits)?;
    let right: Vec<i64> = numbers(section, "right_child", splits)?;
    // Splits first, then leaves.
    let place = |child: i64| if child < 0 { splits + (-1 - child) as usize } else { child as usize };
    let split = |split: usize| {
        let kind = kinds[split];
        let missing_left = match kind >> MISSING_KIND & 3 {
            NAN => kind & MISSING_LEFT != 0,
            NOTHING => 0.0 <= thresholds[split],
            _ => return Err(format!("decision_type {kind} is not one that planetree writes")),
        };
        if kind & CATEGORICAL != 0 {
            return Err("categorical splits are not written by planetree".to_owned());
        }
        Ok(ServedNode::Split(ServedSplit {
            feature: features[split],
            threshold: thresholds[split],
            missing_left,
            left: place(left[split]),
            right: place(right[split]),
        }))
    };
    let mut nodes: Vec<ServedNode> = (0..splits).map(split).collect::<Result<_, _>>()?;
    nodes.extend(values.into_iter().map(ServedNode::Leaf));
    Ok(nodes)
}
