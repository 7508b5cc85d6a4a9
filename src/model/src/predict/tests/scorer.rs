//! Compares the scorer with a naive reference that walks the trees node by node.

use crate::model::{Branch, Combine, Model, ModelFeature, Node, Origin, Part, Split, Tree, TreeEnsemble};
use crate::predict::Scorer;
use arrow::array::Float32Array;
use fearless_simd::Level;
use planetree_base::random::Stream;
use proptest::prelude::*;

/// Returns the value of the node at which a row ends.
fn tree_value(tree: &Tree, value_of: &dyn Fn(u32) -> f32) -> f64 {
    let mut node = 0;
    while let Some(split) = &tree.nodes[node as usize].split {
        let value = value_of(split.feature);
        let branch = match () {
            () if value.is_nan() => split.missing,
            () if value <= split.threshold => Branch::Left,
            () => Branch::Right,
        };
        node = match branch {
            Branch::Left => split.left,
            Branch::Right => split.right,
            Branch::Middle => match split.middle {
                Some(middle) => middle,
                None => break,
            },
        };
    }
    tree.nodes[node as usize].value
}

/// Computes the score of a row naively.
fn reference_score(model: &Model, row: &[f32]) -> f64 {
    reference_value(model, model.only_trees().unwrap(), row)
}

/// Computes the value of an ensemble for a row naively. For a pairwise model, the row is the difference of two
/// documents.
pub(crate) fn reference_value(model: &Model, ensemble: &TreeEnsemble, row: &[f32]) -> f64 {
    let value_of = |feature: u32| match model.features[feature as usize].fill {
        Some(fill) if row[feature as usize].is_nan() => fill,
        _ => row[feature as usize],
    };
    let trees = &ensemble.trees;
    let values = trees.iter().map(|tree| tree_value(tree, &value_of));
    let mut base = ensemble.base_score;
    if let Some(feature) = ensemble.base_feature {
        let value = value_of(feature);
        base += f64::from(if value.is_nan() { 0.0 } else { value });
    }
    match ensemble.combine {
        Combine::Sum => values.fold(base, |score, value| score + value),
        Combine::Mean | Combine::Wins => {
            base + values.fold(0.0, |sum, value| sum + value) / trees.len().max(1) as f64
        }
    }
}

/// Parameters of a random model.
#[derive(Debug, Clone)]
pub(crate) struct RandomModel {
    pub(crate) seed: u64,
    pub(crate) combine: Combine,
    pub(crate) features: usize,
    pub(crate) trees: usize,
    pub(crate) max_leaves: usize,
    /// Number of distinct values and thresholds. If there are few, many values are equal to a threshold.
    pub(crate) numbers: u64,
}

/// Returns a random value or threshold, which is mostly one of a few numbers and sometimes an extreme one.
fn number(stream: &mut Stream, numbers: u64) -> f32 {
    const EXTREME: [f32; 8] =
        [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45];
    match stream.bits() % 8 {
        0 => EXTREME[(stream.bits() % 8) as usize],
        _ => (stream.bits() % numbers) as f32 - (numbers / 2) as f32,
    }
}

pub(crate) fn random_model(shape: &RandomModel) -> Model {
    let mut stream = Stream::new(&[shape.seed]);
    let fill = |stream: &mut Stream| stream.bits().is_multiple_of(4).then(|| number(stream, shape.numbers));
    let features = (0..shape.features)
        .map(|feature| ModelFeature { fill: fill(&mut stream), ..ModelFeature::new(format!("f{feature}")) })
        .collect();
    let trees = (0..shape.trees).map(|_| random_tree(shape, &mut stream)).collect();
    let (combine, base_score) = (shape.combine, stream.normal());
    Model {
        intercept: 0.0,
        parts: vec![Part::trees(TreeEnsemble::new(combine, base_score, None, trees))],
        groups: Vec::new(),
        features,
        configuration: String::new(),
        data: Vec::new(),
        rounds: shape.trees as u32,
        start_scores: None,
        origin: Origin::default(),
    }
}

/// Grows a tree by splitting random leaves.
fn random_tree(shape: &RandomModel, stream: &mut Stream) -> Tree {
    let leaf = |depth, stream: &mut Stream| Node { depth, split: None, value: stream.normal(), cover: 1.0 };
    let leaves = 1 + (stream.bits() as usize) % shape.max_leaves;
    let mut tree = Tree { nodes: vec![leaf(0, stream)] };
    let mut open = vec![0];
    while open.len() < leaves {
        // The newest leaf is often chosen, so that some trees are deep.
        let at = if stream.bits().is_multiple_of(2) {
            open.len() - 1
        } else {
            stream.bits() as usize % open.len()
        };
        let parent = open.swap_remove(at);
        let missing = match stream.bits() % 3 {
            0 => Branch::Left,
            1 => Branch::Right,
            _ => Branch::Middle,
        };
        let first = tree.nodes.len() as u32;
        // Some branches of missing values were taken by no training row.
        let is_taken = missing == Branch::Middle && open.len() + 3 <= leaves && !first.is_multiple_of(3);
        let children = if is_taken { 3 } else { 2 };
        let depth = tree.nodes[parent].depth + 1;
        tree.nodes[parent].split = Some(Split {
            feature: (stream.bits() % shape.features as u64) as u32,
            threshold: number(stream, shape.numbers),
            missing,
            left: first,
            right: first + 1,
            middle: is_taken.then_some(first + 2),
            gain: 0.0,
        });
        for _ in 0..children {
            open.push(tree.nodes.len());
            tree.nodes.push(leaf(depth, stream));
        }
    }
    tree
}

pub(crate) fn random_rows(shape: &RandomModel, rows: usize) -> Vec<f32> {
    let mut stream = Stream::new(&[shape.seed, 1]);
    let mut value = || match stream.bits() % 4 {
        0 => f32::NAN,
        _ => number(&mut stream, shape.numbers),
    };
    (0..rows * shape.features).map(|_| value()).collect()
}

fn check(shape: &RandomModel, rows: usize) {
    let (model, values) = (random_model(shape), random_rows(shape, rows));
    let expected: Vec<u64> =
        values.chunks(shape.features).map(|row| reference_score(&model, row).to_bits()).collect();
    let bits = |scores: &[f64]| -> Vec<u64> { scores.iter().map(|score| score.to_bits()).collect() };
    // The same values as columns. Missing values are NaN in every third column and null in all other columns.
    let column = |feature: usize| -> Float32Array {
        let values = values.iter().skip(feature).step_by(shape.features);
        values.map(|value| (!value.is_nan() || feature.is_multiple_of(3)).then_some(*value)).collect()
    };
    let columns: Vec<Float32Array> = (0..shape.features).map(column).collect();
    let columns: Vec<_> = columns.iter().map(Some).collect();
    // Tests both the baseline instructions and the best instructions of this machine.
    for level in [Level::baseline(), Level::new()] {
        let scorer = Scorer::for_level(&model, level).unwrap();
        let mut scores = vec![f64::NAN; rows];
        scorer.score(&values, &mut scores);
        assert_eq!(bits(&scores), expected, "row by row: {shape:?}");
        scores.fill(f64::NAN);
        scorer.score_columns(&columns, &mut scores);
        assert_eq!(bits(&scores), expected, "by columns: {shape:?}");
    }
}

fn shapes() -> impl Strategy<Value = RandomModel> {
    let combine = prop_oneof![Just(Combine::Sum), Just(Combine::Mean)];
    let leaves = prop_oneof![Just(1), 2..40usize, 40..101usize];
    let numbers = prop_oneof![2..20u64, 20..2000u64];
    (any::<u64>(), combine, 1..12usize, 0..9usize, leaves, numbers).prop_map(
        |(seed, combine, features, trees, max_leaves, numbers)| RandomModel {
            seed,
            combine,
            features,
            trees,
            max_leaves,
            numbers,
        },
    )
}

proptest! {
    #[test]
    fn any_model_scores_as_the_reference_does(shape in shapes(), rows in 0..300usize) {
        check(&shape, rows);
    }
}

proptest! {
    /// Few rows walk the trees one by one instead of in blocks.
    #[test]
    fn few_rows_score_as_the_reference_does(shape in shapes(), rows in 0..14usize) {
        check(&shape, rows);
    }
}

const PLAIN: RandomModel =
    RandomModel { seed: 7, combine: Combine::Sum, features: 5, trees: 3, max_leaves: 31, numbers: 50 };

#[test]
fn large_trees_score_as_the_reference_does() {
    for (seed, max_leaves) in [(1, 300), (2, 2_000), (3, 20_000)] {
        check(&RandomModel { seed, max_leaves, trees: 6, ..PLAIN }, 200);
    }
}

#[test]
fn a_feature_may_have_more_thresholds_than_a_byte_can_count() {
    for seed in 0..4 {
        check(&RandomModel { seed, features: 1, trees: 40, max_leaves: 100, numbers: 100_000, ..PLAIN }, 300);
        check(
            &RandomModel { seed, features: 2, trees: 4, max_leaves: 5_000, numbers: 1_000_000, ..PLAIN },
            300,
        );
    }
}

#[test]
fn a_model_may_have_many_features() {
    check(&RandomModel { features: 70_000, trees: 10, ..PLAIN }, 20);
}

#[test]
fn a_model_without_trees_scores_the_base_score() {
    for combine in [Combine::Sum, Combine::Mean] {
        check(&RandomModel { trees: 0, combine, ..PLAIN }, 3);
    }
}

#[test]
fn a_feature_without_a_column_is_missing_or_filled() {
    let model = random_model(&RandomModel { trees: 20, ..PLAIN });
    let mut scores = [0.0; 3];
    Scorer::new(&model).unwrap().score_columns(&[None; 5], &mut scores);
    assert_eq!(scores, [reference_score(&model, &[f32::NAN; 5]); 3]);
}
