//! Elastic's own learning to rank: the body of `PUT _ml/trained_models`, with the trees as base64 of compressed JSON.
//!
//! Elasticsearch adds 64-bit floats and rounds the sum to 32 bits. Missing and infinite values take the default
//! direction of a split. If scores are negative, it shifts those of a query, which keeps their order.

use super::base64;
use super::portable::PortableTrees;
use super::verify::served::{Rules, ServedModel, ServedNode, ServedSplit, ServedTrees, Sum, as_is};
use super::{ExportOptions, ExportedModel};
use crate::model::{Model, ModelFeature};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{Read, Write};

/// The start of every file. Elasticsearch shows the text.
const START: &str = "{\"description\":\"Exported by planetree ";

/// Returns whether a file was written by [`export`].
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(START.as_bytes())
}

#[derive(Serialize, Deserialize)]
struct Definition {
    preprocessors: Vec<Value>,
    trained_model: TrainedModel,
}

#[derive(Serialize, Deserialize)]
struct TrainedModel {
    ensemble: ElasticEnsemble,
}

#[derive(Serialize, Deserialize)]
struct ElasticEnsemble {
    feature_names: Vec<String>,
    trained_models: Vec<TreeModel>,
    target_type: String,
    aggregate_output: Value,
}

#[derive(Serialize, Deserialize)]
struct TreeModel {
    tree: TreeStructure,
}

#[derive(Serialize, Deserialize)]
struct TreeStructure {
    feature_names: Vec<String>,
    tree_structure: Vec<ElasticNode>,
    target_type: String,
}

#[derive(Serialize, Deserialize)]
struct ElasticNode {
    node_index: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default_left: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    split_feature: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_child: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    right_child: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaf_value: Option<f64>,
    number_samples: u64,
}

/// Writes a model.
pub(super) fn export(model: &Model, _: &ExportOptions) -> ExportedModel {
    let portable = PortableTrees::of(model, "Elasticsearch").into_sum().with_base_tree();
    let names: Vec<String> = model.features.iter().map(|feature| feature.name.clone()).collect();
    let trees = portable.trees.iter().map(|nodes| {
        let node = |(node_index, node): (usize, &super::binary::BinaryNode)| {
            let split = node.split.as_ref();
            ElasticNode {
                node_index,
                decision_type: split.map(|_| "lte".to_owned()),
                default_left: split.map(|split| split.missing_left),
                threshold: split.map(|split| f64::from(split.threshold)),
                split_feature: split.map(|split| split.feature),
                left_child: split.map(|split| split.left),
                right_child: split.map(|split| split.right),
                leaf_value: split.is_none().then_some(node.value),
                number_samples: node.cover.max(0.0).round() as u64,
            }
        };
        TreeModel {
            tree: TreeStructure {
                feature_names: names.clone(),
                tree_structure: nodes.iter().enumerate().map(node).collect(),
                target_type: "regression".to_owned(),
            },
        }
    });
    let definition = Definition {
        preprocessors: Vec::new(),
        trained_model: TrainedModel {
            ensemble: ElasticEnsemble {
                feature_names: names.clone(),
                trained_models: trees.collect(),
                target_type: "regression".to_owned(),
                aggregate_output: json!({ "weighted_sum": { "weights": vec![1.0; portable.trees.len()] } }),
            },
        },
    };
    let definition = serde_json::to_vec(&definition).expect("numbers and strings can be written as JSON");
    let used = model.used_features();
    let extractors: Vec<Value> = used.iter().map(|feature| extractor(&names[*feature as usize])).collect();
    let body = json!({
        "input": { "field_names": used.iter().map(|feature| names[*feature as usize].as_str()).collect::<Vec<_>>() },
        "inference_config": { "learning_to_rank": { "feature_extractors": extractors } },
        "tags": ["planetree"],
        "compressed_definition": base64::encode(&compressed(&definition)),
    });
    // The description comes first, because it identifies the file.
    let rest = body.to_string();
    let text = format!("{START}{}\",{}\n", env!("CARGO_PKG_VERSION"), &rest[1..]);
    let notes = vec![
        "each feature is read from the field of its name: replace the queries in feature_extractors by your own"
            .to_owned(),
    ];
    ExportedModel { bytes: text.into_bytes(), notes, losses: portable.losses }
}

/// Returns an extractor that reads a feature from the field of its name.
fn extractor(name: &str) -> Value {
    let field = serde_json::to_string(name).expect("strings can be written as JSON");
    json!({ "query_extractor": { "feature_name": name, "query": { "script_score": {
        "query": { "exists": { "field": name } },
        "script": { "source": format!("return doc[{field}].value;") },
    } } } })
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory cannot fail")
}

/// Elasticsearch's test.
fn at_most_if_finite(value: f64, split: &ServedSplit) -> bool {
    if value.is_finite() { value <= split.threshold } else { split.missing_left }
}

/// Reads a file as Elasticsearch does.
pub(super) fn served(bytes: &[u8], features: &[ModelFeature]) -> Result<ServedModel, String> {
    #[derive(Deserialize)]
    struct Body {
        compressed_definition: String,
    }
    /// The largest definition that is read.
    const MOST: u64 = 4 << 30;
    let body: Body = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let compressed = base64::decode(&body.compressed_definition)?;
    let mut definition = Vec::new();
    let mut decoder = GzDecoder::new(compressed.as_slice()).take(MOST);
    decoder.read_to_end(&mut definition).map_err(|error| error.to_string())?;
    let definition: Definition = serde_json::from_slice(&definition).map_err(|error| error.to_string())?;
    let ensemble = definition.trained_model.ensemble;
    let index = super::feature_index::FeatureIndex::new(features);
    let names: Vec<u32> =
        ensemble.feature_names.iter().map(|name| index.of(name)).collect::<Result<_, _>>()?;
    let node = |node: &ElasticNode| match node.leaf_value {
        Some(value) => Ok(ServedNode::Leaf(value)),
        None => {
            let ElasticNode { threshold, split_feature, left_child, right_child, .. } = node;
            let (Some(threshold), Some(feature), Some(left), Some(right)) =
                (threshold, split_feature, left_child, right_child)
            else {
                return Err("a split is incomplete".to_owned());
            };
            if node.decision_type.as_deref() != Some("lte") {
                return Err("a split has another test than lte".to_owned());
            }
            Ok(ServedNode::Split(ServedSplit {
                feature: *names.get(*feature as usize).ok_or("a split uses a feature that is not listed")?,
                threshold: *threshold,
                missing_left: node.default_left.unwrap_or(false),
                left: *left,
                right: *right,
            }))
        }
    };
    let tree = |tree: &TreeModel| tree.tree.tree_structure.iter().map(node).collect::<Result<Vec<_>, _>>();
    let trees = ensemble.trained_models.iter().map(tree).collect::<Result<_, _>>()?;
    let rules = Rules {
        reads: as_is,
        goes_left: at_most_if_finite,
        sum: Sum::DoubleThenSingle,
        is_mean: false,
        test: "x <= t",
        blind: Some((f32::is_infinite, "Elasticsearch treats infinite values as missing")),
    };
    Ok(ServedModel::Trees(ServedTrees { base_score: 0.0, trees, rules }))
}
