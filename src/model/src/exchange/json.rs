//! A model as one JSON value with the complete content of its table, for programs that cannot read Parquet.

use super::names::NameSource;
use super::{ExportedModel, ImportError, ImportedModel, is_truncated};
use crate::model::{Branch, DatasetRecord, Ensemble, Model, ModelFeature, Node, Origin, Split, Tree};
use serde::{Deserialize, Serialize};

/// Version of the format.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct JsonModel {
    /// Version of the format. The key identifies the file as a model of planetree.
    planetree_model: u32,
    ensemble: Ensemble,
    base_score: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_feature: Option<u32>,
    features: Vec<ModelFeature>,
    trees: Vec<JsonTree>,
    configuration: String,
    data: Vec<DatasetRecord>,
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
    /// Index of the feature.
    feature: u32,
    threshold: f32,
    missing: String,
    left: u32,
    right: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    middle: Option<u32>,
    gain: f64,
}

/// Writes a model as JSON.
pub fn export(model: &Model) -> ExportedModel {
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
    let mut text = serde_json::to_string(&value).expect("numbers and strings can be written as JSON");
    text.push('\n');
    ExportedModel { text, notes: Vec::new(), losses: Vec::new() }
}

/// Whether a file looks like a model in planetree's JSON.
pub fn is_likely(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    start.first() == Some(&b'{')
        && memchr::memmem::find(&start[..start.len().min(64)], b"planetree_model").is_some()
}

/// Reads a model from JSON.
pub fn import(bytes: &[u8], names: &NameSource) -> Result<ImportedModel, ImportError> {
    /// Read first: a later format may differ in everything else.
    #[derive(Deserialize)]
    struct Version {
        planetree_model: u32,
    }
    let version: Version = serde_json::from_slice(bytes).map_err(|error| not_json(&error, bytes))?;
    if version.planetree_model > FORMAT {
        return Err(ImportError::new(
            format!("written by a newer planetree (JSON model format {})", version.planetree_model),
            "use a newer version of planetree",
        ));
    }
    let read: JsonModel = serde_json::from_slice(bytes).map_err(|error| not_json(&error, bytes))?;
    let features = match names {
        NameSource::Model { .. } => read.features,
        NameSource::Given(_) => names
            .features(read.features.len(), None)?
            .into_iter()
            .zip(&read.features)
            .map(|(named, own)| ModelFeature { name: named.name, ..own.clone() })
            .collect(),
    };
    let trees = read.trees.into_iter().map(tree_of).collect::<Result<Vec<Tree>, ImportError>>()?;
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
    Ok(ImportedModel { model, notes: Vec::new(), losses: Vec::new() })
}

fn tree_of(tree: JsonTree) -> Result<Tree, ImportError> {
    let split_of = |split: JsonSplit| {
        let missing = Branch::ALL.into_iter().find(|branch| branch.name() == split.missing);
        let missing = missing.ok_or_else(|| {
            let problem = format!("unknown branch for missing values: {:?}", split.missing);
            ImportError::new(problem, "use left, right or middle")
        })?;
        let JsonSplit { feature, threshold, left, right, middle, gain, .. } = split;
        Ok(Split { feature, threshold, missing, left, right, middle, gain })
    };
    let node_of = |node: JsonNode| {
        let split = node.split.map(split_of).transpose()?;
        Ok(Node { depth: node.depth, split, value: node.value, cover: node.cover })
    };
    Ok(Tree {
        group: tree.group,
        nodes: tree.nodes.into_iter().map(node_of).collect::<Result<_, ImportError>>()?,
    })
}

fn not_json(error: &serde_json::Error, bytes: &[u8]) -> ImportError {
    if is_truncated(error, bytes) {
        return ImportError::new(
            format!("truncated: {error}"),
            "copy the whole file, or export the model again",
        );
    }
    ImportError::new(
        format!("not a model in planetree's JSON: {error}"),
        "name a file written by `planetree export`",
    )
}
