//! Compares RankSVM with a slow twin that lists all pairs.

use super::active_pairs::pair_count;
use super::jobs::PairPlan;
use super::newton::{PairMinimum, PairProblem};
use crate::fixtures::{Document, FEATURES, documents, normalised};
use crate::linear::ranker_fixtures::{WEIGHTED, problem, source};
use crate::linear::{RankingProblem, query_weight};
use planetree_data::source::LabelledData;

fn pair_problem(source: &LabelledData, is_streamed: bool, steps: u32) -> PairProblem<'_> {
    let RankingProblem { target, jobs, metrics } = problem(source, "map", "planetree", is_streamed);
    let mut pairs = 0.0;
    for partition in 0..source.partitions() {
        let opened = source.open_partition(partition).unwrap();
        let rows = source.rows(partition, &opened).unwrap();
        for query in rows.queries() {
            pairs += query_weight(&rows, query.clone()) * pair_count(&rows.labels[query]);
        }
    }
    PairProblem { plan: PairPlan { standard: target.plan, pairs }, jobs, metrics, tolerance: 1e-14, steps }
}

/// The differences of all pairs, each with the weight of its query.
fn differences(documents: &[Document]) -> Vec<(f64, [f64; FEATURES])> {
    let (mut all, features) = (Vec::new(), normalised(documents, "query"));
    for (better, document) in documents.iter().enumerate() {
        let of_query = || documents.iter().filter(|other| other.query == document.query);
        let weight = of_query().map(|other| other.weight).sum::<f64>() / of_query().count() as f64;
        for (worse, other) in documents.iter().enumerate() {
            if other.query == document.query && other.label < document.label {
                let difference =
                    std::array::from_fn(|place| features[better][place] - features[worse][place]);
                all.push((weight, difference));
            }
        }
    }
    all
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * (1.0 + other.abs())
}

#[test]
fn objectives_gradients_and_products_are_those_of_all_pairs() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(31, 60);
    let source = source(room.path(), &documents, 30);
    let (problem, pairs) = (pair_problem(&source, false, 100), differences(&documents));
    let (lambda, direction) = (2.5, [0.3, -1.5, 0.25, 4.0]);
    let penalties = problem.penalties(lambda);
    for weights in [[0.0; WEIGHTED], [0.5, -0.25, 2.0, 0.125], [-3.0, 5.0, 0.0, 1.0]] {
        let found = problem.evaluate(&penalties, weights.to_vec()).unwrap();
        let product = problem.product(&penalties, &weights, &direction).unwrap();
        let mut objective = lambda / 2.0 * weights.iter().map(|weight| weight * weight).sum::<f64>();
        let mut gradient = weights.map(|weight| -lambda * weight);
        let mut expected = direction.map(|number| lambda * number);
        for (weight, difference) in &pairs {
            let along = |weights: &[f64]| -> f64 {
                weights.iter().zip(difference).map(|(weight, value)| weight * value).sum()
            };
            let short = 1.0 - along(&weights);
            if short > 0.0 {
                objective += weight * short * short / 2.0;
                for place in 0..WEIGHTED {
                    gradient[place] += weight * short * difference[place];
                    expected[place] += weight * along(&direction) * difference[place];
                }
            }
        }
        assert!(near(found.objective, objective), "{} {objective}", found.objective);
        for place in 0..WEIGHTED {
            assert!(near(found.gradient[place], gradient[place]), "{weights:?} {place}");
            assert!(near(product[place], expected[place]), "{weights:?} {place}: {product:?} {expected:?}");
        }
    }
}

#[test]
fn gradients_are_finite_differences_of_the_objective() {
    const STEP: f64 = 1e-5;
    let room = tempfile::tempdir().unwrap();
    let source = source(room.path(), &documents(32, 40), 30);
    let problem = pair_problem(&source, false, 100);
    let penalties = problem.penalties(0.5);
    let weights = [0.4, -0.3, 1.5, 0.2];
    let gradient = problem.evaluate(&penalties, weights.to_vec()).unwrap().gradient;
    for (place, gradient) in gradient.iter().enumerate() {
        let at = |step: f64| {
            let mut moved = weights.to_vec();
            moved[place] += step;
            problem.evaluate(&penalties, moved).unwrap().objective
        };
        let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
        assert!((slope + gradient).abs() < 1e-4 * (1.0 + slope.abs()), "{place}: {slope} {gradient}");
    }
}

#[test]
fn a_search_that_the_step_limit_ends_says_so() {
    let room = tempfile::tempdir().unwrap();
    let source = source(room.path(), &documents(33, 60), 30);
    let minimum = |steps: u32| {
        let problem = pair_problem(&source, false, steps);
        problem.minimise(problem.plan.pairs / 100.0, vec![0.0; WEIGHTED]).unwrap()
    };
    let PairMinimum { found: short, unfinished } = minimum(1);
    assert!(unfinished.is_some_and(|promised| promised > 1e-3), "{unfinished:?}");
    let PairMinimum { found: whole, unfinished } = minimum(100);
    assert_eq!(unfinished, None);
    assert!(whole.objective < short.objective);
    assert!(
        whole.gradient.iter().all(|gradient| gradient.abs() < 1e-7 * whole.objective),
        "{:?}",
        whole.gradient
    );
    let note = super::learner::unfinished_note(100.0, 0.25);
    assert!(note.starts_with("svm_c = 100: the search ended after 100 steps"), "{note}");
}

#[test]
fn partitions_threads_and_streaming_change_no_bit() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(34, 50);
    let weights = |partition_rows: usize, threads: usize, is_streamed: bool| {
        let source = source(&room.path().join(format!("{threads}{is_streamed}")), &documents, partition_rows);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let problem = pair_problem(&source, is_streamed, 100);
            let found = problem.minimise(problem.plan.pairs / 10.0, vec![0.0; WEIGHTED]).unwrap().found;
            found.weights.iter().map(|weight| weight.to_bits()).collect::<Vec<_>>()
        })
    };
    let expected = weights(1 << 20, 1, false);
    for (partition_rows, threads, is_streamed) in [(7, 1, false), (7, 3, false), (30, 2, true)] {
        assert_eq!(weights(partition_rows, threads, is_streamed), expected);
    }
}
