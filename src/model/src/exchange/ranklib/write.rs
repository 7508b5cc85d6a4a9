//! Writes RankLib's text format.

use super::{ASCENT, FORESTS, LAMBDAMART, REGRESSION};
use crate::exchange::binary::BinaryNode;
use crate::exchange::nested::{Visit, visit_nested};
use crate::exchange::portable::{PortableLinear, PortableTrees, single};
use crate::exchange::{ExportOptions, ExportedModel, LINEAR};
use crate::model::Model;
use std::fmt::Write;

/// The line that identifies files written by planetree. RankLib ignores lines that start with `##`.
const WRITER: &str = "## Written by planetree ";
/// Nodes are indented up to this depth, so that the size of a file does not grow with the square of the depth.
const MOST_INDENTED: usize = 16;

/// Returns whether a file was written by [`export`].
pub(crate) fn is_ours(bytes: &[u8]) -> bool {
    let Some(second) = bytes.iter().position(|byte| *byte == b'\n') else { return false };
    bytes.starts_with(b"## ") && bytes[second + 1..].starts_with(WRITER.as_bytes())
}

/// Writes a model.
pub(crate) fn export(model: &Model, options: &ExportOptions) -> ExportedModel {
    if options.kind == LINEAR { linear(model) } else { trees(model) }
}

fn header(ranker: &str, parameters: &[(&str, usize)]) -> String {
    let mut text = format!("## {ranker}\n{WRITER}{}\n", env!("CARGO_PKG_VERSION"));
    for (name, value) in parameters {
        let _ = writeln!(text, "## {name} = {value}");
    }
    text.push('\n');
    text
}

fn trees(model: &Model) -> ExportedModel {
    let portable = PortableTrees::of(model, "RankLib").with_base_tree();
    let mut losses = portable.losses.clone();
    let splits = || portable.trees.iter().flatten().filter_map(|node| node.split.as_ref());
    let elsewhere =
        splits().filter(|split| !split.zero_filled && split.missing_left != (0.0 <= split.threshold)).count();
    if elsewhere > 0 {
        losses.push(format!(
            "{elsewhere} splits send missing values to the other side than 0, but in RankLib an absent feature is 0: \
             train with missing=zero"
        ));
    }
    let count = portable.trees.len();
    let leaves = |nodes: &Vec<BinaryNode>| nodes.iter().filter(|node| node.split.is_none()).count();
    let most = portable.trees.iter().map(leaves).max().unwrap_or(0);
    let mut text = match portable.is_mean {
        true => header(FORESTS, &[("No. of bags", count), ("No. of trees", 1), ("No. of leaves", most)]),
        false => header(LAMBDAMART, &[("No. of trees", count), ("No. of leaves", most)]),
    };
    if portable.is_mean {
        for nodes in &portable.trees {
            text.push_str("<ensemble>\n");
            tree(&mut text, 1, nodes);
            text.push_str("</ensemble>\n");
        }
    } else {
        text.push_str("<ensemble>\n");
        for (id, nodes) in (1..).zip(&portable.trees) {
            tree(&mut text, id, nodes);
        }
        text.push_str("</ensemble>\n");
    }
    ExportedModel { bytes: text.into_bytes(), notes: numbering_note(model), losses }
}

fn tree(text: &mut String, id: usize, nodes: &[BinaryNode]) {
    let _ = writeln!(text, "\t<tree id=\"{id}\" weight=\"1.0\">");
    visit_nested(nodes, &mut |place, visit| {
        let tabs = "\t".repeat(2 + place.depth.min(MOST_INDENTED));
        let position = match place.is_left {
            None => "",
            Some(true) => " pos=\"left\"",
            Some(false) => " pos=\"right\"",
        };
        let _ = match visit {
            Visit::Leaf(leaf) => {
                let value = single(leaf.value);
                writeln!(
                    text,
                    "{tabs}<split{position}>\n{tabs}\t<output> {value:?} </output>\n{tabs}</split>"
                )
            }
            Visit::Open(split) => writeln!(
                text,
                "{tabs}<split{position}>\n{tabs}\t<feature> {} </feature>\n{tabs}\t<threshold> {:?} </threshold>",
                split.feature + 1,
                split.threshold
            ),
            Visit::Between => Ok(()),
            Visit::Close => writeln!(text, "{tabs}</split>"),
        };
    });
    text.push_str("\t</tree>\n");
}

fn linear(model: &Model) -> ExportedModel {
    let portable = PortableLinear::of(model);
    let pair = |(feature, weight): &(u32, f64)| format!("{}:{weight:?}", feature + 1);
    let mut pairs: Vec<String> = portable.weights.iter().map(pair).collect();
    let ranker = if portable.base_score == 0.0 { ASCENT } else { REGRESSION };
    if ranker == REGRESSION {
        pairs.insert(0, format!("0:{:?}", portable.base_score));
    }
    let text = format!("{}{}\n", header(ranker, &[]), pairs.join(" "));
    let losses = portable.losses(model, "RankLib");
    ExportedModel { bytes: text.into_bytes(), notes: numbering_note(model), losses }
}

/// Returns a note if the numbers in the names of features are not their numbers in the file.
fn numbering_note(model: &Model) -> Vec<String> {
    let number_of = |name: &str| name.strip_prefix('f')?.parse::<usize>().ok();
    let is_numbered = model.features.iter().all(|feature| number_of(&feature.name).is_some());
    let shifted =
        (1..).zip(&model.features).find(|(number, feature)| number_of(&feature.name) != Some(*number));
    match shifted {
        Some((number, feature)) if is_numbered => vec![format!(
            "features are numbered by their place in the model: {} is feature {number}",
            feature.name
        )],
        _ => Vec::new(),
    }
}
