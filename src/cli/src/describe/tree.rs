//! Describes one tree of a model. A tree may have millions of nodes, so the text is limited, and JSON is printed in
//! pieces.

use super::short;
use crate::options::JsonOptions;
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_count;
use planetree_data::table::TableReader;
use planetree_model::model::{Branch, FeatureNormalisation, Model, Node, Split, Tree};
use serde_json::{Value, json};
use std::fmt::Write;

/// Maximum number of nodes that are printed as text.
const MAX_PRINTED_NODES: usize = 10_000;

/// Number of nodes in a piece of JSON.
const PIECE_NODES: usize = 1_000;

/// Prints one tree of a model. A model is a sum of parts, and the tree belongs to the part with the given number.
pub(super) fn run(table: &TableReader, part: usize, number: usize, json: &JsonOptions) -> Result<()> {
    let model = Model::from_table(table)?;
    let tree = tree_of(&model, part, number)
        .map_err(|(problem, remedy)| Error::usage(format!("{}: {problem}", table.location()), remedy))?;
    let normalisation = model.parts[part].family.trees().map(|ensemble| ensemble.normalisation);
    let normalisation = normalisation.filter(|normalisation| *normalisation != FeatureNormalisation::None);
    if json.json() {
        return as_json(&model, (part, number), normalisation, tree)
            .try_for_each(|piece| crate::print(&piece));
    }
    if let Some(normalisation) = normalisation {
        crate::print(&format!("features normalised by {}\n", normalisation.name()))?;
    }
    crate::print(&as_text(&model, tree))
}

/// Finds a tree. If there is none, returns the problem and the remedy.
fn tree_of(model: &Model, part: usize, number: usize) -> Result<&Tree, (String, String)> {
    let choices = |count: usize| format!("pass a number from 0 to {}", count - 1);
    let Some(chosen) = model.parts.get(part) else {
        return Err((format!("no part {part}"), choices(model.parts.len())));
    };
    let trees = chosen.family.trees().map(|ensemble| ensemble.trees.as_slice()).unwrap_or_default();
    trees.get(number).ok_or_else(|| {
        let label = model.part_label(part);
        let remedy = match trees.len() {
            0 => format!("{label} has no trees"),
            count => choices(count),
        };
        (format!("{label}: no tree {number}"), remedy)
    })
}

/// Formats a tree as indented lines. The code is iterative, because recursion on a deep tree would overflow the call
/// stack.
fn as_text(model: &Model, tree: &Tree) -> String {
    let mut text = String::new();
    let mut pending = vec![(0, "")];
    let mut printed = 0;
    while let Some((index, answer)) = pending.pop() {
        if printed == MAX_PRINTED_NODES {
            let more = shown_count((tree.nodes.len() - printed) as u64);
            let _ = writeln!(text, "... and {more} more nodes (--json prints all)");
            break;
        }
        printed += 1;
        let node = &tree.nodes[index as usize];
        // Limit the width of the lines of very deep trees.
        let indent = 2 * node.depth.min(100) as usize;
        let _ = writeln!(text, "{:indent$}{answer}{}", "", node_as_text(model, node));
        if let Some(split) = &node.split {
            // The last element is popped first, so the lines appear in the order yes, no, missing.
            pending.extend(split.middle.map(|middle| (middle, "missing: ")));
            pending.extend([(split.right, "no: "), (split.left, "yes: ")]);
        }
    }
    text
}

fn node_as_text(model: &Model, node: &Node) -> String {
    let cover = short(node.cover);
    match &node.split {
        None => format!("value {} (cover {cover})", node.value),
        Some(split) => {
            let missing = match split.missing {
                Branch::Left => ", or missing",
                Branch::Right | Branch::Middle => "",
            };
            let untaken = match (split.missing, split.middle) {
                (Branch::Middle, None) => format!(", missing: value {}", node.value),
                _ => String::new(),
            };
            let (name, threshold, gain) = (feature_name(model, split), split.threshold, short(split.gain));
            format!("{name} <= {threshold}{missing}? (gain {gain}, cover {cover}{untaken})")
        }
    }
}

fn feature_name<'a>(model: &'a Model, split: &Split) -> &'a str {
    &model.features[split.feature as usize].name
}

/// Formats a tree as one JSON object and a newline, in pieces.
fn as_json<'a>(
    model: &'a Model,
    (part, number): (usize, usize),
    normalisation: Option<FeatureNormalisation>,
    tree: &'a Tree,
) -> impl Iterator<Item = String> + 'a {
    let nodes = tree.nodes.chunks(PIECE_NODES).enumerate().map(move |(piece, nodes)| {
        let nodes: Vec<String> = nodes.iter().map(|node| node_as_json(model, node).to_string()).collect();
        format!("{}{}", if piece == 0 { "" } else { "," }, nodes.join(","))
    });
    let normalised = normalisation.map_or_else(String::new, |normalisation| {
        format!(",\"normalise_features\":\"{}\"", normalisation.name())
    });
    let end = format!("]{normalised},\"part\":{part},\"tree\":{number}}}\n");
    ["{\"nodes\":[".to_owned()].into_iter().chain(nodes).chain([end])
}

fn node_as_json(model: &Model, node: &Node) -> Value {
    match &node.split {
        None => json!({ "depth": node.depth, "value": node.value, "cover": node.cover }),
        Some(split) => json!({
            "depth": node.depth,
            "feature": feature_name(model, split),
            "threshold": split.threshold,
            "missing": split.missing.name(),
            "left": split.left,
            "right": split.right,
            "middle": split.middle,
            "gain": split.gain,
            "value": node.value,
            "cover": node.cover,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_model::model::example;

    #[test]
    fn a_tree_is_printed_as_indented_conditions() {
        let model = example();
        let tree = tree_of(&model, 0, 0).unwrap();
        let expected = "\
f3 <= 0.1? (gain 2.5000, cover 100)
  yes: f3 <= 0.1? (gain 1, cover 10)
    yes: value 0.1 (cover 10)
    no: value 3 (cover 10)
    missing: value -0 (cover 10)
  no: value 0.000";
        let text = as_text(&model, tree);
        assert!(text.starts_with(expected), "{text}");
        let json: Value =
            serde_json::from_str(&as_json(&model, (0, 0), None, tree).collect::<String>()).unwrap();
        assert_eq!(json["nodes"][1]["missing"], "middle");
        assert_eq!((&json["part"], &json["tree"]), (&json!(0), &json!(0)));
        let (problem, remedy) = tree_of(&model, 0, 3).err().unwrap();
        assert!(problem.ends_with(": no tree 3"), "{problem}");
        assert_eq!(remedy, "pass a number from 0 to 2");
    }

    #[test]
    fn a_huge_tree_is_printed_in_pieces() {
        let model = example();
        let leaf = Node { depth: 1, ..model.trees().next().unwrap().nodes[2].clone() };
        let tree = Tree { nodes: vec![leaf; 25_001] };
        let pieces: Vec<String> = as_json(&model, (0, 0), None, &tree).collect();
        assert_eq!(pieces.len(), 1 + 26 + 1);
        let json: Value = serde_json::from_str(&pieces.concat()).unwrap();
        assert_eq!(json["nodes"].as_array().map(Vec::len), Some(25_001));
    }
}
