//! Compares trained weights with slow twins: normal equations of plain sums, and the gradient of the log loss.

use super::{LinearSnapshot, RowWeights, read_rows};
use crate::config::{Parameters, load};
use crate::fixtures::{Document, FEATURES, Notes, dataset, documents, normalised, request, resumed};
use crate::{Outcome, Silent, train};
use planetree_base::job::Shard;
use planetree_base::storage::Location;
use planetree_data::source::LabelledData;
use planetree_model::model::{LinearFunction, Model, PartFamily};

fn trained(data: &Location, preset: &str, set: &[&str]) -> Outcome {
    train(&request(data, preset, set), &mut Silent).unwrap()
}

fn function(model: &Model) -> &LinearFunction {
    match &model.parts[0].family {
        PartFamily::Linear(function) => function,
        _ => panic!("the part is linear"),
    }
}

/// Solves equations by Gaussian elimination with pivoting. An unknown without a pivot is 0.
fn solved(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for step in 0..size {
        let pivot =
            (step..size).max_by(|a, b| matrix[*a][step].abs().total_cmp(&matrix[*b][step].abs())).unwrap();
        matrix.swap(step, pivot);
        right.swap(step, pivot);
        if matrix[step][step].abs() < 1e-9 {
            matrix[step][step] = 1.0;
            right[step] = 0.0;
            continue;
        }
        for row in step + 1..size {
            let factor = matrix[row][step] / matrix[step][step];
            let pivot_row = matrix[step].clone();
            for (value, pivot) in matrix[row].iter_mut().zip(&pivot_row).skip(step) {
                *value -= factor * pivot;
            }
            right[row] -= factor * right[step];
        }
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

/// Returns the weights of ridge regression, with the intercept last.
fn ridge(documents: &[Document], features: &[[f64; FEATURES]], lambda: f64) -> Vec<f64> {
    let size = FEATURES + 1;
    let (mut matrix, mut right) = (vec![vec![0.0; size]; size], vec![0.0; size]);
    for (document, features) in documents.iter().zip(features) {
        let row: Vec<f64> = features.iter().copied().chain([1.0]).collect();
        for ((one, cells), right) in row.iter().zip(&mut matrix).zip(&mut right) {
            *right += document.weight * document.label * one;
            cells.iter_mut().zip(&row).for_each(|(cell, other)| *cell += document.weight * one * other);
        }
    }
    (0..FEATURES).for_each(|place| matrix[place][place] += lambda);
    solved(matrix, right)
}

fn assert_near(one: f64, other: f64, what: &str) {
    assert!((one - other).abs() <= 1e-7 * (1.0 + other.abs()), "{what}: {one} is not {other}");
}

#[test]
fn least_squares_are_those_of_plain_sums() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(1, 40);
    let data = dataset(room.path(), "data", &documents, 1 << 20);
    for how in ["none", "query", "z", "minmax"] {
        for lambda in ["0.001", "2.5"] {
            let set = [format!("normalise_features={how}"), format!("lambda_l2={lambda}")];
            let outcome = trained(&data, "linear", &[&set[0], &set[1]]);
            let features = normalised(&documents, how);
            let expected = ridge(&documents, &features, lambda.parse().unwrap());
            let found = function(&outcome.model);
            for (place, term) in found.terms.iter().enumerate() {
                // The constant feature has no weight; ridge gives it none either, unless it is not normalised.
                let other = if place == FEATURES - 1 { 0.0 } else { expected[place] };
                assert_near(term.weight, other, &format!("{how}, lambda {lambda}, feature {place}"));
                let mean_of = |of: &dyn Fn(f64) -> f64| {
                    let total: f64 = documents.iter().map(|document| document.weight).sum();
                    let values = documents
                        .iter()
                        .zip(&features)
                        .map(|(document, row)| document.weight * of(row[place]));
                    values.sum::<f64>() / total
                };
                if place < FEATURES - 1 {
                    let mean = mean_of(&|value| value);
                    let deviation = mean_of(&|value| (value - mean) * (value - mean)).sqrt();
                    assert_near(term.mean, mean, "mean");
                    assert_near(term.gain, term.weight.abs() * deviation, "importance");
                }
            }
            let constant = if how == "none" { 3.0 * expected[FEATURES - 1] } else { 0.0 };
            assert_near(
                found.base_score,
                expected[FEATURES] + constant,
                &format!("{how}, lambda {lambda}, base score"),
            );
            assert_eq!(outcome.model.rounds, 1);
        }
    }
}

#[test]
fn the_log_loss_has_no_slope_at_the_trained_weights() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(2, 50);
    let data = dataset(room.path(), "data", &documents, 1 << 20);
    for how in ["none", "query", "z", "minmax"] {
        let set =
            [format!("normalise_features={how}"), "relevant_from=2".to_owned(), "lambda_l2=0.5".to_owned()];
        let outcome = trained(&data, "logistic", &[&set[0], &set[1], &set[2]]);
        let (found, features) = (function(&outcome.model), normalised(&documents, how));
        let mut slope = [0.0; FEATURES + 1];
        for (document, features) in documents.iter().zip(&features) {
            let terms = found.terms.iter().zip(features).map(|(term, value)| term.weight * value);
            let probability = 1.0 / (1.0 + (-(found.base_score + terms.sum::<f64>())).exp());
            let error = f64::from(u8::from(document.label >= 2.0)) - probability;
            for (place, value) in features.iter().chain([&1.0]).enumerate() {
                slope[place] += document.weight * error * value;
            }
        }
        for (place, term) in found.terms.iter().enumerate().take(FEATURES - 1) {
            assert_near(slope[place], 0.5 * term.weight, &format!("{how}, feature {place}"));
        }
        assert_near(slope[FEATURES], 0.0, how);
        assert!((3..20).contains(&outcome.model.rounds), "{how}: {} rounds", outcome.model.rounds);
    }
}

#[test]
fn partitions_and_resumed_runs_have_the_same_weights() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(3, 60);
    let (one, many) =
        (dataset(room.path(), "one", &documents, 1 << 20), dataset(room.path(), "many", &documents, 7));
    for (preset, set) in [
        ("linear", &["normalise_features=none"][..]),
        ("logistic", &["lambda_l2=0.001"]),
        ("svm", &["svm_c=3"]),
        ("ranksvm", &["svm_c=3"]),
    ] {
        let expected = trained(&one, preset, set).model;
        assert_eq!(trained(&many, preset, set).model.parts, expected.parts, "{preset}");
        for stop in 1..=expected.rounds {
            let model = resumed(room.path(), &many, preset, set, stop);
            assert_eq!(model, trained(&many, preset, set).model, "{preset} {stop}");
        }
    }
}

/// At the minimum, the weights are C times the mean slope of the hinge loss over all pairs (or documents), one by one.
#[test]
fn hinge_losses_have_no_slope_at_the_trained_weights() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(5, 60);
    let data = dataset(room.path(), "data", &documents, 1 << 20);
    for (how, cost) in [("none", 0.3), ("query", 1.0), ("z", 100.0), ("minmax", 20.0)] {
        let features = normalised(&documents, how);
        let of = |query: usize| documents.iter().filter(move |document| document.query == query);
        for preset in ["svm", "ranksvm"] {
            let (normalise, cost_set) = (format!("normalise_features={how}"), format!("svm_c={cost}"));
            let mut set = vec![normalise.as_str(), &cost_set];
            set.extend((preset == "ranksvm").then_some("svm_tolerance=1e-14"));
            let outcome = trained(&data, preset, &set);
            let found = function(&outcome.model);
            let score = |row: usize| {
                let terms = found.terms.iter().zip(&features[row]).map(|(term, value)| term.weight * value);
                found.base_score + terms.sum::<f64>()
            };
            let (mut slope, mut total) = ([0.0; FEATURES], 0.0);
            for (one, document) in documents.iter().enumerate() {
                if preset == "svm" {
                    let side = if document.label >= 1.0 { 1.0 } else { -1.0 };
                    let short = (1.0 - side * score(one)).max(0.0);
                    total += document.weight;
                    (0..FEATURES).for_each(|place| {
                        slope[place] += document.weight * side * short * features[one][place]
                    });
                    continue;
                }
                let weight = of(document.query).map(|other| other.weight).sum::<f64>()
                    / of(document.query).count() as f64;
                for (two, other) in documents.iter().enumerate() {
                    if other.query != document.query || other.label >= document.label {
                        continue;
                    }
                    let short = (1.0 - (score(one) - score(two))).max(0.0);
                    total += weight;
                    for place in 0..FEATURES {
                        slope[place] += weight * short * (features[one][place] - features[two][place]);
                    }
                }
            }
            for (place, term) in found.terms.iter().enumerate().take(FEATURES - 1) {
                assert_near(
                    cost * slope[place] / total,
                    term.weight,
                    &format!("{preset}, {how}, feature {place}"),
                );
            }
            assert_eq!(outcome.model.rounds, 1);
        }
    }
}

#[test]
fn the_best_cost_on_validation_data_is_kept() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(6, 40), 1 << 20);
    let valid = dataset(room.path(), "valid", &documents(7, 40), 1 << 20);
    for (preset, set) in [("svm", &[][..]), ("ranksvm", &["svm_tolerance=1e-14"])] {
        let outcome =
            train(&request(&data, preset, set).validate("vali", valid.clone()), &mut Silent).unwrap();
        let value = |round: u32| {
            let entry = |entry: &&crate::LogEntry| {
                entry.round == round && entry.split == "vali" && entry.metric == "map"
            };
            outcome.log.iter().find(entry).unwrap().value
        };
        let best =
            (1..=5).max_by(|one, other| value(*one).total_cmp(&value(*other)).then(other.cmp(one))).unwrap();
        assert_eq!(outcome.best.map(|best| best.round), Some(best), "{preset}");
        let cost = format!("svm_c={}", crate::config::svm_costs(None)[best as usize - 1]);
        let set: Vec<&str> = set.iter().copied().chain([cost.as_str()]).collect();
        let alone = trained(&data, preset, &set);
        for (one, other) in function(&outcome.model).terms.iter().zip(&function(&alone.model).terms) {
            assert_near(one.weight, other.weight, preset);
        }
    }
    let error = train(&request(&data, "ranksvm", &[]), &mut Silent).err().unwrap().to_string();
    assert!(error.contains("there is no validation set to choose it on"), "{error}");
}

#[test]
fn data_without_pairs_is_refused() {
    let room = tempfile::tempdir().unwrap();
    let mut same = documents(8, 30);
    for document in &mut same {
        document.label = (document.query % 2) as f64;
    }
    let data = dataset(room.path(), "same", &same, 1 << 20);
    let refused =
        |data: &Location| train(&request(data, "ranksvm", &["svm_c=1"]), &mut Silent).err().unwrap();
    let error = refused(&data).to_string();
    assert!(error.contains("no query has documents with different labels"), "{error}");
    // Weights are to blame if queries with pairs have weight 0.
    let mut weightless = documents(8, 30);
    weightless.extend(same.into_iter().map(|document| Document { query: 30 + document.query, ..document }));
    weightless.iter_mut().filter(|document| document.query < 30).for_each(|document| document.weight = 0.0);
    let error = refused(&dataset(room.path(), "weightless", &weightless, 1 << 20)).to_string();
    assert!(
        error.contains("the weight of every query that has documents with different labels is 0"),
        "{error}"
    );
    // Queries of one document have no pairs, but do not matter beside others.
    let mut single: Vec<Document> = documents(8, 30);
    single.push(Document { query: 30, label: 4.0, weight: 1.0, features: [Some(1.0); FEATURES] });
    let data = dataset(room.path(), "single", &single, 1 << 20);
    assert!(train(&request(&data, "ranksvm", &["svm_c=1", "normalise_features=z"]), &mut Silent).is_ok());
}

#[test]
fn parameters_are_recorded() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(4, 20), 1 << 20);
    let outcome = trained(&data, "linear", &[]);
    let expected = load(Some("linear"), None, &[]).unwrap().to_toml();
    assert_eq!(outcome.model.configuration, expected);
    assert!(Parameters::from_toml(&outcome.model.configuration).is_ok());
    assert!(
        outcome.log.iter().any(|entry| entry.split == "train" && entry.metric == "rmse" && entry.round == 1)
    );
}

/// Nonrelevant documents that are not drawn do not count, as if their weights were 0.
#[test]
fn an_undersampled_svm_learns_from_as_many_nonrelevant_documents_as_asked_for() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(9, 60);
    let (one, many) =
        (dataset(room.path(), "one", &documents, 1 << 20), dataset(room.path(), "many", &documents, 7));
    let relevant = |document: &Document| document.label >= 3.0;
    let set = ["svm_c=5", "relevant_from=3", "undersample=1", "seed=4"];
    let model = trained(&one, "svm", &set).model;
    assert_eq!(trained(&many, "svm", &set).model.parts, model.parts);
    let found = function(&model);
    // The kept weight is that of all relevant documents and of as many others.
    let of_relevant: f64 = documents.iter().filter(|document| relevant(document)).map(|one| one.weight).sum();
    let all: f64 = documents.iter().map(|document| document.weight).sum();
    let kept = found.terms[0].cover;
    assert!(of_relevant < kept && kept < all, "{of_relevant} {kept} {all}");
    let other = trained(&one, "svm", &["svm_c=5", "relevant_from=3", "undersample=1", "seed=5"]).model;
    assert_ne!(function(&other).terms, found.terms, "another seed draws other documents");
    let whole = trained(&one, "svm", &["svm_c=5", "relevant_from=3"]).model;
    assert_ne!(function(&whole).terms, found.terms);
    // If there are fewer nonrelevant documents than asked for, all are used, and a note says so.
    let mut notes = Notes::default();
    let many = ["svm_c=5", "relevant_from=3", "undersample=1000"];
    let all_used = train(&request(&one, "svm", &many), &mut notes).unwrap().model;
    assert_eq!(all_used.parts, whole.parts);
    assert!(notes.0.iter().any(|note| note.contains("so all are used")), "{:?}", notes.0);
}

#[test]
fn a_ranking_svm_gives_constant_features_no_weight() {
    let room = tempfile::tempdir().unwrap();
    let mut documents = documents(10, 40);
    for document in &mut documents {
        document.features[1] = Some(document.query as f32); // constant within queries
    }
    let data = dataset(room.path(), "data", &documents, 1 << 20);
    for how in ["query", "z", "minmax", "none"] {
        let normalise = format!("normalise_features={how}");
        let model = trained(&data, "ranksvm", &["svm_c=10", &normalise]).model;
        let terms = &function(&model).terms;
        assert_eq!(terms[FEATURES - 1].weight, 0.0, "{how}: the last feature is constant");
        // Differences within queries are 0, so the penalty alone decides.
        assert!(terms[1].weight.abs() < 1e-12, "{how}: {}", terms[1].weight);
        assert!(terms[0].weight.abs() > 1e-3, "{how}: {}", terms[0].weight);
    }
}

/// Rankers that learn from differences between documents would end with a model that ties all of them.
#[test]
fn features_that_are_constant_within_queries_order_nothing() {
    let room = tempfile::tempdir().unwrap();
    let mut documents = documents(12, 40);
    for document in &mut documents {
        document.features = [Some(document.query as f32); FEATURES];
    }
    let data = dataset(room.path(), "constant", &documents, 1 << 20);
    for how in ["query", "z", "minmax", "none"] {
        let normalise = format!("normalise_features={how}");
        for (preset, set) in [
            ("ranksvm", "svm_c=1"),
            ("adarank", "max_repeats=2"),
            ("coordinate-ascent", "line_steps=2"),
            ("ranknet-net", "restarts=2"),
            ("listnet", "hidden_layers=none"),
        ] {
            let request = request(&data, preset, &[set, &normalise]);
            let error = train(&request, &mut Silent).err().unwrap();
            let (problem, remedy) = (error.to_string(), error.remedy().unwrap_or_default());
            assert!(
                problem.contains("all features are constant within queries"),
                "{preset}, {how}: {problem}"
            );
            assert!(remedy.contains("train on features that differ"), "{preset}, {how}: {remedy}");
        }
    }
    // Regression learns from differences between queries, too.
    for (preset, set) in [("linear", "num_trees=1"), ("ranknet-net", "objective=squared")] {
        trained(&data, preset, &[set, "normalise_features=z"]);
    }
}

#[test]
fn an_executor_counts_what_jobs_keep() {
    let room = tempfile::tempdir().unwrap();
    let documents = documents(11, 30);
    let source = LabelledData::open(&dataset(room.path(), "data", &documents, 1 << 20), None).unwrap();
    let plan = load(Some("ranksvm"), None, &["svm_c=1".to_owned()]).unwrap();
    let parameters = plan.only().unwrap().to_toml();
    let bytes = |row_bytes: u64| {
        let (parameters, weights) = (parameters.clone(), RowWeights::Given);
        let snapshot = LinearSnapshot { parameters, weights, at_most: None, start: None, row_bytes };
        let shard = Shard { data: &source, parts: &[0] };
        read_rows(Some(snapshot), &shard).unwrap().unwrap().bytes()
    };
    assert_eq!(bytes(72) - bytes(24), 48 * documents.len() as u64);
}
