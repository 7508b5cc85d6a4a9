//! Compares gradients with finite differences, and epochs with a slow twin.

use super::jobs::NetTarget;
use super::start::batches;
use super::training::{NetProblem, TrainedNet};
use crate::config::{LearnerParameters, NetSettings, ObjectiveParameters, Optimiser, load};
use crate::fixtures::{Document, documents, normalised};
use crate::linear::ranker_fixtures::{WEIGHTED, jobs_on, plan, source};
use planetree_data::source::LabelledData;
use planetree_metric::Mean;
use planetree_model::model::{Activation, NetLayer};

/// Returns the parameters of a preset with changes.
fn settings(preset: &str, set: &[&str]) -> NetSettings {
    let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
    let plan = load(Some(preset), None, &set).unwrap();
    let LearnerParameters::Net(net) = &plan.first().learner else { panic!("the learner is a net") };
    plan.first().with(net.clone())
}

/// Returns the problem of training a net on all queries of a dataset, whose features are normalised by query.
fn problem<'a>(source: &'a LabelledData, settings: &'a NetSettings, is_streamed: bool) -> NetProblem<'a> {
    let (jobs, queries) = jobs_on(source, settings.clone(), is_streamed);
    let parameters = settings.with(LearnerParameters::Net(settings.learner.clone())).to_toml();
    NetProblem {
        settings,
        target: NetTarget { plan: plan(), activation: settings.learner.activation, parameters },
        jobs,
        queries: (0..queries).collect(),
        output: Some(0.0),
        trains_output: settings.learner.objective == ObjectiveParameters::Squared,
        metrics: settings.metrics.iter().map(|metric| Mean::new(*metric)).collect(),
    }
}

/// A query: labels, weights of rows, and normalised features.
#[derive(Default, Clone)]
struct NaiveQuery {
    labels: Vec<f64>,
    weights: Vec<f64>,
    rows: Vec<Vec<f64>>,
}

fn naive_queries(documents: &[Document]) -> Vec<NaiveQuery> {
    let mut queries = vec![NaiveQuery::default(); documents.last().unwrap().query + 1];
    for (document, features) in documents.iter().zip(normalised(documents, "query")) {
        let query = &mut queries[document.query];
        query.labels.push(document.label);
        query.weights.push(document.weight);
        query.rows.push(features[..WEIGHTED].to_vec());
    }
    queries
}

/// Returns the values of all layers for one row, the inputs first.
fn forward(layers: &[NetLayer], activation: Activation, row: &[f64]) -> Vec<Vec<f64>> {
    let mut values = vec![row.to_vec()];
    for (number, layer) in layers.iter().enumerate() {
        let unit = |unit: usize| {
            let mut sum = layer.biases[unit];
            for (input, weight) in layer.weights_of(unit).iter().enumerate() {
                sum += weight * values[number][input];
            }
            if number + 1 == layers.len() { sum } else { activation.of(sum) }
        };
        let units = (0..layer.units()).map(unit).collect();
        values.push(units);
    }
    values
}

fn scores(layers: &[NetLayer], activation: Activation, query: &NaiveQuery) -> Vec<f64> {
    query.rows.iter().map(|row| forward(layers, activation, row).last().unwrap()[0]).collect()
}

fn softmax(numbers: &[f64]) -> Vec<f64> {
    let sum: f64 = numbers.iter().map(|number| number.exp()).sum();
    numbers.iter().map(|number| number.exp() / sum).collect()
}

/// The weight of a query: the mean of its rows.
fn query_weight(query: &NaiveQuery) -> f64 {
    query.weights.iter().sum::<f64>() / query.weights.len() as f64
}

/// Returns the loss of a query.
fn loss(objective: &str, query: &NaiveQuery, scores: &[f64]) -> f64 {
    let pairs = || {
        let places = (0..scores.len()).flat_map(|i| (0..scores.len()).map(move |j| (i, j)));
        places.filter(|(i, j)| query.labels[*i] > query.labels[*j])
    };
    match objective {
        "squared" => {
            let errors = query.labels.iter().zip(scores).zip(&query.weights);
            errors.map(|((label, score), weight)| weight * (label - score).powi(2) / 2.0).sum()
        }
        "listnet" => {
            let shares = softmax(scores);
            let terms =
                softmax(&query.labels).into_iter().zip(shares).map(|(wanted, share)| -wanted * share.ln());
            query_weight(query) * terms.sum::<f64>()
        }
        "ranknet" => {
            let terms = pairs().map(|(i, j)| (-(scores[i] - scores[j])).exp().ln_1p());
            query_weight(query) * terms.sum::<f64>()
        }
        other => panic!("{other}"),
    }
}

/// Returns the negative derivatives of the loss by the scores.
fn score_gradients(objective: &str, query: &NaiveQuery, scores: &[f64]) -> Vec<f64> {
    match objective {
        "squared" => {
            let residual = |row: usize| query.weights[row] * (query.labels[row] - scores[row]);
            (0..scores.len()).map(residual).collect()
        }
        "listnet" => {
            let (wanted, shares) = (softmax(&query.labels), softmax(scores));
            let weight = query_weight(query) as f32;
            // Objectives have single-precision gradients.
            let gradient = |row: usize| f64::from((wanted[row] - shares[row]) as f32 * weight);
            (0..scores.len()).map(gradient).collect()
        }
        other => panic!("{other}"),
    }
}

/// Returns the weights in the order of the gradient.
fn flat(layers: &[NetLayer]) -> Vec<f64> {
    layers.iter().flat_map(|layer| layer.biases.iter().chain(&layer.weights).copied()).collect()
}

fn weight_mut(layers: &mut [NetLayer], place: usize) -> &mut f64 {
    layers.iter_mut().flat_map(|layer| layer.biases.iter_mut().chain(&mut layer.weights)).nth(place).unwrap()
}

/// Trains one batch of all queries with the plain gradient at learning rate 1, and returns the change of the weights.
fn gradient(problem: &NetProblem<'_>, net: &TrainedNet) -> Vec<f64> {
    let mut next = net.clone();
    assert!(problem.epoch(&mut next, 1).unwrap());
    flat(&next.layers).iter().zip(flat(&net.layers)).map(|(after, before)| after - before).collect()
}

#[test]
fn gradients_are_finite_differences_of_the_loss() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(11, 25);
    let (source, queries) = (source(room.path(), &documents, 1 << 20), naive_queries(&documents));
    for objective in ["squared", "listnet", "ranknet"] {
        for (hidden, activation) in
            [("none", "tanh"), ("3", "tanh"), ("4,3", "logistic"), ("5,2", "relu"), ("2,2,2", "tanh")]
        {
            let set = [
                format!("objective={objective}"),
                format!("hidden_layers={hidden}"),
                format!("activation={activation}"),
                "optimiser=sgd".to_owned(),
                "learning_rate=1".to_owned(),
                "batch_queries=0".to_owned(),
                "lambda_l2=0.1".to_owned(),
            ];
            let settings = settings("ranknet-net", &set.iter().map(String::as_str).collect::<Vec<_>>());
            let problem = problem(&source, &settings, false);
            let mut net = problem.start(0);
            // Biases that are not 0, and no unit of ReLU at its kink.
            for layer in &mut net.layers {
                layer.biases.iter_mut().enumerate().for_each(|(unit, bias)| *bias = 0.1 + 0.05 * unit as f64);
                layer.weights.iter_mut().for_each(|weight| *weight += 0.01);
            }
            let found = gradient(&problem, &net);
            let activation = settings.learner.activation;
            let total = |layers: &[NetLayer]| -> f64 {
                let of = |query: &NaiveQuery| loss(objective, query, &scores(layers, activation, query));
                let weights = layers.iter().flat_map(|layer| &layer.weights);
                let penalty = 0.05 * weights.map(|weight| weight * weight).sum::<f64>();
                queries.iter().map(of).sum::<f64>() / queries.len() as f64 + penalty
            };
            for (place, found) in found.iter().enumerate() {
                let at = |by: f64| {
                    let mut layers = net.layers.clone();
                    *weight_mut(&mut layers, place) += by;
                    total(&layers)
                };
                let expected = -(at(1e-5) - at(-1e-5)) / 2e-5;
                let place = format!("{objective}, {hidden}, {activation:?}, weight {place}");
                assert!(
                    (found - expected).abs() < 2e-5 * (1.0 + expected.abs()),
                    "{place}: {found}, {expected}"
                );
            }
        }
    }
}

/// Trains epochs with plain loops over batches, queries, rows and weights.
fn slow_twin(
    settings: &NetSettings,
    objective: &str,
    queries: &[NaiveQuery],
    layers: &mut [NetLayer],
    epochs: u32,
) {
    let net = &settings.learner;
    let is_adam = settings.learner.optimiser == Optimiser::Adam;
    let count = flat(layers).len();
    let (mut means, mut squares, mut step) = (vec![0.0; count], vec![0.0; count], 0);
    let all: Vec<u64> = (0..queries.len() as u64).collect();
    for epoch in 1..=epochs {
        for batch in batches(settings, 0, epoch, &all) {
            let mut gradient = vec![0.0; count];
            for query in &batch {
                let query = &queries[*query as usize];
                let row_gradients = score_gradients(objective, query, &scores(layers, net.activation, query));
                for (row, of_score) in query.rows.iter().zip(row_gradients) {
                    let values = forward(layers, net.activation, row);
                    let mut of_sums = vec![of_score];
                    let mut end = count;
                    for (number, layer) in layers.iter().enumerate().rev() {
                        let start = end - layer.biases.len() - layer.weights.len();
                        let mut of_inputs = vec![0.0; layer.inputs];
                        for (unit, of_sum) in of_sums.iter().enumerate() {
                            gradient[start + unit] += of_sum;
                            for (input, of_input) in of_inputs.iter_mut().enumerate() {
                                let place = start + layer.units() + unit * layer.inputs + input;
                                gradient[place] += of_sum * values[number][input];
                                *of_input += of_sum * layer.weights_of(unit)[input];
                            }
                        }
                        if number > 0 {
                            for (of_input, value) in of_inputs.iter_mut().zip(&values[number]) {
                                *of_input *= match net.activation {
                                    Activation::Tanh => 1.0 - value.powi(2),
                                    Activation::Relu => f64::from(u8::from(*value > 0.0)),
                                    Activation::Logistic => value * (1.0 - value),
                                };
                            }
                        }
                        (of_sums, end) = (of_inputs, start);
                    }
                }
            }
            step += 1;
            let output = count - 1 - layers.last().unwrap().weights.len();
            for place in (0..count).filter(|place| *place != output || objective == "squared") {
                let gradient = gradient[place] / batch.len() as f64;
                let change = if is_adam {
                    means[place] = 0.9 * means[place] + 0.1 * gradient;
                    squares[place] = 0.999 * squares[place] + 0.001 * gradient * gradient;
                    let mean = means[place] / (1.0 - 0.9f64.powi(step));
                    let square = squares[place] / (1.0 - 0.999f64.powi(step));
                    mean / (square.sqrt() + 1e-8)
                } else {
                    gradient
                };
                *weight_mut(layers, place) += net.learning_rate * change;
            }
        }
    }
}

#[test]
fn epochs_are_those_of_the_slow_twin() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(12, 30);
    let (source, queries) = (source(room.path(), &documents, 40), naive_queries(&documents));
    for objective in ["squared", "listnet"] {
        for (hidden, activation, optimiser) in [
            ("none", "tanh", "sgd"),
            ("4", "tanh", "adam"),
            ("3,4", "relu", "adam"),
            ("5", "logistic", "sgd"),
        ] {
            let set = [
                format!("objective={objective}"),
                format!("hidden_layers={hidden}"),
                format!("activation={activation}"),
                format!("optimiser={optimiser}"),
                "learning_rate=0.02".to_owned(),
                "batch_queries=7".to_owned(),
            ];
            let settings = settings("listnet", &set.iter().map(String::as_str).collect::<Vec<_>>());
            let problem = problem(&source, &settings, false);
            let mut net = problem.start(0);
            let mut twin = net.layers.clone();
            for epoch in 1..=3 {
                assert!(problem.epoch(&mut net, epoch).unwrap());
            }
            slow_twin(&settings, objective, &queries, &mut twin, 3);
            assert_ne!(flat(&net.layers), flat(&problem.start(0).layers));
            for (found, expected) in flat(&net.layers).iter().zip(flat(&twin)) {
                let place = format!("{objective}, {hidden}, {activation}, {optimiser}");
                assert!(
                    (found - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                    "{place}: {found}, {expected}"
                );
            }
        }
    }
}

#[test]
fn weights_do_not_depend_on_partitions_threads_and_memory() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(13, 60);
    let settings = settings("lambdarank-net", &["batch_queries=9", "hidden_layers=4,3", "restarts=2"]);
    let trained = |partition_rows: usize, is_streamed: bool, threads: usize| {
        let source = source(
            &room.path().join(format!("{partition_rows}-{is_streamed}-{threads}")),
            &documents,
            partition_rows,
        );
        let problem = problem(&source, &settings, is_streamed);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut nets = [problem.start(0), problem.start(1)];
        pool.install(|| {
            for epoch in 1..=3 {
                nets.iter_mut().for_each(|net| assert!(problem.epoch(net, epoch).unwrap()));
            }
        });
        nets.map(|net| net.layers)
    };
    let expected = trained(1 << 20, false, 1);
    assert_ne!(expected[0], expected[1]);
    for (partition_rows, is_streamed, threads) in
        [(20, false, 1), (20, false, 3), (50, true, 2), (1 << 20, true, 4)]
    {
        let found = trained(partition_rows, is_streamed, threads);
        assert!(found == expected, "{partition_rows} {is_streamed} {threads}");
    }
}

#[test]
fn a_net_whose_numbers_overflow_is_noticed() {
    let room = tempfile::tempdir().unwrap();
    let source = source(room.path(), &documents(14, 20), 1 << 20);
    let settings = settings(
        "ranknet-net",
        &["objective=squared", "optimiser=sgd", "learning_rate=10", "activation=relu", "hidden_layers=6,6"],
    );
    let problem = problem(&source, &settings, false);
    let mut net = problem.start(0);
    let diverged = (1..400).find(|epoch| !problem.epoch(&mut net, *epoch).unwrap());
    assert!(diverged.is_some());
    // Adam adds up the squares of gradients, which overflow before the gradients do.
    let adam =
        self::settings("ranknet-net", &["objective=squared", "activation=relu", "hidden_layers=6,6,6"]);
    let problem = self::problem(&source, &adam, false);
    let mut large = problem.start(0);
    large.layers.iter_mut().for_each(|layer| layer.weights.fill(1e29));
    assert!(!problem.epoch(&mut large, 1).unwrap());
    let mut huge = problem.start(0).layers;
    huge[1].weights.fill(1e300);
    huge[2].weights.fill(1e300);
    assert!(problem.means(&huge).unwrap().is_none());
}

#[test]
fn a_net_that_starts_from_scores_adds_nothing_before_its_first_epoch() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(15, 20);
    let source = source(room.path(), &documents, 1 << 20);
    let settings = settings("ranknet-net", &["hidden_layers=4,3"]);
    let problem = NetProblem { output: None, ..problem(&source, &settings, false) };
    let mut net = problem.start(0);
    let all_scores = |layers: &[NetLayer]| -> Vec<f64> {
        let of = |query: &NaiveQuery| scores(layers, settings.learner.activation, query);
        naive_queries(&documents).iter().flat_map(of).collect()
    };
    assert!(all_scores(&net.layers).iter().all(|score| *score == 0.0));
    // It learns nevertheless, in all layers.
    let before = net.layers.clone();
    assert!(problem.epoch(&mut net, 1).unwrap() && problem.epoch(&mut net, 2).unwrap());
    for (layer, before) in net.layers.iter().zip(before) {
        assert_ne!(layer.weights, before.weights);
    }
}

#[test]
fn every_query_is_in_one_batch_of_an_epoch() {
    let settings = settings("ranknet-net", &["batch_queries=7"]);
    let queries: Vec<u64> = (0..50).filter(|query| query % 3 > 0).collect();
    let of_epoch = |restart: u32, epoch: u32| batches(&settings, restart, epoch, &queries);
    let first = of_epoch(0, 1);
    assert_eq!(first.iter().map(Vec::len).collect::<Vec<_>>(), [7, 7, 7, 7, 5]);
    let mut all = first.concat();
    all.sort_unstable();
    assert_eq!(all, queries);
    assert!(first.iter().all(|batch| batch.is_sorted()));
    assert!(first != of_epoch(0, 2) && first != of_epoch(1, 1) && first == of_epoch(0, 1));
    let whole = self::settings("ranknet-net", &["batch_queries=0"]);
    assert_eq!(batches(&whole, 0, 1, &queries), std::slice::from_ref(&queries));
}
