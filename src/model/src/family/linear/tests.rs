//! Compares scores and explanations of linear models with their definitions, one value at a time.

use super::*;
use crate::exchange::{ExportRequest, MODEL_FORMATS};
use crate::explain::{Explainer, explain};
use crate::family::Family;
use crate::family::fixtures::{assert_near, model_of, random_rows, rows_of, scores_in_all_ways};
use crate::model::{Model, Normalisation, Part, PartFamily};
use crate::predict::tests::stream::{dataset, model as tree_model};
use crate::predict::{GroupPredictor, Scorer, scores_of};
use planetree_base::random::Stream;
use planetree_base::storage::Location;
use planetree_data::ingest::InputFormat;
use proptest::prelude::*;

/// Creates a model with a random linear function. Some features have no weight, no fill value or no spread.
fn random_model(seed: u64, features: usize, normalisation: FeatureNormalisation) -> Model {
    let mut stream = Stream::new(&[seed, 3]);
    let mut number = || (stream.bits() % 2001) as f64 / 100.0 - 10.0;
    let has_constants = normalisation.has_constants();
    let term = |feature: usize| {
        let weight = if feature % 5 == 4 { 0.0 } else { number() };
        let spread = if feature % 4 == 3 { 0.0 } else { number().abs() + 0.1 };
        LinearTerm {
            feature: feature as u32,
            weight,
            centre: if has_constants { number() } else { 0.0 },
            spread: if has_constants { spread } else { 1.0 },
            mean: number(),
            gain: weight.abs() * 0.5,
            cover: 17.0,
        }
    };
    let terms = (0..features).map(term).collect();
    model_of(Part::linear(LinearFunction::new(0.25, normalisation, terms)), features)
}

fn function(model: &Model) -> &LinearFunction {
    match &model.parts[0].family {
        PartFamily::Linear(function) => function,
        _ => panic!("the part is linear"),
    }
}

/// Normalises a feature of all documents of a query with the formulas of the documentation.
fn reference_values(model: &Model, term: &LinearTerm, column: &[f32]) -> Vec<f64> {
    let fill = model.features[term.feature as usize].fill;
    let known = |value: &f32| Some(*value).filter(|value| value.is_finite()).or(fill).map(f64::from);
    let present: Vec<f64> = column.iter().filter_map(known).collect();
    let least = present.iter().copied().fold(f64::INFINITY, f64::min);
    let most = present.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let normalised = |value: f64| match function(model).normalisation {
        FeatureNormalisation::None => value,
        FeatureNormalisation::Query if least == most => 0.0,
        FeatureNormalisation::Query => (value - least) / (most - least),
        FeatureNormalisation::Z | FeatureNormalisation::Minmax if term.spread == 0.0 => 0.0,
        FeatureNormalisation::Z | FeatureNormalisation::Minmax => (value - term.centre) / term.spread,
    };
    column.iter().map(|value| known(value).map_or(0.0, normalised)).collect()
}

fn reference_scores(model: &Model, rows: &[f32]) -> Vec<f64> {
    let width = model.features.len();
    let mut scores = vec![function(model).base_score; rows.len() / width];
    for term in &function(model).terms {
        let column: Vec<f32> = rows.chunks(width).map(|row| row[term.feature as usize]).collect();
        for (score, value) in scores.iter_mut().zip(reference_values(model, term, &column)) {
            *score += term.weight * value;
        }
    }
    scores
}

proptest! {
    #[test]
    fn scores_are_those_of_the_definition(
        seed in any::<u64>(), features in 1..12usize, rows in prop_oneof![0..9usize, 500..1100usize],
        normalisation in prop::sample::select(FeatureNormalisation::ALL.to_vec()),
    ) {
        let model = random_model(seed, features, normalisation);
        let values = random_rows(seed, rows, features);
        let scores = scores_in_all_ways(&model, &values);
        for (score, expected) in scores.into_iter().zip(reference_scores(&model, &values)) {
            assert_near(score, expected);
        }
    }

    #[test]
    fn contributions_are_weighted_deviations_from_the_mean(
        seed in any::<u64>(), features in 1..9usize, rows in 1..40usize,
        normalisation in prop::sample::select(FeatureNormalisation::ALL.to_vec()),
    ) {
        let mut model = random_model(seed, features, normalisation);
        (model.intercept, model.parts[0].weight) = (0.5, -2.0);
        let values = random_rows(seed, rows, features);
        let explainer = Explainer::new(&model).unwrap();
        prop_assert_eq!(explainer.needs_queries(), normalisation == FeatureNormalisation::Query);
        let (mut scores, mut all) = (vec![0.0; rows], vec![f64::NAN; values.len()]);
        Scorer::new(&model).unwrap().score(&values, &mut scores);
        explainer.explain_rows(&values, &mut all);
        for (score, contributions) in scores.iter().zip(all.chunks(features)) {
            assert_near(*score, explainer.expected_value() + contributions.iter().sum::<f64>());
        }
        for term in &function(&model).terms {
            let column: Vec<f32> = values.chunks(features).map(|row| row[term.feature as usize]).collect();
            for (row, value) in reference_values(&model, term, &column).into_iter().enumerate() {
                let expected = -2.0 * term.weight * (value - term.mean);
                assert_near(all[row * features + term.feature as usize], expected);
            }
        }
    }
}

#[test]
fn examples_by_hand() {
    let normalised = |normalisation, fill, values: &[f32]| {
        let mut normalised = vec![f64::NAN; values.len()];
        FeatureNormaliser::new(normalisation, fill, 2.0, 4.0).normalise(values, &mut normalised);
        normalised
    };
    let values = [1.0, f32::NAN, 5.0, 3.0];
    assert_eq!(normalised(FeatureNormalisation::None, None, &values), [1.0, 0.0, 5.0, 3.0]);
    assert_eq!(normalised(FeatureNormalisation::None, Some(7.0), &values), [1.0, 7.0, 5.0, 3.0]);
    assert_eq!(normalised(FeatureNormalisation::Z, None, &values), [-0.25, 0.0, 0.75, 0.25]);
    assert_eq!(normalised(FeatureNormalisation::Minmax, Some(6.0), &values), [-0.25, 1.0, 0.75, 0.25]);
    assert_eq!(normalised(FeatureNormalisation::Query, None, &values), [0.0, 0.0, 1.0, 0.5]);
    assert_eq!(normalised(FeatureNormalisation::Query, Some(9.0), &values), [0.0, 1.0, 0.5, 0.25]);
    // A feature that is constant in a query, or always missing.
    assert_eq!(normalised(FeatureNormalisation::Query, None, &[3.0, 3.0]), [0.0, 0.0]);
    assert_eq!(normalised(FeatureNormalisation::Query, None, &[f32::NAN, f32::NAN]), [0.0, 0.0]);
    assert_eq!(normalised(FeatureNormalisation::Query, None, &[8.0]), [0.0]);
}

#[test]
fn a_linear_model_is_read_as_it_was_written() {
    let room = tempfile::tempdir().unwrap();
    let location = Location::Local(room.path().join("model"));
    for normalisation in FeatureNormalisation::ALL {
        let mut model = random_model(3, 7, normalisation);
        model.parts.push(tree_model(&["f0", "f1"], &[1]).parts[0].clone());
        model
            .parts
            .push(Part { name: "second".to_owned(), ..random_model(4, 7, normalisation).parts[0].clone() });
        model.write(&location).unwrap();
        assert_eq!(Model::read(&location).unwrap(), model);
    }
    let mut model = random_model(3, 2, FeatureNormalisation::Z);
    let PartFamily::Linear(function) = &mut model.parts[0].family else { panic!("the part is linear") };
    function.terms[1].feature = 0;
    let error = model.write(&location).unwrap_err().to_string();
    assert!(error.contains("part 0 (linear): node 1: the feature has two weights"), "{error}");
}

#[test]
fn invalid_functions_are_named() {
    let valid = function(&random_model(3, 3, FeatureNormalisation::Z)).clone();
    assert_eq!(valid.fault(3), None);
    let fault = |change: &dyn Fn(&mut LinearFunction)| {
        let mut changed = valid.clone();
        change(&mut changed);
        changed.fault(3).unwrap()
    };
    let nan = f64::NAN;
    for (found, expected) in [
        (fault(&|function| function.base_score = nan), "the base score is NaN"),
        (fault(&|function| function.terms[2].weight = nan), "node 2: the value is NaN"),
        (fault(&|function| function.terms[1].centre = nan), "node 1: the centre is NaN"),
        (fault(&|function| function.terms[1].spread = -1.0), "node 1: the spread is -1"),
        (fault(&|function| function.terms[0].mean = f64::INFINITY), "node 0: the mean is inf"),
        (fault(&|function| function.terms[0].feature = 3), "node 0: unknown feature 3"),
    ] {
        assert!(found.starts_with(expected), "{found}");
    }
    let mut read = LinearFunction::from_settings(valid.settings()).unwrap();
    assert!(read.fault(3).unwrap().contains("constants of 3 more features"));
    let rows = rows_of(&valid);
    assert!(read.read_row(rows[1].clone()).unwrap_err().contains("out of order"));
    rows.iter().for_each(|row| read.read_row(row.clone()).unwrap());
    assert_eq!(read, valid);
}

#[test]
fn importance_is_the_deviation_of_the_terms() {
    let model = random_model(5, 6, FeatureNormalisation::None);
    let importance = model.importance();
    assert!(importance.is_sorted_by(|one, other| one.gain >= other.gain));
    for one in &importance {
        let term = &function(&model).terms[one.feature as usize];
        let expected = if term.weight == 0.0 { (0.0, 0.0, 0) } else { (term.gain, 17.0, 1) };
        assert_eq!((one.gain, one.cover, one.splits), expected);
    }
    assert_eq!(model.used_features().into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 5]);
    assert_eq!(model.size_text(), "6 weights");
}

const TEXT: &str =
    "query_id,doc_id,label,f1,f0\nq1,a,0,1,5\nq1,b,1,3,5\nq1,c,2,2,5\nq2,d,0,7,\nq2,e,1,,1\nq3,g,0,4,4\n";

/// Returns a model of two features, normalised by query, with the weights 10 and 1.
fn by_query() -> Model {
    let mut model = random_model(1, 2, FeatureNormalisation::Query);
    let PartFamily::Linear(function) = &mut model.parts[0].family else { panic!("the part is linear") };
    (function.terms[0].weight, function.terms[1].weight) = (10.0, 1.0);
    function.base_score = 100.0;
    model.features.iter_mut().for_each(|feature| feature.fill = None);
    model
}

#[test]
fn datasets_are_scored_and_explained_by_whole_queries() {
    let room = tempfile::tempdir().unwrap();
    let reader = dataset(room.path(), TEXT, InputFormat::Csv);
    let mut model = by_query();
    assert_eq!(scores_of(&reader, &model).unwrap(), [100.0, 101.0, 100.5, 100.0, 100.0, 100.0]);
    let mut contributions = Vec::new();
    let report = explain(&reader, &model, 2, &mut |rows| {
        contributions.extend(rows.contributions);
        Ok(())
    });
    let expected = report.unwrap().expected_value;
    for (row, score) in contributions.chunks(2).zip([100.0, 101.0, 100.5, 100.0, 100.0, 100.0]) {
        assert_near(expected + row.iter().sum::<f64>(), score);
    }
    // The reported value of a part does not include the part's weight.
    model.parts.push(tree_model(&["f0", "f1"], &[0]).parts[0].clone());
    (model.parts[0].weight, model.parts[0].normalisation) = (2.0, Normalisation::Minmax);
    let predictor = GroupPredictor::with_parts(&model, &reader, true).unwrap();
    let group = predictor.predict(&reader, reader.groups()[0]).unwrap().result;
    assert_eq!((group.parts[0].name.as_str(), group.parts[1].name.as_str()), ("part.linear", "part.trees"));
    assert_eq!(group.parts[0].values, [0.0, 1.0, 0.5]);
    assert_eq!(group.scores, [1.0, 3.0, 2.0]);
}

#[test]
fn single_rows_and_exports_are_refused_by_name() {
    let model = by_query();
    let error = model.check_single_rows("score").unwrap_err();
    let expected = "score: part 0 (linear) normalises features over the documents of a query and cannot score single rows";
    assert_eq!(error.to_string(), expected);
    assert!(random_model(1, 2, FeatureNormalisation::Z).check_single_rows("score").is_ok());
    for format in MODEL_FORMATS.iter().filter(|format| format.export.is_some()) {
        let error = format.export(&model, &ExportRequest::default()).err().unwrap().to_string();
        let has_linear = format.export.as_ref().unwrap().kinds.iter().any(|kind| kind.name == "linear");
        let expected = match has_linear {
            true => "part 0 (linear) normalises features over the documents of a query",
            false => "part 0 (linear) has no trees (its kind is linear)",
        };
        assert!(error.contains(expected), "{error}");
    }
    let mut normalised = random_model(1, 2, FeatureNormalisation::None);
    normalised.parts[0].normalisation = Normalisation::Rank;
    let error = Explainer::new(&normalised).unwrap_err().to_string();
    assert!(error.contains("part 0 (linear) is normalised over the documents of a query (rank)"), "{error}");
}
