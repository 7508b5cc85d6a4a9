//! Compares Coordinate Ascent with a slow twin.

use super::jobs::{CoordinateScan, ScanTotals};
use super::search::{equal_weights, evaluate, restart, trials};
use crate::config::{CoordinateAscentOptions, CoordinateAscentParameters};
use crate::fixtures::{dataset, documents, request, resumed};
use crate::linear::ranker_fixtures::{NaiveQueries, WEIGHTED, problem, source};
use crate::{Silent, train};
use planetree_base::random::Stream;
use planetree_model::model::FeatureNormalisation;

fn parameters(metric: &str) -> CoordinateAscentParameters {
    CoordinateAscentParameters {
        metric: metric.parse().unwrap(),
        normalisation: FeatureNormalisation::Query,
        tolerance: 0.001,
        own: CoordinateAscentOptions { line_steps: 25 },
    }
}

#[test]
fn a_scan_has_the_metric_of_every_trial() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(21, 70);
    let source = source(room.path(), &documents, 50);
    let cases = [
        ("ndcg@10", "planetree"),
        ("map", "letor4"),
        ("ndcg@3", "empty=skip"),
        ("ndcg@10", "ties=average"),
        ("map", "letor4,ties=average"),
        ("err", "ties=average"),
        ("auc", "planetree"),
        ("p@2", "binary_ties=worst"),
    ];
    for (metric, convention) in cases {
        let problem = problem(&source, metric, convention, false);
        let naive = NaiveQueries::new(&documents, metric, convention);
        for (feature, weights) in [
            (0, [0.25; WEIGHTED]),
            (2, [0.513, 0.0, -0.297, 0.19]),
            (1, [0.71, 0.0, 0.103, -0.187]),
            (3, [0.0, 0.0, 0.0, 1.0]), // with the weight 0, all documents are tied
        ] {
            let trials = trials(weights[feature], 25, true);
            let job = CoordinateScan {
                target: problem.target.clone(),
                weights: weights.to_vec(),
                feature: feature as u32,
                trials: trials.clone(),
            };
            let ScanTotals(sums) = problem.jobs.run(&job).unwrap();
            for (number, trial) in trials.iter().enumerate() {
                let mut moved = weights.to_vec();
                moved[feature] = *trial;
                let expected: f64 = naive.values(&moved).into_iter().flatten().sum();
                let found = sums.value(number, problem.target.scale());
                assert!((found - expected).abs() < 1e-9, "{metric} {feature} {trial}: {found} {expected}");
            }
        }
    }
}

#[test]
fn trials_are_steps_of_doubling_length() {
    let near = |found: &[f64], expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        let is_near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-12;
        assert!(found.iter().zip(expected).all(is_near), "{found:?} {expected:?}");
    };
    near(&trials(0.0, 3, true), &[0.0, 0.001, 0.003, 0.007, -0.001, -0.003, -0.007]);
    near(&trials(0.1, 2, true), &[0.1, 0.105, 0.115, 0.095, 0.085, 0.0]);
    near(&trials(-0.1, 1, false), &[-0.1, -0.095, -0.105]);
}

/// A restart with plain loops.
fn slow_twin(
    queries: &NaiveQueries,
    parameters: &CoordinateAscentParameters,
    key: [u64; 2],
) -> (Vec<f64>, f64) {
    let mut weights = equal_weights(WEIGHTED);
    let mut value = queries.mean(&weights);
    for sweep in 0.. {
        let (before, start) = (weights.clone(), value);
        let mut order: Vec<usize> = (0..WEIGHTED).collect();
        let mut stream = Stream::new(&[key[0], key[1], sweep]);
        for end in (1..WEIGHTED).rev() {
            order.swap(end, (stream.bits() % (end as u64 + 1)) as usize);
        }
        for feature in order {
            let (mut best, mut best_value) = (weights[feature], queries.mean(&weights));
            let first = f64::max(0.001, 0.05 * weights[feature].abs());
            let steps = (1..=parameters.own.line_steps).map(|step| first * (2f64.powi(step as i32) - 1.0));
            let steps: Vec<f64> = steps.collect();
            let up = steps.iter().map(|step| weights[feature] + step);
            let down = steps.iter().map(|step| weights[feature] - step);
            for trial in up.chain(down).chain([0.0]) {
                let mut moved = weights.clone();
                moved[feature] = trial;
                let value = queries.mean(&moved);
                if value > best_value + 1e-12 {
                    (best, best_value) = (trial, value);
                }
            }
            if best != weights[feature] {
                weights[feature] = best;
                let total: f64 = weights.iter().map(|weight| weight.abs()).sum();
                weights.iter_mut().for_each(|weight| *weight /= total);
            }
        }
        value = queries.mean(&weights);
        if value <= start {
            return (before, start);
        }
        if value - start < parameters.tolerance {
            break;
        }
    }
    (weights, value)
}

#[test]
fn a_restart_is_that_of_the_slow_twin() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(22, 50);
    let source = source(room.path(), &documents, 50);
    for (metric, convention) in [("ndcg@10", "planetree"), ("map", "letor4"), ("ndcg@10", "ties=average")] {
        let (problem, parameters) = (problem(&source, metric, convention, false), parameters(metric));
        let naive = NaiveQueries::new(&documents, metric, convention);
        let start = evaluate(&problem, equal_weights(WEIGHTED)).unwrap().value;
        for number in 1..3 {
            let found = restart(&problem, &parameters, 5, number).unwrap();
            let (weights, value) = slow_twin(&naive, &parameters, [5, u64::from(number)]);
            assert!((found.value - value).abs() < 1e-9 && value > start, "{metric}: {} {value}", found.value);
            for (weight, expected) in found.weights.iter().zip(&weights) {
                assert!((weight - expected).abs() < 1e-9, "{metric}: {:?} {weights:?}", found.weights);
            }
            let total: f64 = found.weights.iter().map(|weight| weight.abs()).sum();
            assert!((total - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn partitions_threads_and_streaming_change_no_bit() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(23, 40);
    let weights = |partition_rows: usize, threads: usize, is_streamed: bool| {
        let source = source(&room.path().join(format!("{threads}{is_streamed}")), &documents, partition_rows);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let problem = problem(&source, "ndcg@10", "planetree", is_streamed);
            let found = restart(&problem, &parameters("ndcg@10"), 1, 1).unwrap();
            found.weights.iter().map(|weight| weight.to_bits()).collect::<Vec<_>>()
        })
    };
    let expected = weights(1 << 20, 1, false);
    for (partition_rows, threads, is_streamed) in [(7, 1, false), (7, 3, false), (30, 2, true)] {
        assert_eq!(weights(partition_rows, threads, is_streamed), expected);
    }
}

/// The best restart is among the first ones, so a resumed run that forgot it would keep a worse one.
#[test]
fn a_resumed_training_keeps_the_best_restart() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(24, 60), 30);
    let model = |set: &[&str]| train(&request(&data, "coordinate-ascent", set), &mut Silent).unwrap().model;
    let rounds = |count: u32, seed: u32| [format!("num_trees={count}"), format!("seed={seed}")];
    let of = |count: u32, seed: u32| {
        let set = rounds(count, seed);
        model(&[&set[0], &set[1]])
    };
    let seed = (0..20).find(|seed| of(2, *seed).parts == of(1, *seed).parts);
    let seed = seed.expect("one of 20 seeds has its best restart first");
    let set = rounds(2, seed);
    let whole = of(2, seed);
    let found = resumed(room.path(), &data, "coordinate-ascent", &[&set[0], &set[1]], 1);
    assert_eq!(found, whole);
    // The second restart alone is another one.
    let source = planetree_data::source::LabelledData::open(&data, None).unwrap();
    let problem = problem(&source, "ndcg@10", "planetree", false);
    let second = restart(&problem, &parameters("ndcg@10"), u64::from(seed), 2).unwrap();
    let planetree_model::model::PartFamily::Linear(function) = &whole.parts[0].family else {
        panic!("the part is linear")
    };
    let weights: Vec<f64> = function.terms[..WEIGHTED].iter().map(|term| term.weight).collect();
    assert_ne!(second.weights, weights);
}
