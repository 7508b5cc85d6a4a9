//! Compares AdaRank with a slow twin, round by round.

use super::boosting::{round, start};
use crate::config::{AdaRankOptions, AdaRankParameters};
use crate::fixtures::{Notes, dataset, documents, request, resumed};
use crate::linear::ranker_fixtures::{NaiveQueries, WEIGHTED, problem, source};
use crate::{Silent, train};
use planetree_model::model::{FeatureNormalisation, PartFamily};

fn parameters(metric: &str) -> AdaRankParameters {
    AdaRankParameters {
        metric: metric.parse().unwrap(),
        normalisation: FeatureNormalisation::Query,
        tolerance: 0.002,
        own: AdaRankOptions { max_repeats: 3 },
    }
}

/// AdaRank with plain loops over queries. Returns the weights after each round.
fn slow_twin(queries: &NaiveQueries, parameters: &AdaRankParameters, rounds: usize) -> Vec<Vec<f64>> {
    let unit = |feature: usize| {
        let mut weights = vec![0.0; WEIGHTED];
        weights[feature] = 1.0;
        weights
    };
    let of_features: Vec<Vec<Option<f64>>> =
        (0..WEIGHTED).map(|feature| queries.values(&unit(feature))).collect();
    let mut distribution = vec![1.0; of_features[0].len()];
    let (mut weights, mut all, mut selected) = (vec![0.0; WEIGHTED], Vec::new(), Vec::new());
    let mut last = f64::NEG_INFINITY;
    for _ in 0..rounds {
        let weighted = |values: &[Option<f64>], of: &dyn Fn(f64) -> f64| -> f64 {
            let terms = distribution.iter().zip(values);
            terms.filter_map(|(weight, value)| value.map(|value| weight * of(value))).sum()
        };
        let repeats = selected.iter().rev().take_while(|feature| Some(*feature) == selected.last()).count();
        let allowed = (0..WEIGHTED).filter(|feature| {
            selected.last() != Some(feature) || repeats < parameters.own.max_repeats as usize
        });
        let quality = |feature: usize| weighted(&of_features[feature], &|value| value);
        let feature = allowed.rev().max_by(|one, other| quality(*one).total_cmp(&quality(*other))).unwrap();
        let alpha = 0.5
            * (weighted(&of_features[feature], &|value| 1.0 + value)
                / weighted(&of_features[feature], &|value| 1.0 - value))
            .ln();
        let mut next = weights.clone();
        next[feature] += alpha;
        let value = queries.mean(&next);
        if value + parameters.tolerance - last <= 0.0 {
            break;
        }
        (weights, last) = (next, value);
        selected.push(feature);
        all.push(weights.clone());
        let values = queries.values(&weights);
        distribution = values.iter().map(|value| value.map_or(0.0, |value| (-value).exp())).collect();
    }
    all
}

#[test]
fn rounds_are_those_of_the_slow_twin() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(11, 80);
    let source = source(room.path(), &documents, 40);
    let cases = [
        ("map", "planetree"),
        ("ndcg@10", "letor4"),
        ("ndcg@3", "empty=skip"),
        ("err", "ties=average"),
        ("map", "letor4,ties=average"),
    ];
    for (metric, convention) in cases {
        let (problem, parameters) = (problem(&source, metric, convention, false), parameters(metric));
        let expected = slow_twin(&NaiveQueries::new(&documents, metric, convention), &parameters, 30);
        assert!(expected.len() > 3, "{metric}: {} rounds", expected.len());
        let mut ensemble = start(&problem).unwrap();
        for (number, expected) in expected.iter().enumerate() {
            ensemble = round(&problem, &parameters, &ensemble).unwrap().unwrap();
            for (weight, expected) in ensemble.weights.iter().zip(expected) {
                assert!((weight - expected).abs() < 1e-9, "{metric} round {number}: {weight} {expected}");
            }
        }
        if expected.len() < 30 {
            assert!(round(&problem, &parameters, &ensemble).unwrap().is_none(), "{metric} stops");
        }
    }
}

#[test]
fn partitions_threads_and_streaming_change_no_bit() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(12, 60);
    let weights = |partition_rows: usize, threads: usize, is_streamed: bool| {
        let source = source(&room.path().join(format!("{threads}{is_streamed}")), &documents, partition_rows);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let problem = problem(&source, "map", "planetree", is_streamed);
            let mut ensemble = start(&problem).unwrap();
            let mut all = Vec::new();
            for _ in 0..12 {
                let Some(next) = round(&problem, &parameters("map"), &ensemble).unwrap() else { break };
                ensemble = next;
                all.extend(ensemble.weights.iter().map(|weight| weight.to_bits()));
            }
            all
        })
    };
    let expected = weights(1 << 20, 1, false);
    assert!(expected.len() > 2 * WEIGHTED);
    for (partition_rows, threads, is_streamed) in [(7, 1, false), (7, 3, false), (30, 2, true)] {
        assert_eq!(weights(partition_rows, threads, is_streamed), expected);
    }
}

/// The features of the first rounds decide which may follow, so a resumed run that forgot them would select others.
#[test]
fn a_resumed_training_has_the_same_weights() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(13, 80), 30);
    let set = ["num_trees=9", "max_repeats=2", "tolerance=1"];
    let whole = train(&request(&data, "adarank-map", &set), &mut Silent).unwrap().model;
    assert_eq!(whole.rounds, 9);
    for stop in [1, 2, 5, 8] {
        assert_eq!(resumed(room.path(), &data, "adarank-map", &set, stop), whole, "{stop}");
    }
}

/// Features that are constant in most queries would look best if ties were broken by the order of rows sorted by label.
#[test]
fn the_order_of_rows_does_not_matter() {
    let room = tempfile::tempdir().unwrap();
    let documents = || {
        let mut all = documents(15, 60);
        for document in all.iter_mut().filter(|document| document.query > 2) {
            (document.features[1], document.features[3]) = (Some(7.0), None);
        }
        all
    };
    let mut sorted = documents();
    sorted.sort_by(|one, other| one.query.cmp(&other.query).then(other.label.total_cmp(&one.label)));
    let given = dataset(room.path(), "given", &documents(), 1 << 20);
    let sorted = dataset(room.path(), "sorted", &sorted, 1 << 20);
    for preset in ["adarank", "adarank-map", "coordinate-ascent"] {
        let weights = |data| -> Vec<f64> {
            let model = train(&request(data, preset, &["num_trees=4"]), &mut Silent).unwrap().model;
            let PartFamily::Linear(function) = &model.parts[0].family else { panic!("the part is linear") };
            function.terms.iter().map(|term| term.weight).collect()
        };
        assert_eq!(weights(&sorted), weights(&given), "{preset}");
    }
}

#[test]
fn weights_of_rows_do_not_matter() {
    let room = tempfile::tempdir().unwrap();
    let weighted = dataset(room.path(), "weighted", &documents(14, 50), 1 << 20);
    let mut equal = documents(14, 50);
    equal.iter_mut().for_each(|document| document.weight = 1.0);
    let equal = dataset(room.path(), "equal", &equal, 1 << 20);
    let mut zero = documents(14, 50);
    zero.iter_mut().for_each(|document| document.weight = 0.0);
    let zero = dataset(room.path(), "zero", &zero, 1 << 20);
    for preset in ["adarank", "coordinate-ascent"] {
        for normalise in ["normalise_features=z", "normalise_features=query"] {
            let set = ["num_trees=3", normalise];
            let mut notes = Notes::default();
            let expected = train(&request(&equal, preset, &set), &mut Silent).unwrap().model.parts;
            let found = train(&request(&weighted, preset, &set), &mut notes).unwrap().model.parts;
            assert_eq!(found, expected, "{preset} {normalise}");
            assert!(
                notes.0.iter().any(|note| note.ends_with("does not use the weights of rows")),
                "{:?}",
                notes.0
            );
            let found = train(&request(&zero, preset, &set), &mut Silent).unwrap().model.parts;
            assert_eq!(found, expected, "{preset} {normalise}, weights 0");
        }
    }
}
