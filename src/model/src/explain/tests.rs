//! Compares contributions with their definition, the mean over all orders of the features. The definition is evaluated
//! by enumerating all coalitions.

use super::*;
use crate::model::{Combine, Model, Normalisation, Tree, TreeEnsemble};
use crate::predict::tests::scorer::{RandomModel, random_model, random_rows};
use crate::predict::tests::stream::{dataset, model as small_model};
use crate::predict::{Scorer, scores_of};
use arrow::array::Array;
use planetree_base::random::Stream;
use planetree_data::ingest::InputFormat;
use proptest::prelude::*;

const PLAIN: RandomModel =
    RandomModel { seed: 7, combine: Combine::Sum, features: 5, trees: 3, max_leaves: 12, numbers: 9 };

fn ensemble(model: &mut Model) -> &mut TreeEnsemble {
    model.only_trees_mut().unwrap()
}

/// Creates a random model with a random `cover` for every node. The `cover` of some leaves is 0.
fn random_model_with_cover(shape: &RandomModel) -> Model {
    let mut model = random_model(shape);
    let mut stream = Stream::new(&[shape.seed, 2]);
    for tree in &mut ensemble(&mut model).trees {
        for node in (0..tree.nodes.len()).rev() {
            tree.nodes[node].cover = match &tree.nodes[node].split {
                Some(split) => split.children().map(|child| tree.nodes[child as usize].cover).sum(),
                None => (stream.bits() % 6) as f64 * 0.75,
            };
        }
        tree.nodes[0].cover = tree.nodes[0].cover.max(1.0);
    }
    model
}

/// Returns the expected value of a tree for a row if only the features in the bit set `known` are known (Lundberg et
/// al. 2020, algorithm 1).
fn coalition_value(tree: &Tree, node: u32, row: &[f32], known: u32) -> f64 {
    let Some(split) = &tree.nodes[node as usize].split else { return tree.nodes[node as usize].value };
    let cover = |child: u32| tree.nodes[child as usize].cover;
    if known >> split.feature & 1 == 1 {
        let value = row[split.feature as usize];
        if value.is_nan() && split.missing == crate::model::Branch::Middle && split.middle.is_none() {
            return tree.nodes[node as usize].value;
        }
        let next = match () {
            () if value.is_nan() => match split.missing {
                crate::model::Branch::Left => split.left,
                crate::model::Branch::Right => split.right,
                crate::model::Branch::Middle => split.middle.unwrap(),
            },
            () if value <= split.threshold => split.left,
            () => split.right,
        };
        return coalition_value(tree, next, row, known);
    }
    let total: f64 = split.children().map(cover).sum();
    let share =
        |child| if total > 0.0 { cover(child) / total } else { 1.0 / split.children().count() as f64 };
    split.children().map(|child| share(child) * coalition_value(tree, child, row, known)).sum()
}

/// Computes the contributions of a row and the expected value by enumerating all coalitions.
fn reference_contributions(model: &Model, row: &[f32]) -> (Vec<f64>, f64) {
    let filled: Vec<f32> = (model.features.iter().zip(row))
        .map(|(feature, value)| feature.fill.filter(|_| value.is_nan()).unwrap_or(*value))
        .collect();
    let features = model.features.len();
    let mut coalition_values = vec![0.0; 1 << features];
    for (known, sum) in coalition_values.iter_mut().enumerate() {
        for part in &model.parts {
            let ensemble = part.family.trees().unwrap();
            let values = ensemble.trees.iter().map(|tree| coalition_value(tree, 0, &filled, known as u32));
            *sum += part.weight * values.sum::<f64>() * ensemble.tree_weight();
        }
    }
    let bases = model.parts.iter().map(|part| part.weight * part.family.trees().unwrap().base_score);
    let base = model.intercept + bases.sum::<f64>();
    let factorial = |n: usize| (1..=n).product::<usize>() as f64;
    let contribution = |feature: usize| -> f64 {
        let others = (0..1usize << features).filter(|known| known >> feature & 1 == 0);
        let of = |known: usize| {
            let size = known.count_ones() as usize;
            let orders = factorial(size) * factorial(features - size - 1) / factorial(features);
            orders * (coalition_values[known | 1 << feature] - coalition_values[known])
        };
        others.map(of).sum()
    };
    ((0..features).map(contribution).collect(), base + coalition_values[0])
}

fn assert_near(one: f64, other: f64, what: &dyn std::fmt::Debug) {
    assert!((one - other).abs() <= 1e-10 * (1.0 + one.abs()), "{one} is not {other}: {what:?}");
}

/// Compares the contributions of a random model with their definition. The time is exponential in the number of
/// features.
fn check(shape: &RandomModel) {
    check_model(&random_model_with_cover(shape), shape);
}

fn check_model(model: &Model, shape: &RandomModel) {
    let values = random_rows(shape, 21);
    let explainer = Explainer::new(model).unwrap();
    let mut all = vec![f64::NAN; values.len()];
    explainer.explain_rows(&values, &mut all);
    for (row, all) in values.chunks(shape.features).zip(all.chunks(shape.features)) {
        let mut alone = vec![f64::NAN; shape.features];
        explainer.contributions(row, &mut alone);
        assert_eq!(alone, all, "{shape:?}");
        let (truth, expected) = reference_contributions(model, row);
        assert_near(explainer.expected_value(), expected, shape);
        for (one, other) in alone.iter().zip(truth) {
            assert_near(*one, other, shape);
        }
    }
}

/// Checks that the contributions and the expected value add up to the scores.
fn check_sums(model: &Model, values: &[f32]) {
    let features = model.features.len();
    let rows = values.len() / features;
    let (mut scores, mut all) = (vec![0.0; rows], vec![f64::NAN; values.len()]);
    Scorer::new(model).unwrap().score(values, &mut scores);
    let explainer = Explainer::new(model).unwrap();
    explainer.explain_rows(values, &mut all);
    for (score, contributions) in scores.iter().zip(all.chunks(features)) {
        let sum = explainer.expected_value() + contributions.iter().sum::<f64>();
        assert!((sum - score).abs() <= 1e-11 * score.abs().max(1.0), "{sum} is not {score}");
    }
}

proptest! {
    #[test]
    fn contributions_are_shapley_values(
        seed in any::<u64>(), bag in any::<bool>(), features in 1..7usize, trees in 0..4usize, leaves in 1..25usize,
    ) {
        let combine = if bag { Combine::Mean } else { Combine::Sum };
        check(&RandomModel { seed, combine, features, trees, max_leaves: leaves, ..PLAIN });
    }
}

#[test]
fn paths_of_many_features_are_exact() {
    // These paths need up to eight points, which form two batches.
    for seed in 0..4 {
        check(&RandomModel { seed, features: 13, trees: 1, max_leaves: 60, ..PLAIN });
    }
    // These paths need many points. There are too many features to evaluate the definition, so only the sums are
    // checked.
    for (features, max_leaves) in [(40, 100), (200, 1_000), (300, 5_000)] {
        let shape = RandomModel { features, max_leaves, trees: 4, numbers: 50, ..PLAIN };
        check_sums(&random_model_with_cover(&shape), &random_rows(&shape, 20));
    }
}

#[test]
fn the_base_feature_contributes_its_value() {
    let shape = RandomModel { trees: 5, ..PLAIN };
    let mut model = random_model_with_cover(&shape);
    ensemble(&mut model).base_feature = Some(2);
    let (plain, based) =
        (Explainer::new(&random_model_with_cover(&shape)).unwrap(), Explainer::new(&model).unwrap());
    assert_eq!(plain.expected_value(), based.expected_value());
    for (row, started) in [([1.0, 2.0, 3.0, f32::NAN, 5.0], 3.0), ([1.0, 2.0, f32::NAN, 4.0, 5.0], 0.0)] {
        let started = if row[2].is_nan() { model.features[2].fill.unwrap_or(0.0) } else { started };
        let (mut without, mut with) = ([0.0; 5], [0.0; 5]);
        plain.contributions(&row, &mut without);
        based.contributions(&row, &mut with);
        without[2] += f64::from(started);
        assert_eq!(without, with);
    }
    // The base feature is used even if there are no trees.
    let mut bare = model;
    ensemble(&mut bare).trees.clear();
    let explainer = Explainer::new(&bare).unwrap();
    assert_eq!(explainer.used_features().collect::<Vec<_>>(), [2]);
    let mut out = [9.0; 5];
    explainer.contributions(&[0.0, 0.0, 1.5, 0.0, 0.0], &mut out);
    assert_eq!(out, [0.0, 0.0, 1.5, 0.0, 0.0]);
}

/// Creates a model with a boosted part and a bagged part, with weights and an intercept.
fn two_parts(shape: &RandomModel) -> Model {
    let mut model = random_model_with_cover(shape);
    let other = RandomModel { seed: shape.seed ^ 1, combine: Combine::Mean, ..shape.clone() };
    model.parts.extend(random_model_with_cover(&other).parts);
    model.intercept = 0.75;
    (model.parts[0].weight, model.parts[1].weight) = (-0.5, 3.0);
    model
}

#[test]
fn contributions_to_a_weighted_sum_are_shapley_values() {
    for seed in 0..6 {
        let shape = RandomModel { seed, ..PLAIN };
        let model = two_parts(&shape);
        check_model(&model, &shape);
        check_sums(&model, &random_rows(&shape, 30));
    }
    let mut model = two_parts(&PLAIN);
    for (part, feature) in [(0, 1), (1, 3)] {
        model.parts[part].family.trees_mut().unwrap().base_feature = Some(feature);
    }
    let finite = random_rows(&PLAIN, 30).into_iter().map(|value| if value.abs() > 1e9 { 2.0 } else { value });
    check_sums(&model, &finite.collect::<Vec<_>>());
}

#[test]
fn normalised_and_pairwise_parts_are_refused_by_name() {
    let mut model = two_parts(&PLAIN);
    model.parts[1].name = "second".to_owned();
    model.parts[1].normalisation = Normalisation::Z;
    let error = Explainer::new(&model).unwrap_err();
    assert!(error.to_string().contains("part 1 (second) is normalised"), "{error}");
    assert!(error.remedy().is_some());
    model.parts[1].normalisation = Normalisation::None;
    model.parts[1].family.trees_mut().unwrap().combine = Combine::Wins;
    let error = Explainer::new(&model).unwrap_err();
    assert!(error.to_string().contains("part 1 (second) is a pairwise model"), "{error}");
}

#[test]
fn values_beyond_the_end_of_a_row_are_missing() {
    let explainer = Explainer::new(&random_model_with_cover(&RandomModel { trees: 9, ..PLAIN })).unwrap();
    let (mut short, mut long) = ([0.0; 5], [0.0; 5]);
    explainer.contributions(&[1.0, -1.0], &mut short);
    explainer.contributions(&[1.0, -1.0, f32::NAN, f32::NAN, f32::NAN], &mut long);
    assert_eq!(short, long);
}

#[test]
fn a_model_without_cover_is_rejected() {
    let mut model = random_model_with_cover(&PLAIN);
    ensemble(&mut model).trees[1].nodes[0].cover = 0.0;
    assert!(ensemble(&mut model).trees[1].nodes.len() > 1);
    let error = Explainer::new(&model).unwrap_err();
    assert!(error.to_string().starts_with("tree 1 of part 0 (trees) has no row counts"), "{error}");
    ensemble(&mut model).trees[1].nodes[0].cover = 3.0;
    ensemble(&mut model).trees[2].nodes[1].cover = -1.0;
    assert!(Explainer::new(&model).unwrap_err().to_string().starts_with("tree 2 "));
}

#[test]
fn a_dataset_is_explained_in_row_order() {
    let room = tempfile::tempdir().unwrap();
    let mut text = "query_id,doc_id,label,c,extra,a,b\n".to_owned();
    for query in 0..40 {
        text.push_str(&format!(
            "q{query},d1,0,1,7,-1,-1\nq{query},d2,,{query},7,,1\nq{query},,2,-1,7,-1,1\n"
        ));
    }
    let reader = dataset(room.path(), &text, InputFormat::Csv);
    let mut model = small_model(&["a", "b", "c"], &[2, 0, 1, 2]);
    model.features[0].fill = Some(4.0);
    let scores = scores_of(&reader, &model).unwrap();
    let mut seen = Vec::new();
    for threads in [1, 3] {
        let (mut ids, mut contributions) = (Vec::new(), Vec::new());
        let report = explain(&reader, &model, threads, &mut |rows| {
            ids.extend((0..rows.query_ids.len()).map(|row| rows.query_ids.value(row).to_owned()));
            contributions.extend(rows.contributions);
            Ok(())
        });
        let report = report.unwrap();
        assert_eq!((report.rows, report.warning), (120, None));
        assert_eq!(ids, (0..120).map(|row| format!("q{}", row / 3)).collect::<Vec<_>>());
        for (row, score) in contributions.chunks(3).zip(&scores) {
            assert_near(report.expected_value + row.iter().sum::<f64>(), *score, &row);
        }
        seen.push(contributions);
    }
    assert_eq!(seen[0], seen[1]);
    let outcome = explain(&reader, &model, 2, &mut |_| Err(planetree_base::error::Error::Interrupted));
    assert_eq!(outcome.unwrap_err().to_string(), "interrupted; nothing was written");
}

#[test]
fn differences_are_sorted_by_absolute_value_and_add_up() {
    let found = differences(&[1.0, 0.5, -2.0, 0.25], &[0.0, 0.5, 1.0, 1.25]);
    let shown: Vec<_> = found.iter().map(|it| (it.feature, it.value())).collect();
    assert_eq!(shown, [(2, -3.0), (0, 1.0), (3, -1.0)]);
    assert_eq!((found[0].first, found[0].second), (-2.0, 1.0));
}
