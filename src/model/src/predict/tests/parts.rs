//! Compares weighted sums of parts with a naive loop over parts, queries and documents.

use super::scorer::{RandomModel, random_model, random_rows, reference_value};
use super::stream::{dataset, model};
use crate::model::{Combine, Link, Model, Normalisation, Part, PartGroup, TreeEnsemble};
use crate::predict::{
    GroupPredictor, PredictedGroup, PredictionsTable, Scorer, part_columns, part_values, predict_with,
    scores_of, win_rates,
};
use arrow::array::Float32Array;
use fearless_simd::Level;
use planetree_base::random::Stream;
use planetree_base::storage::Location;
use planetree_data::ingest::InputFormat;
use planetree_data::table::{TableKind, TableReader};
use proptest::prelude::*;

/// Computes the values of a part for the documents of a query naively, before normalisation.
fn reference_values(model: &Model, ensemble: &TreeEnsemble, rows: &[&[f32]]) -> Vec<f64> {
    if ensemble.combine != Combine::Wins {
        return rows.iter().map(|row| reference_value(model, ensemble, row)).collect();
    }
    let width = model.features.len();
    let filled = rows.iter().flat_map(|row| {
        row.iter().zip(&model.features).map(|(value, feature)| match feature.fill {
            Some(fill) if value.is_nan() => fill,
            _ => *value,
        })
    });
    win_rates(&filled.collect::<Vec<f32>>(), width, |differences, values| {
        for (row, value) in differences.chunks(width).zip(values) {
            *value = reference_value(model, ensemble, row);
        }
    })
}

fn reference_scores(model: &Model, rows: &[&[f32]]) -> Vec<f64> {
    let mut scores = vec![model.intercept; rows.len()];
    for part in &model.parts {
        let mut values = reference_values(model, part.family.trees().unwrap(), rows);
        part.normalisation.apply(&mut values);
        scores.iter_mut().zip(values).for_each(|(score, value)| *score += part.weight * value);
    }
    scores
}

#[derive(Debug, Clone)]
struct RandomPart {
    combine: Combine,
    normalisation: Normalisation,
    weight: f64,
    trees: usize,
    leaves: usize,
    base_feature: bool,
}

fn random_part() -> impl Strategy<Value = RandomPart> {
    let combine = prop::sample::select(vec![Combine::Sum, Combine::Mean, Combine::Wins]);
    let normalisation = prop::sample::select(Normalisation::ALL.to_vec());
    let weight = prop_oneof![Just(1.0), -3.0..3.0f64];
    let leaves = prop_oneof![1..30usize, 300..400usize];
    (combine, normalisation, weight, 0..5usize, leaves, any::<bool>()).prop_map(
        |(combine, normalisation, weight, trees, leaves, base_feature)| RandomPart {
            combine,
            normalisation,
            weight,
            trees,
            leaves,
            base_feature,
        },
    )
}

fn model_of(seed: u64, features: usize, intercept: f64, parts: &[RandomPart]) -> Model {
    let shape = |number: usize, part: &RandomPart| RandomModel {
        seed: seed.wrapping_add(number as u64),
        combine: part.combine,
        features,
        trees: part.trees,
        max_leaves: part.leaves,
        numbers: 12,
    };
    let mut model = random_model(&shape(0, &parts[0]));
    let made = parts.iter().enumerate().map(|(number, part)| {
        let [mut made]: [Part; 1] = random_model(&shape(number, part)).parts.try_into().unwrap();
        (made.weight, made.normalisation) = (part.weight, part.normalisation);
        made.family.trees_mut().unwrap().base_feature = part.base_feature.then_some(features as u32 - 1);
        made
    });
    model.parts = made.collect();
    model.intercept = intercept;
    model
}

/// Creates random rows without infinite values, because a base feature would add these to the score.
fn finite_rows(seed: u64, features: usize, rows: usize) -> Vec<f32> {
    let shape = RandomModel { seed, combine: Combine::Sum, features, trees: 0, max_leaves: 1, numbers: 12 };
    let clipped = |value: f32| if value.is_nan() { value } else { value.clamp(-100.0, 100.0) };
    random_rows(&shape, rows).into_iter().map(clipped).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_sum_of_parts_scores_as_the_naive_loop_does(
        seed in any::<u64>(),
        features in 1..6usize,
        intercept in prop_oneof![Just(0.0), -2.0..2.0f64],
        parts in prop::collection::vec(random_part(), 1..5),
        rows in 0..200usize,
    ) {
        let mut model = model_of(seed, features, intercept, &parts);
        model.features.iter_mut().for_each(|feature| feature.fill = feature.fill.map(|fill| fill.clamp(-9.0, 9.0)));
        let values = finite_rows(seed, features, rows);
        let all: Vec<&[f32]> = values.chunks(features).collect();
        let mut stream = Stream::new(&[seed, 5]);
        let mut bounds = vec![0];
        while bounds[bounds.len() - 1] < rows {
            bounds.push((bounds[bounds.len() - 1] + 1 + stream.bits() as usize % 20).min(rows));
        }
        let expected: Vec<f64> =
            bounds.windows(2).flat_map(|query| reference_scores(&model, &all[query[0]..query[1]])).collect();
        let column = |feature: usize| -> Float32Array {
            let values = values.iter().skip(feature).step_by(features);
            values.map(|value| (!value.is_nan()).then_some(*value)).collect()
        };
        let columns: Vec<Float32Array> = (0..features).map(column).collect();
        let columns: Vec<_> = columns.iter().map(Some).collect();
        let bits = |scores: &[f64]| -> Vec<u64> { scores.iter().map(|score| (score + 0.0).to_bits()).collect() };
        for level in [Level::baseline(), Level::new()] {
            let scorer = Scorer::for_level(&model, level).unwrap();
            let mut scores = vec![f64::NAN; rows];
            scorer.score_queries(&columns, &bounds, &mut scores).unwrap();
            prop_assert_eq!(bits(&scores), bits(&expected));
            // The first query is also scored from row-major values.
            if bounds.len() > 1 {
                let first = bounds[1];
                let mut scores = vec![f64::NAN; first];
                scorer.score(&values[..first * features], &mut scores);
                prop_assert_eq!(bits(&scores), bits(&expected[..first]));
            }
        }
    }
}

/// Creates a model with three parts that use the features `a` and `b`. Two of the parts are normalised, and two have
/// the same name.
fn three_parts() -> Model {
    let mut three = model(&["a", "b"], &[0]);
    let mut second = model(&["a", "b"], &[1]).parts.remove(0);
    (second.weight, second.normalisation) = (2.0, Normalisation::Minmax);
    let mut third = second.clone();
    (third.name, third.weight, third.normalisation) = ("c".to_owned(), -1.0, Normalisation::Rank);
    three.parts.extend([second, third]);
    three.intercept = 0.5;
    three
}

/// Four rows. The values of the first part are 1, 0, 5 and 1, and those of the other parts are 10, 0, 50 and 10 before
/// normalisation.
const TEXT: &str = "query_id,label,a,b\nq1,0,1,1\nq1,0,-1,-1\nq1,0,,\nq2,0,1,1\n";

#[test]
fn queries_are_normalised_and_parts_become_columns() {
    let room = tempfile::tempdir().unwrap();
    let (reader, model) = (dataset(room.path(), TEXT, InputFormat::Csv), three_parts());
    let expected = [0.5 + 1.0 + 2.0 * 0.2 - 0.5, 0.5, 0.5 + 5.0 + 2.0 - 1.0, 0.5 + 1.0 - 0.5];
    assert_eq!(scores_of(&reader, &model).unwrap(), expected);
    assert_eq!(part_columns(&model), ["part.trees", "part.trees.2", "part.c"]);
    let predictor = GroupPredictor::with_parts(&model, &reader, true).unwrap();
    let location = Location::Local(room.path().join("predictions"));
    let mut table = PredictionsTable::with_parts(&location, &part_columns(&model)).unwrap();
    let mut all = Vec::new();
    predict_with(&reader, &predictor, 2, &mut |group| {
        let batch = group.into_batch()?;
        let group = PredictedGroup::from_batch(&batch).unwrap();
        all.extend(group.scores.iter().copied());
        for (row, score) in group.scores.iter().enumerate() {
            let terms = model.parts.iter().zip(&group.parts).map(|(part, it)| part.weight * it.values[row]);
            assert_eq!(*score, terms.fold(model.intercept, |sum, term| sum + term));
        }
        table.write(group)
    })
    .unwrap();
    assert_eq!(all, expected);
    let model_file = Location::Local(room.path().join("model"));
    model.write(&model_file).unwrap();
    table.finish(&model_file, &model, &reader).unwrap();
    let table = TableReader::open(&location, TableKind::Predictions).unwrap();
    let names: Vec<&str> = table.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names[5..], ["part.trees", "part.trees.2", "part.c"]);
}

/// Computes the value of a group with the formulas of `model/group.rs`, document by document. `terms` has the
/// normalised values of every part of one query.
fn slow_group(model: &Model, group: &PartGroup, terms: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let documents = terms[0].len();
    let mut all = Vec::new();
    for document in 0..documents {
        let own: Vec<f64> = terms.iter().map(|term| term[document]).collect();
        let linked: Vec<f64> = match group.link {
            Link::Identity => own,
            Link::Softmax => {
                let sum: f64 = own.iter().map(|value| value.exp()).sum();
                own.iter().map(|value| value.exp() / sum).collect()
            }
        };
        all.push(
            group.intercept + linked.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>(),
        );
    }
    group.normalisation.apply(&mut all);
    assert!(model.groups.contains(group));
    all
}

#[test]
fn groups_are_linked_normalised_and_weighted() {
    let room = tempfile::tempdir().unwrap();
    let reader = dataset(room.path(), TEXT, InputFormat::Csv);
    let mut model = three_parts();
    let group = |first_part, parts, link, normalisation, weight| PartGroup {
        name: "g".to_owned(),
        first_part,
        parts,
        link,
        intercept: 0.25,
        normalisation,
        weight,
    };
    model.parts.push(Part { weight: 3.0, ..model.parts[0].clone() });
    // Part 0, and a normalised sum of part 1 and of a softmax of the parts 2 and 3.
    model.groups = vec![
        group(1, 3, Link::Identity, Normalisation::Z, -2.0),
        group(2, 2, Link::Softmax, Normalisation::None, 0.5),
    ];
    let values = part_values(&reader, &model).unwrap();
    let mut expected = Vec::new();
    for query in [0..3, 3..4] {
        let of = |part: usize| values[part][query.clone()].to_vec();
        let softmax = slow_group(&model, &model.groups[1], &[of(2), of(3)], &[-1.0, 3.0]);
        let outer = slow_group(&model, &model.groups[0], &[of(1), softmax], &[2.0, 0.5]);
        expected.extend(of(0).iter().zip(outer).map(|(part, group)| 0.5 + part - 2.0 * group));
    }
    let scores = scores_of(&reader, &model).unwrap();
    for (score, expected) in scores.iter().zip(&expected) {
        assert!((score - expected).abs() < 1e-12, "{scores:?} {expected:?}");
    }
    // One query in memory, and a file, give the same bits.
    let location = Location::Local(room.path().join("model"));
    model.write(&location).unwrap();
    let read = Model::read(&location).unwrap();
    assert_eq!(read, model);
    let mut first = vec![0.0; 3];
    Scorer::new(&read).unwrap().score(&[1.0, 1.0, -1.0, -1.0, f32::NAN, f32::NAN], &mut first);
    assert_eq!(first, scores[..3]);
    let error = model.check_single_rows("here").unwrap_err().to_string();
    assert!(error.starts_with("here: part 1 (trees) is normalised"), "{error}");
    model.parts.iter_mut().for_each(|part| part.normalisation = Normalisation::None);
    let error = model.check_single_rows("here").unwrap_err().to_string();
    assert!(error.starts_with("here: group 0 (g) is normalised"), "{error}");
}

#[test]
fn a_model_with_start_scores_is_no_scorer() {
    let mut model = three_parts();
    model.start_scores = Some(planetree_base::storage::digest_of(b"x"));
    let error = Scorer::new(&model).unwrap_err().to_string();
    assert!(error.contains("the model: the model was trained from start scores"), "{error}");
    assert!(Scorer::new(&model.without_start_scores()).is_ok());
}

#[test]
fn a_plain_part_is_the_score_itself() {
    let room = tempfile::tempdir().unwrap();
    let (reader, model) = (dataset(room.path(), TEXT, InputFormat::Csv), model(&["a", "b"], &[0, 1]));
    let predictor = GroupPredictor::with_parts(&model, &reader, true).unwrap();
    predict_with(&reader, &predictor, 1, &mut |group| {
        assert_eq!(group.parts[0].values, group.scores);
        Ok(())
    })
    .unwrap();
    assert_eq!(scores_of(&reader, &model).unwrap(), [11.0, 0.0, 55.0, 11.0]);
}

#[test]
fn an_overflow_of_a_normalised_part_is_an_error() {
    let room = tempfile::tempdir().unwrap();
    let (reader, mut model) = (dataset(room.path(), TEXT, InputFormat::Csv), three_parts());
    let ensemble = model.parts[2].family.trees_mut().unwrap();
    ensemble.trees[0].nodes[3].value = f64::MAX;
    ensemble.trees.push(ensemble.trees[0].clone());
    let error = scores_of(&reader, &model).unwrap_err();
    assert!(error.to_string().contains("is not finite"), "{error}");
}

#[test]
fn single_rows_of_parts_that_need_queries_are_refused_by_name() {
    let mut model = three_parts();
    let error = model.check_single_rows("here").unwrap_err();
    assert!(error.to_string().starts_with("here: part 1 (trees) is normalised"), "{error}");
    model.parts.truncate(1);
    model.check_single_rows("here").unwrap();
    model.parts[0].family.trees_mut().unwrap().combine = Combine::Wins;
    let error = model.check_single_rows("here").unwrap_err();
    assert!(error.to_string().starts_with("here: part 0 (trees) is a pairwise model"), "{error}");
}
