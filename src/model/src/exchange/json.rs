//! A model as one JSON value: all that its table has, for programs that read no Parquet.

use super::names::FeatureNames;
use super::{Exported, Fault, Imported, ends_early};
use crate::model::{Branch, DataUsed, Ensemble, Model, ModelFeature, Node, Origin, Split, Tree};
use serde::{Deserialize, Serialize};

/// The version of this form.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct JsonModel {
    /// The version of this form; its name says whose it is.
    planetree_model: u32,
    ensemble: Ensemble,
    base_score: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_feature: Option<u32>,
    features: Vec<ModelFeature>,
    trees: Vec<JsonTree>,
    configuration: String,
    data: Vec<DataUsed>,
    rounds: u32,
}

#[derive(Serialize, Deserialize)]
struct JsonTree {
    group: u32,
    nodes: Vec<JsonNode>,
}

#[derive(Serialize, Deserialize)]
struct JsonNode {
    depth: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    split: Option<JsonSplit>,
    value: f64,
    cover: f64,
}

#[derive(Serialize, Deserialize)]
struct JsonSplit {
    /// The feature by its place.
    feature: u32,
    threshold: f32,
    missing: String,
    left: u32,
    right: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    middle: Option<u32>,
    gain: f64,
}

/// Writes a model.
pub fn export(model: &Model) -> Exported {
    let split = |split: &Split| JsonSplit {
        feature: split.feature,
        threshold: split.threshold,
        missing: split.missing.name().to_owned(),
        left: split.left,
        right: split.right,
        middle: split.middle,
        gain: split.gain,
    };
    let node = |node: &Node| JsonNode {
        depth: node.depth,
        split: node.split.as_ref().map(split),
        value: node.value,
        cover: node.cover,
    };
    let tree = |tree: &Tree| JsonTree { group: tree.group, nodes: tree.nodes.iter().map(node).collect() };
    let value = JsonModel {
        planetree_model: FORMAT,
        ensemble: model.ensemble,
        base_score: model.base_score,
        base_feature: model.base_feature,
        features: model.features.clone(),
        trees: model.trees.iter().map(tree).collect(),
        configuration: model.configuration.clone(),
        data: model.data.clone(),
        rounds: model.rounds,
    };
    let mut text = serde_json::to_string(&value).expect("numbers and strings become JSON");
    text.push('\n');
    Exported { text, notes: Vec::new(), losses: Vec::new() }
}

/// Whether a file looks like a model of this form.
pub fn is_likely(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    start.first() == Some(&b'{')
        && memchr::memmem::find(&start[..start.len().min(64)], b"planetree_model").is_some()
}

/// Reads a model.
pub fn import(bytes: &[u8], names: &FeatureNames) -> Result<Imported, Fault> {
    /// Read first: a later form may differ in everything else.
    #[derive(Deserialize)]
    struct Version {
        planetree_model: u32,
    }
    let version: Version = serde_json::from_slice(bytes).map_err(|error| not_json(&error, bytes))?;
    if version.planetree_model > FORMAT {
        return Err(Fault::new(
            format!("written by a newer planetree (version {} of a model's JSON)", version.planetree_model),
            "use that version of planetree or a later one",
        ));
    }
    let read: JsonModel = serde_json::from_slice(bytes).map_err(|error| not_json(&error, bytes))?;
    let features = match names {
        FeatureNames::Own { .. } => read.features,
        FeatureNames::Given(_) => names
            .features(read.features.len(), None)?
            .into_iter()
            .zip(&read.features)
            .map(|(named, own)| ModelFeature { name: named.name, ..own.clone() })
            .collect(),
    };
    let trees = read.trees.into_iter().map(tree_of).collect::<Result<Vec<Tree>, Fault>>()?;
    let model = Model {
        ensemble: read.ensemble,
        base_score: read.base_score,
        base_feature: read.base_feature,
        features,
        trees,
        configuration: read.configuration,
        data: read.data,
        rounds: read.rounds,
        origin: Origin::default(),
    };
    Ok(Imported { model, notes: Vec::new(), losses: Vec::new() })
}

fn tree_of(tree: JsonTree) -> Result<Tree, Fault> {
    let split_of = |split: JsonSplit| {
        let missing = Branch::ALL.into_iter().find(|branch| branch.name() == split.missing);
        let missing = missing.ok_or_else(|| {
            let problem = format!("missing values cannot go {:?}", split.missing);
            Fault::new(problem, "write left, right or middle")
        })?;
        let JsonSplit { feature, threshold, left, right, middle, gain, .. } = split;
        Ok(Split { feature, threshold, missing, left, right, middle, gain })
    };
    let node_of = |node: JsonNode| {
        let split = node.split.map(split_of).transpose()?;
        Ok(Node { depth: node.depth, split, value: node.value, cover: node.cover })
    };
    Ok(Tree { group: tree.group, nodes: tree.nodes.into_iter().map(node_of).collect::<Result<_, Fault>>()? })
}

fn not_json(error: &serde_json::Error, bytes: &[u8]) -> Fault {
    if ends_early(error, bytes) {
        return Fault::new(format!("truncated: {error}"), "copy the whole file, or export the model again");
    }
    Fault::new(
        format!("not a model as planetree's JSON: {error}"),
        "name a file that `planetree export` wrote",
    )
}
