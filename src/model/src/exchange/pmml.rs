//! PMML 4.4: trees as a `MiningModel` of `TreeModel`s, and linear functions as a `RegressionModel`. All numbers are
//! 64-bit floats.

use super::feature_index::FeatureIndex;
use super::markup::{Markup, attribute, encoded, markup};
use super::nested::{Visit, visit_nested};
use super::portable::{PortableLinear, PortableTrees};
use super::verify::served::{
    Rules, ServedLinear, ServedModel, ServedNode, ServedSplit, ServedTrees, Sum, as_is, at_most,
};
use super::{ExportOptions, ExportedModel, LINEAR, TREES};
use crate::model::{Model, ModelFeature};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<PMML xmlns=\"http://www.dmg.org/PMML-4_4\" version=\"4.4\">\n\
                     <Header><Application name=\"planetree\"";

/// Returns whether a file was written by [`export`].
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(START.as_bytes())
}

/// Returns the kind of model in a file.
pub(super) fn kind(bytes: &[u8]) -> &'static str {
    if memchr::memmem::find(bytes, b"<RegressionModel").is_some() { LINEAR } else { TREES }
}

/// Writes a model.
pub(super) fn export(model: &Model, options: &ExportOptions) -> ExportedModel {
    let names: Vec<String> = model.features.iter().map(|feature| encoded(&feature.name)).collect();
    let used = model.used_features();
    let mut text =
        format!("{START} version=\"{}\"/></Header>\n<DataDictionary>\n", env!("CARGO_PKG_VERSION"));
    for feature in &used {
        let name = &names[*feature as usize];
        let _ = writeln!(text, "<DataField name=\"{name}\" optype=\"continuous\" dataType=\"double\"/>");
    }
    text.push_str("</DataDictionary>\n");
    let losses = match options.kind {
        LINEAR => linear(model, &mut text, &names, &used),
        _ => trees(model, &mut text, &names, &used),
    };
    text.push_str("</PMML>\n");
    ExportedModel { bytes: text.into_bytes(), notes: Vec::new(), losses }
}

/// Appends the fields that a model uses.
fn schema(text: &mut String, names: &[String], used: &BTreeSet<u32>, missing: &BTreeMap<u32, f64>) {
    text.push_str("<MiningSchema>");
    for feature in used {
        let name = &names[*feature as usize];
        let _ = match missing.get(feature) {
            Some(value) => {
                write!(text, "<MiningField name=\"{name}\" missingValueReplacement=\"{value:?}\"/>")
            }
            None => write!(text, "<MiningField name=\"{name}\"/>"),
        };
    }
    text.push_str("</MiningSchema>\n");
}

const OUTPUT: &str = "<Output><OutputField name=\"score\" optype=\"continuous\" dataType=\"double\" \
                      feature=\"predictedValue\"/></Output>\n";

fn trees(model: &Model, text: &mut String, names: &[String], used: &BTreeSet<u32>) -> Vec<String> {
    let portable = PortableTrees::of(model, "PMML").with_base_tree();
    text.push_str("<MiningModel functionName=\"regression\">\n");
    schema(text, names, used, &BTreeMap::new());
    text.push_str(OUTPUT);
    let method = if portable.is_mean { "average" } else { "sum" };
    let _ = writeln!(text, "<Segmentation multipleModelMethod=\"{method}\">");
    for (number, nodes) in (1..).zip(&portable.trees) {
        let _ = write!(
            text,
            "<Segment id=\"{number}\"><True/>\n<TreeModel functionName=\"regression\" missingValueStrategy=\"defaultChild\" \
             splitCharacteristic=\"binarySplit\">\n"
        );
        let used = nodes.iter().filter_map(|node| Some(node.split.as_ref()?.feature)).collect();
        schema(text, names, &used, &BTreeMap::new());
        // The test that leads to each node.
        let mut tests = vec!["<True/>".to_owned(); nodes.len()];
        for split in nodes.iter().filter_map(|node| node.split.as_ref()) {
            let (name, threshold) = (&names[split.feature as usize], f64::from(split.threshold));
            for (child, operator) in [(split.left, "lessOrEqual"), (split.right, "greaterThan")] {
                tests[child] = format!(
                    "<SimplePredicate field=\"{name}\" operator=\"{operator}\" value=\"{threshold:?}\"/>"
                );
            }
        }
        visit_nested(nodes, &mut |place, visit| {
            let test = &tests[place.index];
            let _ = match visit {
                Visit::Leaf(leaf) => {
                    writeln!(text, "<Node id=\"{}\" score=\"{:?}\">{test}</Node>", place.index, leaf.value)
                }
                Visit::Open(split) => {
                    let default = if split.missing_left { split.left } else { split.right };
                    writeln!(text, "<Node id=\"{}\" defaultChild=\"{default}\">{test}", place.index)
                }
                Visit::Between => Ok(()),
                Visit::Close => writeln!(text, "</Node>"),
            };
        });
        text.push_str("</TreeModel></Segment>\n");
    }
    text.push_str("</Segmentation>\n</MiningModel>\n");
    portable.losses
}

fn linear(model: &Model, text: &mut String, names: &[String], used: &BTreeSet<u32>) -> Vec<String> {
    let portable = PortableLinear::of(model);
    // Without a replacement, a missing value would make the score missing.
    let mut missing: BTreeMap<u32, f64> = used.iter().map(|feature| (*feature, 0.0)).collect();
    missing.extend(portable.missing.iter().copied());
    text.push_str("<RegressionModel functionName=\"regression\">\n");
    schema(text, names, used, &missing);
    text.push_str(OUTPUT);
    let _ = writeln!(text, "<RegressionTable intercept=\"{:?}\">", portable.base_score);
    for (feature, weight) in portable.weights.iter().filter(|(_, weight)| *weight != 0.0) {
        let name = &names[*feature as usize];
        let _ = writeln!(text, "<NumericPredictor name=\"{name}\" coefficient=\"{weight:?}\"/>");
    }
    text.push_str("</RegressionTable>\n</RegressionModel>\n");
    Vec::new()
}

/// Reads a file as an evaluator of PMML does.
pub(super) fn served(bytes: &[u8], features: &[ModelFeature]) -> Result<ServedModel, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text")?;
    let index = FeatureIndex::new(features);
    match kind(bytes) {
        LINEAR => served_linear(text, &index),
        _ => served_trees(text, &index),
    }
}

fn required(attributes: &str, name: &str) -> Result<String, String> {
    attribute(attributes, name).ok_or_else(|| format!("{name} is missing"))
}

fn number(attributes: &str, name: &str) -> Result<f64, String> {
    required(attributes, name)?.parse().map_err(|_| format!("{name} is not a number"))
}

fn served_linear(text: &str, index: &FeatureIndex<'_>) -> Result<ServedModel, String> {
    let mut function =
        ServedLinear { base_score: None, weights: Vec::new(), missing: BTreeMap::new(), sum: Sum::Double };
    for piece in markup(text) {
        let Markup::Start { name, attributes, .. } = piece? else { continue };
        match name {
            "MiningField" => {
                let feature = index.of(&required(attributes, "name")?)?;
                function.missing.insert(feature, number(attributes, "missingValueReplacement")?);
            }
            "RegressionTable" => function.base_score = Some(number(attributes, "intercept")?),
            "NumericPredictor" => {
                let feature = index.of(&required(attributes, "name")?)?;
                function.weights.push((feature, number(attributes, "coefficient")?));
            }
            _ => {}
        }
    }
    Ok(ServedModel::Linear(function))
}

/// Feature, operator and value of a test.
type NodeTest = (u32, String, f64);

/// A node whose end tag was not read yet.
struct OpenElement {
    index: usize,
    id: String,
    default: Option<String>,
    score: Option<f64>,
    /// The test that leads to the node: feature, operator and value.
    test: Option<NodeTest>,
    children: Vec<(usize, String, Option<NodeTest>)>,
}

impl OpenElement {
    fn node(&self) -> Result<ServedNode, String> {
        if let Some(score) = self.score {
            return Ok(ServedNode::Leaf(score));
        }
        let [(left, left_id, Some(below)), (right, right_id, Some(above))] = self.children.as_slice() else {
            return Err("a node has neither a score nor two children with tests".to_owned());
        };
        if (below.0, below.2) != (above.0, above.2) || below.1 != "lessOrEqual" || above.1 != "greaterThan" {
            return Err("the children of a node do not test the same threshold".to_owned());
        }
        let default = self.default.as_ref().ok_or("a node has no default child")?;
        if default != left_id && default != right_id {
            return Err("the default child of a node does not exist".to_owned());
        }
        Ok(ServedNode::Split(ServedSplit {
            feature: below.0,
            threshold: below.2,
            missing_left: default == left_id,
            left: *left,
            right: *right,
        }))
    }
}

fn served_trees(text: &str, index: &FeatureIndex<'_>) -> Result<ServedModel, String> {
    let mut trees: Vec<Vec<ServedNode>> = Vec::new();
    let mut open: Vec<OpenElement> = Vec::new();
    let mut is_mean = false;
    for piece in markup(text) {
        match piece? {
            Markup::Start { name: "Segmentation", attributes, .. } => {
                is_mean = required(attributes, "multipleModelMethod")? == "average";
            }
            Markup::Start { name: "TreeModel", attributes, .. } => {
                if required(attributes, "missingValueStrategy")? != "defaultChild" {
                    return Err("missing values do not follow default children".to_owned());
                }
                trees.push(Vec::new());
            }
            Markup::Start { name: "Node", attributes, .. } => {
                let nodes = trees.last_mut().ok_or("a node is outside of a tree")?;
                let score = attribute(attributes, "score").map(|score| score.parse());
                open.push(OpenElement {
                    index: nodes.len(),
                    id: required(attributes, "id")?,
                    default: attribute(attributes, "defaultChild"),
                    score: score.transpose().map_err(|_| "a score is not a number")?,
                    test: None,
                    children: Vec::new(),
                });
                nodes.push(ServedNode::Leaf(0.0));
            }
            Markup::Start { name: "SimplePredicate", attributes, .. } => {
                let test = (
                    index.of(&required(attributes, "field")?)?,
                    required(attributes, "operator")?,
                    number(attributes, "value")?,
                );
                open.last_mut().ok_or("a test is outside of a node")?.test = Some(test);
            }
            Markup::End("Node") => {
                let closed = open.pop().ok_or("a node ends that did not begin")?;
                let nodes = trees.last_mut().ok_or("a node is outside of a tree")?;
                nodes[closed.index] = closed.node()?;
                if let Some(parent) = open.last_mut() {
                    parent.children.push((closed.index, closed.id, closed.test));
                }
            }
            _ => {}
        }
    }
    let rules =
        Rules { reads: as_is, goes_left: at_most, sum: Sum::Double, is_mean, test: "x <= t", blind: None };
    Ok(ServedModel::Trees(ServedTrees { base_score: 0.0, trees, rules }))
}
