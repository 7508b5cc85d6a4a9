//! Writes ONNX files.

use super::proto::Message;
use super::{DOMAIN, DOUBLE, ENSEMBLE, OPSETS, REGRESSOR, TYPE_DOUBLE, TYPE_FLOAT, TYPE_UINT8};
use crate::exchange::binary::BinaryNode;
use crate::exchange::portable::{PortableTrees, single};
use crate::exchange::{ExportOptions, ExportedModel};
use crate::model::Model;

const PRODUCER: &str = "planetree";
/// Version of the file format.
const IR_VERSION: i64 = 8;

/// Returns whether a file was written by [`export`].
pub(crate) fn is_ours(bytes: &[u8]) -> bool {
    let start = Message::default().int(1, IR_VERSION).bytes(2, PRODUCER.as_bytes());
    bytes.starts_with(&start.0)
}

/// Writes a model.
pub(crate) fn export(model: &Model, options: &ExportOptions) -> ExportedModel {
    let portable = PortableTrees::of(model, "ONNX").with_base_tree();
    let is_double = options.kind == DOUBLE;
    let opset = options.opset.unwrap_or(OPSETS[0]);
    let (operator, attributes) = match opset {
        5.. => (ENSEMBLE, ensemble(&portable, is_double)),
        _ => (REGRESSOR, regressor(&portable)),
    };
    let mut node =
        Message::default().bytes(1, b"X").bytes(2, b"score").bytes(3, b"trees").bytes(4, operator.as_bytes());
    for attribute in attributes {
        node = node.message(5, &attribute);
    }
    let node = node.bytes(7, DOMAIN.as_bytes());
    let element = if is_double { TYPE_DOUBLE } else { TYPE_FLOAT };
    let graph = Message::default()
        .message(1, &node)
        .bytes(2, PRODUCER.as_bytes())
        .message(11, &value_info("X", element, model.features.len()))
        .message(12, &value_info("score", element, 1));
    let import = |domain: &str, version: i64| Message::default().bytes(1, domain.as_bytes()).int(2, version);
    let names: Vec<&str> = model.features.iter().map(|feature| feature.name.as_str()).collect();
    let names = serde_json::to_string(&names).expect("strings can be written as JSON");
    let bytes = Message::default()
        .int(1, IR_VERSION)
        .bytes(2, PRODUCER.as_bytes())
        .bytes(3, env!("CARGO_PKG_VERSION").as_bytes())
        .message(7, &graph)
        .message(8, &import("", if opset >= 5 { 21 } else { 17 }))
        .message(8, &import(DOMAIN, i64::from(opset)))
        .message(14, &Message::default().bytes(1, b"feature_names").bytes(2, names.as_bytes()));
    ExportedModel { bytes: bytes.0, notes: Vec::new(), losses: portable.losses }
}

/// Describes an input or output: a matrix with any number of rows.
fn value_info(name: &str, element: i64, columns: usize) -> Message {
    let rows = Message::default().bytes(2, b"N");
    let columns = Message::default().int(1, columns as i64);
    let shape = Message::default().message(1, &rows).message(1, &columns);
    let tensor = Message::default().int(1, element).message(2, &shape);
    let kind = Message::default().message(1, &tensor);
    Message::default().bytes(1, name.as_bytes()).message(2, &kind)
}

fn int(name: &str, value: i64) -> Message {
    Message::default().bytes(1, name.as_bytes()).int(3, value).int(20, 2)
}

fn text(name: &str, value: &str) -> Message {
    Message::default().bytes(1, name.as_bytes()).bytes(4, value.as_bytes()).int(20, 3)
}

fn ints(name: &str, values: impl Iterator<Item = i64>) -> Message {
    Message::default().bytes(1, name.as_bytes()).ints(8, values).int(20, 7)
}

fn floats(name: &str, values: impl Iterator<Item = f32>) -> Message {
    Message::default().bytes(1, name.as_bytes()).floats(7, values).int(20, 6)
}

fn tensor(name: &str, element: i64, count: usize, raw: &[u8]) -> Message {
    let tensor = Message::default().ints(1, [count as i64].into_iter()).int(2, element).bytes(9, raw);
    Message::default().bytes(1, name.as_bytes()).message(5, &tensor).int(20, 4)
}

/// A tensor of floats in the precision of the model.
fn numbers(name: &str, values: &[f64], is_double: bool) -> Message {
    match is_double {
        true => {
            let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            tensor(name, TYPE_DOUBLE, values.len(), &raw)
        }
        false => {
            let raw: Vec<u8> = values.iter().flat_map(|value| single(*value).to_le_bytes()).collect();
            tensor(name, TYPE_FLOAT, values.len(), &raw)
        }
    }
}

/// The attributes of `TreeEnsemble`. Splits and leaves have numbers of their own, over all trees.
fn ensemble(portable: &PortableTrees, is_double: bool) -> Vec<Message> {
    let (mut roots, mut features, mut splits, mut missing) = (vec![], vec![], vec![], vec![]);
    // For each split, the number of the child and whether it is a leaf.
    let mut on_true: Vec<(i64, bool)> = Vec::new();
    let mut on_false: Vec<(i64, bool)> = Vec::new();
    let mut leaves: Vec<f64> = Vec::new();
    for nodes in &portable.trees {
        roots.push(features.len() as i64);
        // A tree needs a split, so a single leaf becomes two equal ones.
        if nodes.len() == 1 {
            features.push(0);
            splits.push(0.0);
            missing.push(1);
            on_true.push((leaves.len() as i64, true));
            on_false.push((leaves.len() as i64, true));
            leaves.push(nodes[0].value);
            continue;
        }
        let places = numbered(nodes, features.len() as i64, leaves.len() as i64);
        for node in nodes {
            match &node.split {
                None => leaves.push(node.value),
                Some(split) => {
                    features.push(i64::from(split.feature));
                    splits.push(f64::from(split.threshold));
                    missing.push(i64::from(split.missing_left));
                    on_true.push(places[split.left]);
                    on_false.push(places[split.right]);
                }
            }
        }
    }
    let ids = |children: &[(i64, bool)]| children.iter().map(|(id, _)| *id).collect::<Vec<_>>().into_iter();
    let leafs = |children: &[(i64, bool)]| {
        children.iter().map(|(_, is_leaf)| i64::from(*is_leaf)).collect::<Vec<_>>().into_iter()
    };
    let modes = vec![0u8; features.len()];
    vec![
        int("aggregate_function", if portable.is_mean { 0 } else { 1 }),
        ints("leaf_targetids", leaves.iter().map(|_| 0)),
        numbers("leaf_weights", &leaves, is_double),
        int("n_targets", 1),
        ints("nodes_falseleafs", leafs(&on_false)),
        ints("nodes_falsenodeids", ids(&on_false)),
        ints("nodes_featureids", features.iter().copied()),
        ints("nodes_missing_value_tracks_true", missing.into_iter()),
        tensor("nodes_modes", TYPE_UINT8, modes.len(), &modes),
        numbers("nodes_splits", &splits, is_double),
        ints("nodes_trueleafs", leafs(&on_true)),
        ints("nodes_truenodeids", ids(&on_true)),
        int("post_transform", 0),
        ints("tree_roots", roots.into_iter()),
    ]
}

/// Numbers the splits and the leaves of a tree separately.
fn numbered(nodes: &[BinaryNode], mut split: i64, mut leaf: i64) -> Vec<(i64, bool)> {
    let mut number = |node: &BinaryNode| {
        let counter = if node.split.is_some() { &mut split } else { &mut leaf };
        *counter += 1;
        (*counter - 1, node.split.is_none())
    };
    nodes.iter().map(&mut number).collect()
}

/// The attributes of `TreeEnsembleRegressor`, which has 32-bit floats only.
fn regressor(portable: &PortableTrees) -> Vec<Message> {
    let all = || {
        (0i64..)
            .zip(&portable.trees)
            .flat_map(|(tree, nodes)| (0i64..).zip(nodes).map(move |(id, node)| (tree, id, node)))
    };
    let leaves = || all().filter(|(_, _, node)| node.split.is_none());
    let of_split = |node: &BinaryNode, of: &dyn Fn(&crate::exchange::binary::BinarySplit) -> i64| {
        node.split.as_ref().map_or(0, of)
    };
    let mut modes = Message::default().bytes(1, b"nodes_modes");
    for (_, _, node) in all() {
        modes = modes.bytes(9, if node.split.is_some() { b"BRANCH_LEQ" } else { b"LEAF" });
    }
    vec![
        text("aggregate_function", if portable.is_mean { "AVERAGE" } else { "SUM" }),
        int("n_targets", 1),
        ints("nodes_falsenodeids", all().map(|(_, _, node)| of_split(node, &|split| split.right as i64))),
        ints("nodes_featureids", all().map(|(_, _, node)| of_split(node, &|split| i64::from(split.feature)))),
        ints(
            "nodes_missing_value_tracks_true",
            all().map(|(_, _, node)| of_split(node, &|split| i64::from(split.missing_left))),
        ),
        modes.int(20, 8),
        ints("nodes_nodeids", all().map(|(_, id, _)| id)),
        ints("nodes_treeids", all().map(|(tree, _, _)| tree)),
        ints("nodes_truenodeids", all().map(|(_, _, node)| of_split(node, &|split| split.left as i64))),
        floats(
            "nodes_values",
            all().map(|(_, _, node)| node.split.as_ref().map_or(0.0, |split| split.threshold)),
        ),
        text("post_transform", "NONE"),
        ints("target_ids", leaves().map(|_| 0)),
        ints("target_nodeids", leaves().map(|(_, id, _)| id)),
        ints("target_treeids", leaves().map(|(tree, _, _)| tree)),
        floats("target_weights", leaves().map(|(_, _, node)| single(node.value))),
    ]
}
