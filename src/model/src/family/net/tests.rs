//! Compares scores and explanations of nets with their definitions, one value at a time.

use super::*;
use crate::exchange::{ExportRequest, MODEL_FORMATS};
use crate::explain::Explainer;
use crate::family::fixtures::{assert_near, model_of, random_rows, rows_of, scores_in_all_ways};
use crate::family::{Family, FeatureNormalisation};
use crate::model::{LinearFunction, LinearTerm, Model, Part, PartFamily};
use crate::predict::Scorer;
use crate::predict::tests::stream::model as tree_model;
use planetree_base::random::Stream;
use planetree_base::storage::Location;
use proptest::prelude::*;

/// Creates a model with a random net. One feature is no input, and some have no fill value.
fn random_model(
    seed: u64,
    features: usize,
    sizes: &[usize],
    normalisation: FeatureNormalisation,
    activation: Activation,
) -> Model {
    let mut stream = Stream::new(&[seed, 5]);
    let mut number = || (stream.bits() % 2001) as f64 / 500.0 - 2.0;
    let has_constants = normalisation.has_constants();
    let input = |feature: usize, number: &mut dyn FnMut() -> f64| NetInput {
        feature: feature as u32,
        centre: if has_constants { number() } else { 0.0 },
        spread: if has_constants { number().abs() + 0.1 } else { 1.0 },
        mean: number(),
        deviation: number().abs(),
    };
    let inputs: Vec<NetInput> =
        (0..features).filter(|feature| feature % 5 != 4).map(|feature| input(feature, &mut number)).collect();
    let mut layers = Vec::new();
    let mut before = inputs.len();
    for units in sizes.iter().copied().chain([1]) {
        layers.push(NetLayer {
            inputs: before,
            biases: (0..units).map(|_| number()).collect(),
            weights: (0..units * before).map(|_| number()).collect(),
        });
        before = units;
    }
    let net = NetFunction::new(normalisation, activation, inputs, layers, 17.0);
    model_of(Part::plain(PartFamily::Net(net)), features)
}

fn net(model: &Model) -> &NetFunction {
    match &model.parts[0].family {
        PartFamily::Net(net) => net,
        _ => panic!("the part is a net"),
    }
}

/// Normalises an input of all documents of a query with the formulas of the documentation.
fn normalised(model: &Model, input: &NetInput, rows: &[f32]) -> Vec<f64> {
    let (width, place) = (model.features.len(), input.feature as usize);
    let known = |row: &[f32]| {
        Some(row[place]).filter(|value| value.is_finite()).or(model.features[place].fill).map(f64::from)
    };
    let column: Vec<Option<f64>> = rows.chunks(width).map(known).collect();
    let least = column.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let most = column.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let of = |value: f64| match net(model).normalisation {
        FeatureNormalisation::None => value,
        FeatureNormalisation::Query if least == most => 0.0,
        FeatureNormalisation::Query => (value - least) / (most - least),
        FeatureNormalisation::Z | FeatureNormalisation::Minmax => (value - input.centre) / input.spread,
    };
    column.into_iter().map(|value| value.map_or(0.0, of)).collect()
}

/// Returns the value of a net for one row of normalised inputs, with plain loops.
fn value_of(net: &NetFunction, inputs: &[f64]) -> f64 {
    let mut values = inputs.to_vec();
    for (number, layer) in net.layers.iter().enumerate() {
        let sum = |unit: usize| {
            let terms = values.iter().zip(layer.weights_of(unit)).map(|(value, weight)| value * weight);
            layer.biases[unit] + terms.sum::<f64>()
        };
        let sums: Vec<f64> = (0..layer.units()).map(sum).collect();
        let is_last = number + 1 == net.layers.len();
        let activated = |sum: f64| match net.activation {
            Activation::Tanh => sum.tanh(),
            Activation::Relu => sum.max(0.0),
            Activation::Logistic => 1.0 / (1.0 + (-sum).exp()),
        };
        values = sums.into_iter().map(|sum| if is_last { sum } else { activated(sum) }).collect();
    }
    values[0]
}

/// Returns the normalised inputs of each row.
fn input_rows(model: &Model, rows: &[f32]) -> Vec<Vec<f64>> {
    let columns: Vec<Vec<f64>> =
        net(model).inputs.iter().map(|input| normalised(model, input, rows)).collect();
    (0..rows.len() / model.features.len())
        .map(|row| columns.iter().map(|column| column[row]).collect())
        .collect()
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1..9usize, 0..4)
}

proptest! {
    #[test]
    fn scores_are_those_of_the_definition(
        seed in any::<u64>(), features in 1..12usize, rows in prop_oneof![0..9usize, 250..600usize],
        sizes in sizes(), normalisation in prop::sample::select(FeatureNormalisation::ALL.to_vec()),
        activation in prop::sample::select(Activation::ALL.to_vec()),
    ) {
        let model = random_model(seed, features, &sizes, normalisation, activation);
        let values = random_rows(seed, rows, features);
        let scores = scores_in_all_ways(&model, &values);
        for (score, inputs) in scores.iter().zip(input_rows(&model, &values)) {
            assert_near(*score, value_of(net(&model), &inputs));
        }
        if normalisation != FeatureNormalisation::Query {
            let scorer = Scorer::new(&model).unwrap();
            for (row, score) in values.chunks(features).zip(&scores) {
                let mut alone = [f64::NAN];
                scorer.score(row, &mut alone);
                prop_assert_eq!(alone[0].to_bits(), score.to_bits());
            }
        }
    }

    #[test]
    fn contributions_add_up_to_the_difference_from_the_mean_row(
        seed in any::<u64>(), features in 1..9usize, rows in 1..20usize, sizes in sizes(),
        normalisation in prop::sample::select(FeatureNormalisation::ALL.to_vec()),
        activation in prop::sample::select(Activation::ALL.to_vec()),
    ) {
        let mut model = random_model(seed, features, &sizes, normalisation, activation);
        (model.intercept, model.parts[0].weight) = (0.5, -2.0);
        let values = random_rows(seed, rows, features);
        let explainer = Explainer::new(&model).unwrap();
        let (mut scores, mut all) = (vec![0.0; rows], vec![f64::NAN; values.len()]);
        Scorer::new(&model).unwrap().score(&values, &mut scores);
        explainer.explain_rows(&values, &mut all);
        let means: Vec<f64> = net(&model).inputs.iter().map(|input| input.mean).collect();
        assert_near(explainer.expected_value(), 0.5 - 2.0 * value_of(net(&model), &means));
        for (score, contributions) in scores.iter().zip(all.chunks(features)) {
            assert_near(*score, explainer.expected_value() + contributions.iter().sum::<f64>());
        }
    }
}

/// With one hidden layer, contributions are integrated gradients, here by the midpoint rule and finite differences.
#[test]
fn contributions_are_integrated_gradients() {
    for activation in [Activation::Tanh, Activation::Logistic] {
        let model = random_model(9, 6, &[4], FeatureNormalisation::Z, activation);
        let (net, values) = (net(&model), random_rows(9, 5, 6));
        let mut all = vec![0.0; values.len()];
        Explainer::new(&model).unwrap().explain_rows(&values, &mut all);
        let means: Vec<f64> = net.inputs.iter().map(|input| input.mean).collect();
        for (row, inputs) in input_rows(&model, &values).iter().enumerate() {
            for (place, input) in net.inputs.iter().enumerate() {
                let (steps, tiny) = (20_000, 1e-6);
                let slope = |step: usize| {
                    let share = (step as f64 + 0.5) / steps as f64;
                    let at = |by: f64| {
                        let mut point: Vec<f64> = means
                            .iter()
                            .zip(inputs)
                            .map(|(mean, value)| mean + share * (value - mean))
                            .collect();
                        point[place] += by;
                        value_of(net, &point)
                    };
                    (at(tiny) - at(-tiny)) / (2.0 * tiny)
                };
                let mean_slope = (0..steps).map(slope).sum::<f64>() / steps as f64;
                let expected = mean_slope * (inputs[place] - means[place]);
                let found = all[row * 6 + input.feature as usize];
                assert!(
                    (found - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                    "{found} is not {expected}"
                );
            }
        }
    }
}

#[test]
fn a_net_without_hidden_layers_is_a_linear_function() {
    for normalisation in FeatureNormalisation::ALL {
        let mut model = random_model(4, 7, &[], normalisation, Activation::Tanh);
        let values = random_rows(4, 30, 7);
        let explained = |model: &Model| {
            let (mut scores, mut all) = (vec![0.0; 30], vec![0.0; values.len()]);
            Scorer::new(model).unwrap().score(&values, &mut scores);
            Explainer::new(model).unwrap().explain_rows(&values, &mut all);
            (scores, all)
        };
        let (scores, contributions) = explained(&model);
        let importance = model.importance();
        let net = net(&model);
        let term = |(input, weight): (&NetInput, &f64)| LinearTerm {
            feature: input.feature,
            weight: *weight,
            centre: input.centre,
            spread: input.spread,
            mean: input.mean,
            gain: weight.abs() * input.deviation,
            cover: 17.0,
        };
        let terms = net.inputs.iter().zip(net.layers[0].weights_of(0)).map(term).collect();
        let function = LinearFunction::new(net.layers[0].biases[0], net.normalisation, terms);
        model.parts[0] = Part::linear(function);
        let (linear_scores, linear_contributions) = explained(&model);
        scores.iter().zip(&linear_scores).for_each(|(one, other)| assert_near(*one, *other));
        contributions.iter().zip(&linear_contributions).for_each(|(one, other)| assert_near(*one, *other));
        assert_eq!(model.importance(), importance);
    }
}

#[test]
fn a_net_is_read_as_it_was_written() {
    let room = tempfile::tempdir().unwrap();
    let location = Location::Local(room.path().join("model"));
    for (sizes, activation) in
        [(&[][..], Activation::Tanh), (&[3][..], Activation::Relu), (&[4, 1, 2][..], Activation::Logistic)]
    {
        let mut model = random_model(3, 7, sizes, FeatureNormalisation::Z, activation);
        model.parts.push(tree_model(&["f0", "f1"], &[1]).parts[0].clone());
        let second = random_model(4, 7, &[2], FeatureNormalisation::Query, activation).parts[0].clone();
        model.parts.push(Part { name: "second".to_owned(), ..second });
        model.write(&location).unwrap();
        assert_eq!(Model::read(&location).unwrap(), model);
    }
}

#[test]
fn invalid_nets_are_named() {
    let model = random_model(3, 6, &[2], FeatureNormalisation::Z, Activation::Tanh);
    let valid = net(&model).clone();
    assert_eq!(valid.fault(6), None);
    let fault = |change: &dyn Fn(&mut NetFunction)| {
        let mut changed = valid.clone();
        change(&mut changed);
        changed.fault(6).unwrap()
    };
    for (found, expected) in [
        (fault(&|net| net.layers[0].biases[1] = f64::NAN), "layer 0: a weight is NaN"),
        (fault(&|net| net.layers[1].weights[0] = f64::INFINITY), "layer 1: a weight is inf"),
        (fault(&|net| net.inputs[1].feature = 6), "input 1: unknown feature 6"),
        (fault(&|net| net.inputs[1].feature = 0), "input 1: the feature is an input already"),
        (fault(&|net| net.inputs[2].spread = -1.0), "input 2: the spread is -1"),
        (fault(&|net| net.inputs[2].mean = f64::NAN), "input 2: the mean is NaN"),
        (fault(&|net| net.cover = f64::NAN), "the cover is NaN"),
        (fault(&|net| drop(net.layers.pop())), "the last layer must have one unit"),
        (fault(&|net| net.layers.clear()), "the last layer must have one unit"),
        (fault(&|net| net.layers[0].weights.truncate(3)), "layer 0: the number of weights"),
    ] {
        assert!(found.starts_with(expected), "{found}");
    }
    let rows = rows_of(&valid);
    let started = || NetFunction::from_settings(valid.settings()).unwrap();
    assert!(started().fault(6).unwrap().contains("rows of the net are missing"));
    assert!(started().read_row(rows[1].clone()).unwrap_err().contains("has no input"));
    let last = rows.len() - 1;
    for (place, other) in [(1, 2), (last, 0), (last, last - 1), (1, last)] {
        let mut changed = rows.clone();
        changed[place] = rows[other].clone();
        let mut read = started();
        let error = changed.into_iter().try_for_each(|row| read.read_row(row)).err();
        assert!(error.is_some() || read.fault(6).is_some(), "row {place} replaced by row {other}");
    }
    let mut read = started();
    rows.iter().for_each(|row| read.read_row(row.clone()).unwrap());
    assert_eq!(read, valid);
    assert!(read.read_row(rows[0].clone()).unwrap_err().contains("no such weight"));
    // Sizes of a hostile header do not reserve memory.
    let mut settings = valid.settings();
    settings.insert("layers".to_owned(), serde_json::json!([u64::MAX, 1]));
    let mut hostile = NetFunction::from_settings(settings).unwrap();
    let end = rows.iter().try_for_each(|row| hostile.read_row(row.clone()));
    assert!(end.is_err() && hostile.fault(6).is_some());
    for layers in [serde_json::json!([]), serde_json::json!([0, 1]), serde_json::json!([2, 2])] {
        let mut settings = valid.settings();
        settings.insert("layers".to_owned(), layers);
        let mut hostile = NetFunction::from_settings(settings).unwrap();
        let _ = rows.iter().try_for_each(|row| hostile.read_row(row.clone()));
        assert!(hostile.fault(6).is_some());
    }
}

#[test]
fn importance_is_the_sum_over_all_paths() {
    let model = random_model(5, 6, &[2, 2], FeatureNormalisation::None, Activation::Logistic);
    let net = net(&model);
    for one in model.importance().iter().filter(|one| one.splits > 0) {
        let place = net.inputs.iter().position(|input| input.feature == one.feature).unwrap();
        let mut expected = 0.0;
        for first in 0..2 {
            for second in 0..2 {
                expected += net.layers[0].weights_of(first)[place].abs()
                    * net.layers[1].weights_of(second)[first].abs()
                    * net.layers[2].weights_of(0)[second].abs();
            }
        }
        assert_near(one.gain, expected / 16.0 * net.inputs[place].deviation);
        assert_eq!((one.cover, one.splits), (17.0, 2));
    }
    assert_eq!(model.used_features().into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 5]);
    assert_eq!(model.size_text(), "21 weights");
}

#[test]
fn single_rows_and_exports_are_refused_by_name() {
    let model = random_model(1, 2, &[2], FeatureNormalisation::Query, Activation::Tanh);
    let error = model.check_single_rows("score").unwrap_err().to_string();
    assert!(error.contains("part 0 (net) normalises features over the documents of a query"), "{error}");
    for format in &MODEL_FORMATS {
        let error = format.export(&model, &ExportRequest::default()).err().unwrap().to_string();
        assert!(error.contains("part 0 (net)") || error.contains("cannot be exported"), "{error}");
    }
}
