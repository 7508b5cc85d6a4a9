//! Defines a small model for tests in this crate and in the crates that display models.

use super::{
    Branch, Combine, DatasetRecord, Model, ModelFeature, Node, Origin, Part, Split, Tree, TreeEnsemble,
};
use planetree_base::storage::digest_of;

pub(super) fn leaf(depth: u32, value: f64) -> Node {
    Node { depth, split: None, value, cover: 10.0 }
}

pub(super) fn split(feature: u32, left: u32, right: u32, gain: f64) -> Split {
    let missing = Branch::Right;
    Split { feature, threshold: 0.1, missing, left, right, middle: None, gain }
}

/// Returns a model with three features and a single part. The part has three trees, and the second tree is a single
/// leaf.
#[doc(hidden)]
pub fn example() -> Model {
    let first = Node { depth: 0, split: Some(split(2, 1, 2, 2.5)), value: 0.25, cover: 100.0 };
    let middle = Split { missing: Branch::Middle, middle: Some(4), ..split(2, 3, 5, 1.0) };
    let second = Node { depth: 1, split: Some(middle), value: -0.5, cover: 10.0 };
    let third = Node { depth: 0, split: Some(split(0, 1, 2, 2.0)), value: 0.0, cover: 100.0 };
    let trees = vec![
        Tree { nodes: vec![first, second, leaf(1, 1e-300), leaf(2, 0.1), leaf(2, -0.0), leaf(2, 3.0)] },
        Tree { nodes: vec![leaf(0, 7.0)] },
        Tree { nodes: vec![third, leaf(1, 1.0), leaf(1, 2.0)] },
    ];
    let ensemble = TreeEnsemble::new(Combine::Sum, 0.1 + 0.2, None, trees);
    Model {
        intercept: 0.0,
        parts: vec![Part::trees(ensemble)],
        groups: Vec::new(),
        features: vec![
            ModelFeature::new("f1"),
            ModelFeature { fill: Some(0.1), ..ModelFeature::new("größe \"x\"") },
            ModelFeature { fill: Some(-3.4e-38), ..ModelFeature::new("f3") },
        ],
        configuration: "num_trees = 3\nlearning_rate = 0.1\n".into(),
        data: vec![DatasetRecord {
            name: "train".into(),
            fingerprint: digest_of(b"x"),
            rows: u64::MAX,
            queries: 9,
        }],
        rounds: 12,
        start_scores: None,
        origin: Origin::default(),
    }
}
