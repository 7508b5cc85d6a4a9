//! Reads and writes models as JSON with the complete content of a model file, for programs that cannot read Parquet.

use super::names::NameSource;
use super::verify::served::ServedModel;
use super::{ExportOptions, ExportedModel, ImportError, ImportedModel, is_truncated};
use crate::family::trees::KIND;
use crate::model::{
    Branch, Combine, DatasetRecord, FeatureNormalisation, Model, ModelFeature, Node, Normalisation,
    OldEnsemble, Origin, Part, PartFamily, PartGroup, PartRole, Split, Tree, TreeEnsemble,
};
use serde::{Deserialize, Serialize};

/// The version of the JSON format.
const FORMAT: u32 = 2;
/// The version of models with groups of parts, which earlier versions of planetree refuse.
const WITH_GROUPS: u32 = 3;
/// The version of models with trees on normalised features, which earlier versions of planetree refuse.
const WITH_NORMALISED_FEATURES: u32 = 4;
/// The last format version in which a model is a single ensemble without parts.
const WITHOUT_PARTS: u32 = 1;

#[derive(Serialize, Deserialize)]
struct JsonModel {
    /// Version of the JSON format. The name of this key identifies the file as a planetree model.
    planetree_model: u32,
    intercept: f64,
    parts: Vec<JsonPart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<PartGroup>,
    features: Vec<ModelFeature>,
    configuration: String,
    data: Vec<DatasetRecord>,
    rounds: u32,
}

#[derive(Serialize, Deserialize)]
struct JsonPart {
    name: String,
    kind: String,
    weight: f64,
    normalisation: Normalisation,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    configuration: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<PartRole>,
    combine: Combine,
    base_score: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_feature: Option<u32>,
    #[serde(default, skip_serializing_if = "FeatureNormalisation::is_none")]
    normalise_features: FeatureNormalisation,
    trees: Vec<JsonTree>,
}

/// A model in format version 1, which is a single ensemble without parts.
#[derive(Deserialize)]
struct JsonModelWithoutParts {
    ensemble: OldEnsemble,
    base_score: f64,
    #[serde(default)]
    base_feature: Option<u32>,
    features: Vec<ModelFeature>,
    trees: Vec<JsonTree>,
    configuration: String,
    data: Vec<DatasetRecord>,
    rounds: u32,
}

#[derive(Serialize, Deserialize)]
struct JsonTree {
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
    /// Index of the feature in the model.
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
pub(super) fn export(model: &Model, _: &ExportOptions) -> ExportedModel {
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
    let tree = |tree: &Tree| JsonTree { nodes: tree.nodes.iter().map(node).collect() };
    let part = |part: &Part| {
        let ensemble = part.family.trees().expect("other families are refused before");
        JsonPart {
            name: part.name.clone(),
            kind: part.family.kind().to_owned(),
            weight: part.weight,
            normalisation: part.normalisation,
            configuration: part.configuration.clone(),
            role: part.role,
            combine: ensemble.combine,
            base_score: ensemble.base_score,
            base_feature: ensemble.base_feature,
            normalise_features: ensemble.normalisation,
            trees: ensemble.trees.iter().map(tree).collect(),
        }
    };
    let value = JsonModel {
        planetree_model: match model.groups.is_empty() {
            _ if model.normalised_trees().is_some() => WITH_NORMALISED_FEATURES,
            true => FORMAT,
            false => WITH_GROUPS,
        },
        intercept: model.intercept,
        parts: model.parts.iter().map(part).collect(),
        groups: model.groups.clone(),
        features: model.features.clone(),
        configuration: model.configuration.clone(),
        data: model.data.clone(),
        rounds: model.rounds,
    };
    let mut text = serde_json::to_string(&value).expect("numbers and strings can be written as JSON");
    text.push('\n');
    ExportedModel { bytes: text.into_bytes(), notes: Vec::new(), losses: Vec::new() }
}

/// Returns whether a file looks like a model in planetree's JSON format.
pub(super) fn is_likely(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    start.first() == Some(&b'{')
        && memchr::memmem::find(&start[..start.len().min(64)], b"planetree_model").is_some()
}

/// Reads a model from JSON.
pub(super) fn import(bytes: &[u8], names: &NameSource) -> Result<ImportedModel, ImportError> {
    /// The version is parsed first, because everything else may differ in a newer format.
    #[derive(Deserialize)]
    struct Version {
        planetree_model: u32,
    }
    let version: Version = parse(bytes)?;
    if version.planetree_model > WITH_NORMALISED_FEATURES {
        return Err(ImportError::new(
            format!("written by a newer planetree (JSON model format {})", version.planetree_model),
            "use a newer version of planetree",
        ));
    }
    let mut model = match version.planetree_model {
        ..=WITHOUT_PARTS => without_parts(parse(bytes)?)?,
        _ => with_parts(parse(bytes)?)?,
    };
    if let NameSource::Given(_) = names {
        let given = names.features(model.features.len(), None)?;
        model.features.iter_mut().zip(given).for_each(|(feature, given)| feature.name = given.name);
    }
    Ok(ImportedModel { model, notes: Vec::new(), losses: Vec::new(), frame: None })
}

/// Reads a file, to be scored by planetree.
pub(super) fn served(bytes: &[u8], _: &[ModelFeature]) -> Result<ServedModel, String> {
    let imported = import(bytes, &NameSource::Model { first: 1 }).map_err(|fault| fault.problem)?;
    match imported.model.fault() {
        None => Ok(ServedModel::Whole(Box::new(imported.model))),
        Some(fault) => Err(fault),
    }
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ImportError> {
    serde_json::from_slice(bytes).map_err(|error| not_json(&error, bytes))
}

fn with_parts(read: JsonModel) -> Result<Model, ImportError> {
    let part = |(number, part): (usize, JsonPart)| {
        if part.kind != KIND {
            let problem = format!("part {number} ({}) is of an unknown kind: {:?}", part.name, part.kind);
            return Err(ImportError::new(problem, "use a newer version of planetree"));
        }
        let JsonPart { combine, base_score, base_feature, normalise_features, .. } = part;
        let trees = trees_of(part.trees)?;
        Ok(Part {
            name: part.name,
            weight: part.weight,
            normalisation: part.normalisation,
            configuration: part.configuration,
            role: part.role,
            family: PartFamily::Trees(TreeEnsemble {
                normalisation: normalise_features,
                ..TreeEnsemble::new(combine, base_score, base_feature, trees)
            }),
        })
    };
    Ok(Model {
        intercept: read.intercept,
        parts: read.parts.into_iter().enumerate().map(part).collect::<Result<_, _>>()?,
        groups: read.groups,
        features: read.features,
        configuration: read.configuration,
        data: read.data,
        rounds: read.rounds,
        start_scores: None,
        origin: Origin::default(),
    })
}

fn without_parts(read: JsonModelWithoutParts) -> Result<Model, ImportError> {
    let combine = read.ensemble.combine();
    let JsonModelWithoutParts { base_score, base_feature, .. } = read;
    let trees = trees_of(read.trees)?;
    Ok(Model {
        intercept: 0.0,
        parts: vec![Part::trees(TreeEnsemble::new(combine, base_score, base_feature, trees))],
        groups: Vec::new(),
        features: read.features,
        configuration: read.configuration,
        data: read.data,
        rounds: read.rounds,
        start_scores: None,
        origin: Origin::default(),
    })
}

fn trees_of(trees: Vec<JsonTree>) -> Result<Vec<Tree>, ImportError> {
    trees.into_iter().map(tree_of).collect()
}

fn tree_of(tree: JsonTree) -> Result<Tree, ImportError> {
    let split_of = |split: JsonSplit| {
        let missing = Branch::ALL.into_iter().find(|branch| branch.name() == split.missing);
        let missing = missing.ok_or_else(|| {
            let problem = format!("unknown branch for missing values: {:?}", split.missing);
            ImportError::new(problem, "set `missing` to left, right or middle")
        })?;
        let JsonSplit { feature, threshold, left, right, middle, gain, .. } = split;
        Ok(Split { feature, threshold, missing, left, right, middle, gain })
    };
    let node_of = |node: JsonNode| {
        let split = node.split.map(split_of).transpose()?;
        Ok(Node { depth: node.depth, split, value: node.value, cover: node.cover })
    };
    Ok(Tree { nodes: tree.nodes.into_iter().map(node_of).collect::<Result<_, ImportError>>()? })
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
        "use a file written by `planetree export`",
    )
}
