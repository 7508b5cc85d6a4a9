//! Writes LightGBM's text format.

use super::{MISSING_KIND, MISSING_LEFT, NAN, NOTHING, PANDAS, WORDS};
use crate::exchange::binary::{BinaryNode, BinarySplit, binary};
use crate::exchange::fold::folded;
use crate::exchange::names::portable_names;
use crate::exchange::{ExportOptions, ExportedModel};
use crate::model::{Combine, Model, ModelFeature, TreeEnsemble};
use std::fmt::{Display, Write};

/// An empty parameter section, which comes before the last line. It identifies files written by planetree, because
/// LightGBM always writes parameters.
const NO_PARAMETERS: &str = "parameters:\nend of parameters\n\n";

/// Returns whether a file was written by [`export`].
pub(crate) fn is_ours(bytes: &[u8]) -> bool {
    let Some(body) = bytes.strip_suffix(b"\n") else { return false };
    let last = body.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (before, last) = body.split_at(last);
    bytes.starts_with(b"tree\nversion=")
        && before.ends_with(NO_PARAMETERS.as_bytes())
        && last.starts_with(PANDAS.as_bytes())
}

/// Writes a model.
pub(crate) fn export(model: &Model, _: &ExportOptions) -> ExportedModel {
    let folded = folded(model);
    let mut notes = Vec::new();
    let losses = folded.losses(model, "LightGBM", "add it to LightGBM's predictions");
    let ensemble = &*folded.ensemble;
    // LightGBM separates names by spaces and rejects characters that have a special meaning in JSON.
    let is_unsupported =
        |letter: char| letter.is_whitespace() || letter.is_control() || "\",:[]{}".contains(letter);
    let names = portable_names(&model.features, is_unsupported, &mut notes);
    let mut trees: Vec<Vec<BinaryNode>> =
        ensemble.trees.iter().map(|tree| binary(tree, &model.features)).collect();
    add_base_score(ensemble, &mut trees);
    let mut counts = CoverCounts::default();
    let trees: Vec<String> =
        (0..).zip(&trees).map(|(number, nodes)| tree_text(number, nodes, &mut counts)).collect();
    if counts.scaled {
        notes.push(
            "rows have weights, so leaf_count and internal_count are scaled weights instead of row counts"
                .to_owned(),
        );
    }
    let categorical = categorical_features(&model.features);
    if !categorical.is_empty() {
        notes.push(format!(
            "categorical features: {}; LightGBM maps categories to codes only in DataFrame columns of type category, \
             so arrays must contain the codes",
            categorical.iter().map(|index| names[*index].as_str()).collect::<Vec<_>>().join(", ")
        ));
    }
    let mut text = String::new();
    let mut line = |key: &str, value: &dyn Display| {
        let _ = writeln!(text, "{key}={value}");
    };
    text_header(ensemble, &names, &mut line);
    if !categorical.is_empty() {
        line(WORDS, &joined(&categorical));
    }
    if ensemble.combine != Combine::Sum {
        text.push_str("average_output\n");
    }
    let sizes: Vec<usize> = trees.iter().map(String::len).collect();
    let _ = writeln!(text, "tree_sizes={}\n", joined(&sizes));
    trees.iter().for_each(|tree| text.push_str(tree));
    text.push_str("end of trees\n\nfeature_importances:\n");
    for importance in model.importance().iter().filter(|importance| importance.splits > 0) {
        let _ = writeln!(text, "{}={}", names[importance.feature as usize], importance.splits);
    }
    let words: Vec<&Vec<String>> =
        model.features.iter().map(|feature| &feature.words).filter(|words| !words.is_empty()).collect();
    let words = match words.is_empty() {
        true => "null".to_owned(),
        false => serde_json::to_string(&words).expect("strings can be written as JSON"),
    };
    let _ = writeln!(text, "\n{NO_PARAMETERS}{PANDAS}{words}");
    ExportedModel { bytes: text.into_bytes(), notes, losses }
}

/// Returns the indices of the categorical features.
fn categorical_features(features: &[ModelFeature]) -> Vec<usize> {
    (0..features.len()).filter(|index| !features[*index].words.is_empty()).collect()
}

/// Adds the base score to the trees, because LightGBM's format has no base score. In a sum, the base score becomes a
/// first tree with a single leaf, which keeps the order of additions. In a mean, the base score is added to the value
/// of every node.
fn add_base_score(ensemble: &TreeEnsemble, trees: &mut Vec<Vec<BinaryNode>>) {
    let constant = |value| vec![BinaryNode { split: None, value, cover: 0.0 }];
    let base_score = ensemble.base_score;
    match ensemble.combine {
        _ if trees.is_empty() => trees.push(constant(base_score)),
        Combine::Sum if base_score != 0.0 => trees.insert(0, constant(base_score)),
        Combine::Sum => {}
        Combine::Mean | Combine::Wins => trees.iter_mut().flatten().for_each(|node| node.value += base_score),
    }
}

fn text_header(ensemble: &TreeEnsemble, names: &[String], line: &mut dyn FnMut(&str, &dyn Display)) {
    let mut ranges: Vec<Option<(f32, f32)>> = vec![None; names.len()];
    for split in ensemble.splits() {
        let range = ranges[split.feature as usize].get_or_insert((split.threshold, split.threshold));
        *range = (range.0.min(split.threshold), range.1.max(split.threshold));
    }
    // The ranges of values are unknown, so the ranges of thresholds are written. LightGBM's predictions do not use them.
    let range = |range: &Option<(f32, f32)>| {
        range.map_or_else(
            || "none".to_owned(),
            |(low, high)| format!("[{:?}:{:?}]", f64::from(low), f64::from(high)),
        )
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    line("tree\nversion", &"v4");
    line("num_class", &1);
    line("num_tree_per_iteration", &1);
    line("label_index", &0);
    line("max_feature_idx", &(names.len().max(1) - 1));
    line("objective", &"regression");
    line("feature_names", &names.join(" "));
    line("feature_infos", &ranges.join(" "));
}

/// Converts cover to integers, as LightGBM requires.
#[derive(Default)]
struct CoverCounts {
    /// Whether the covers of any tree were scaled because they are not integers or too large.
    scaled: bool,
}

impl CoverCounts {
    /// Returns an integer for every node. Covers that are not integers, or too large for LightGBM, are scaled. This
    /// keeps their proportions, which explanations depend on. So are those of trees in which a leaf has no cover,
    /// because LightGBM's explanations need at least one row in every leaf: one of 2^30 changes next to nothing.
    fn of(&mut self, nodes: &[BinaryNode]) -> Vec<u64> {
        const SCALED_TOTAL: f64 = (1u64 << 30) as f64;
        let leaves = || nodes.iter().filter(|node| node.split.is_none());
        let is_integer = leaves().all(|leaf| leaf.cover.fract() == 0.0);
        let total: f64 = leaves().map(|leaf| leaf.cover).sum();
        let is_small = total <= f64::from(i32::MAX);
        let is_full = leaves().all(|leaf| leaf.cover > 0.0);
        let is_exact = (is_integer && is_small) || total <= 0.0;
        let scale = if is_exact && (is_full || total <= 0.0) { 1.0 } else { SCALED_TOTAL / total };
        let least = u64::from(!is_full && total > 0.0);
        self.scaled |= !is_exact;
        let mut counts = vec![0; nodes.len()];
        for (index, node) in nodes.iter().enumerate().rev() {
            counts[index] = match &node.split {
                Some(split) => counts[split.left] + counts[split.right],
                None => ((node.cover * scale).round() as u64).max(least),
            };
        }
        counts
    }
}

/// Returns the section of one tree. Splits and leaves are numbered separately, each from 0. A reference to leaf `n` is
/// written as `-1 - n`.
fn tree_text(number: usize, nodes: &[BinaryNode], counts: &mut CoverCounts) -> String {
    let counts = counts.of(nodes);
    let (mut splits, mut leaves) = (Vec::new(), Vec::new());
    let mut number_of = vec![0i64; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        match &node.split {
            Some(split) => {
                number_of[index] = splits.len() as i64;
                splits.push((index, split));
            }
            None => {
                number_of[index] = -1 - leaves.len() as i64;
                leaves.push(index);
            }
        }
    }
    let mut text = format!("Tree={number}\nnum_leaves={}\nnum_cat=0\n", leaves.len());
    let mut line = |key: &str, values: String| {
        let _ = writeln!(text, "{key}={values}");
    };
    let of_splits = |of: &dyn Fn(usize, &BinarySplit) -> String| -> String {
        joined(&splits.iter().map(|(index, split)| of(*index, split)).collect::<Vec<_>>())
    };
    let of_leaves = |of: &dyn Fn(usize) -> String| -> String {
        joined(&leaves.iter().map(|index| of(*index)).collect::<Vec<_>>())
    };
    let exact = |number: f64| format!("{number:?}");
    line("split_feature", of_splits(&|_, split| split.feature.to_string()));
    line("split_gain", of_splits(&|_, split| exact(split.gain)));
    line("threshold", of_splits(&|_, split| exact(f64::from(split.threshold))));
    line("decision_type", of_splits(&|_, split| decision_type(split).to_string()));
    line("left_child", of_splits(&|_, split| number_of[split.left].to_string()));
    line("right_child", of_splits(&|_, split| number_of[split.right].to_string()));
    line("leaf_value", of_leaves(&|index| exact(nodes[index].value)));
    line("leaf_weight", of_leaves(&|index| exact(nodes[index].cover)));
    line("leaf_count", of_leaves(&|index| counts[index].to_string()));
    line("internal_value", of_splits(&|index, _| exact(nodes[index].value)));
    line("internal_weight", of_splits(&|index, _| exact(nodes[index].cover)));
    line("internal_count", of_splits(&|index, _| counts[index].to_string()));
    text.push_str("is_linear=0\nshrinkage=1\n\n\n");
    text
}

fn decision_type(split: &BinarySplit) -> u8 {
    if split.zero_filled {
        return NOTHING << MISSING_KIND;
    }
    NAN << MISSING_KIND | if split.missing_left { MISSING_LEFT } else { 0 }
}

fn joined<T: Display>(values: &[T]) -> String {
    let mut text = String::new();
    for (index, value) in values.iter().enumerate() {
        let _ = write!(text, "{}{value}", if index > 0 { " " } else { "" });
    }
    text
}
