//! Imports tree ensembles from ONNX files.

use super::graph::{OnnxNode, read};
use crate::exchange::assemble::{ForeignNode, ForeignSplit, assemble, round_down};
use crate::exchange::names::{NameSource, check_feature_count};
use crate::exchange::{ImportError, ImportedModel, imported_part};
use crate::model::{Combine, Part, Tree, TreeEnsemble};

/// Operators that do not change scores.
const HARMLESS: [&str; 4] = ["Identity", "Reshape", "Cast", "Flatten"];

/// Returns whether a file looks like an ONNX model with trees.
pub(crate) fn is_likely(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0x08) && memchr::memmem::find(bytes, b"TreeEnsemble").is_some()
}

/// Reads a model.
pub(crate) fn import(bytes: &[u8], names: &NameSource) -> Result<ImportedModel, ImportError> {
    let model = read(bytes).map_err(|problem| match problem.contains("ends within") {
        true => ImportError::truncated(problem),
        false => invalid(&problem),
    })?;
    if let Some(other) = model.others.iter().find(|other| !HARMLESS.contains(&other.as_str())) {
        return Err(ImportError::new(
            format!("the file has the operator {other} besides the tree ensemble"),
            "import a file that consists of a tree ensemble alone",
        ));
    }
    let feature = |node: &OnnxNode| match node {
        OnnxNode::Split { feature, .. } => Some(*feature as usize + 1),
        OnnxNode::Leaf(_) => None,
    };
    let used = model.trees.iter().flatten().filter_map(feature).max().unwrap_or(0);
    let count = model.columns.unwrap_or(used).max(used);
    check_feature_count(count).map_err(|problem| invalid(&problem))?;
    let own = model.names.as_deref().filter(|names| names.len() == count);
    let features = names.features(count, own)?;
    let mut trees = Vec::with_capacity(model.trees.len());
    for (number, nodes) in model.trees.iter().enumerate() {
        trees.push(tree_of(nodes).map_err(|problem| invalid(&problem).in_tree(number))?);
    }
    let rounds = trees.len() as u32;
    let combine = if model.is_mean { Combine::Mean } else { Combine::Sum };
    let ensemble = TreeEnsemble::new(combine, model.base_score, None, trees);
    let model = imported_part(Part::trees(ensemble), features, rounds, "# imported from ONNX\n");
    Ok(ImportedModel { model, notes: Vec::new(), losses: Vec::new(), frame: None })
}

fn tree_of(nodes: &[OnnxNode]) -> Result<Tree, String> {
    let find = |number: i64| match &nodes[number as usize] {
        OnnxNode::Leaf(value) => Ok(ForeignNode { split: None, value: Some(*value), cover: 0.0 }),
        OnnxNode::Split { feature, threshold, is_strict, missing_left, left, right } => {
            if threshold.is_nan() {
                return Err("a threshold is NaN".to_owned());
            }
            let at_most = round_down(*threshold);
            // `x < t` is the same as `x <= next_down(t)`, unless t lies between two 32-bit floats.
            let is_exact = f64::from(at_most) == *threshold;
            let threshold = if *is_strict && is_exact { at_most.next_down().max(f32::MIN) } else { at_most };
            Ok(ForeignNode {
                split: Some(ForeignSplit {
                    feature: *feature,
                    threshold,
                    missing_left: *missing_left,
                    left: *left as i64,
                    right: *right as i64,
                    gain: 0.0,
                }),
                value: None,
                cover: 0.0,
            })
        }
    };
    assemble(0, nodes.len(), &find)
}

fn invalid(problem: &str) -> ImportError {
    ImportError::new(
        format!("not an ONNX model that planetree can import: {problem}"),
        "use a file with one TreeEnsemble or TreeEnsembleRegressor, or pass another --format",
    )
}
