//! Classes that are coupled by a softmax: probabilities, scores, formats, determinism, and what refuses them.

use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use std::path::Path;

const QUICK: &str = "--preset mcrank --set num_trees=8 --set num_leaves=6 --set min_data_in_leaf=5";

fn data(directory: &Path) {
    dataset(directory, "data", &graded(61, 40, 20), "--partition-rows 150");
    dataset(directory, "vali", &graded(62, 15, 20), "");
}

fn columns_of(directory: &Path, model: &str) -> impl Fn(&str) -> Vec<f64> + use<> {
    run(directory, &format!("--quiet predict --model {model} --data vali --parts --output p.parquet")).ok();
    let table = table_of(&directory.join("p.parquet"));
    move |name: &str| {
        let column = table.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
        column.as_primitive::<Float64Type>().values().to_vec()
    }
}

fn assert_close(found: &[f64], expected: &[f64], context: &str) {
    assert_eq!(found.len(), expected.len(), "{context}");
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 1e-12, "{context}, row {row}: {found} {expected}");
    }
}

/// The slow definition of a model's scores: the softmax of the scores of its classes, one document at a time.
#[test]
fn scores_are_expected_grades_under_the_softmax_of_the_parts() {
    let room = room();
    data(room.path());
    for (settings, runs, values) in [
        ("", 1, [0.0, 1.0, 2.0, 3.0, 4.0]),
        ("--set class_scores=exp2", 1, [1.0, 2.0, 4.0, 8.0, 16.0]),
        ("--set runs=2 --set feature_fraction=0.5", 2, [0.0, 1.0, 2.0, 3.0, 4.0]),
    ] {
        train(room.path(), &format!("{QUICK} --data data {settings} --model m"));
        let column = columns_of(room.path(), "m");
        let part = |grade: usize, run: usize| match runs {
            1 => column(&format!("part.class_{grade}")),
            _ => column(&format!("part.class_{grade}.run_{run}")),
        };
        let mut classes = vec![vec![0.0; 300]; 5];
        for run in 1..=runs {
            let scores: Vec<Vec<f64>> = (0..5).map(|grade| part(grade, run)).collect();
            for row in 0..300 {
                let sum: f64 = scores.iter().map(|column| column[row].exp()).sum();
                for (class, scores) in classes.iter_mut().zip(&scores) {
                    class[row] += scores[row].exp() / sum / runs as f64;
                }
            }
        }
        let mut cumulative = vec![0.0; 300];
        for (grade, class) in classes.iter().enumerate() {
            assert_close(&column(&format!("class.{grade}")), class, settings);
            cumulative.iter_mut().zip(class).for_each(|(sum, class)| *sum += class);
            if grade < 4 {
                assert_close(&column(&format!("cumulative.{grade}")), &cumulative, settings);
            }
        }
        let expected: Vec<f64> = (0..300)
            .map(|row| classes.iter().zip(values).map(|(class, value)| class[row] * value).sum())
            .collect();
        assert_close(&column("score"), &expected, settings);
    }
}

/// Every round by hand: with the probabilities p before it, a leaf of the tree of a class has the value
/// sum of (1 or 0 - p) / (5/4 * sum of p (1 - p)), which is Friedman's Newton step for 5 classes.
#[test]
fn every_round_takes_friedmans_newton_steps() {
    let room = room();
    let examples = graded(63, 30, 10);
    dataset(room.path(), "data", &examples, "");
    dataset(room.path(), "vali", &examples, "");
    let rows = examples.len();
    let mut scores = vec![vec![0.0f64; rows]; 5];
    for round in 1..=3 {
        let settings = "--set num_leaves=3 --set learning_rate=1 --set min_data_in_leaf=20";
        train(
            room.path(),
            &format!("--preset mcrank {settings} --set num_trees={round} --data data --model m"),
        );
        let column = columns_of(room.path(), "m");
        let after: Vec<Vec<f64>> = (0..5).map(|grade| column(&format!("part.class_{grade}"))).collect();
        for grade in 0..5 {
            let probability = |row: usize| {
                let sum: f64 = scores.iter().map(|scores| scores[row].exp()).sum();
                scores[grade][row].exp() / sum
            };
            // Rows of a leaf have the same step, up to rounding.
            let step = |row: usize| after[grade][row] - scores[grade][row];
            let mut leaves: Vec<i64> = (0..rows).map(|row| (step(row) * 1e9).round() as i64).collect();
            let of_row = leaves.clone();
            leaves.sort_unstable();
            leaves.dedup();
            assert!((2..=3).contains(&leaves.len()), "class {grade}, round {round}: {leaves:?}");
            for leaf in leaves {
                let (mut gradient, mut hessian) = (0.0, 0.0);
                for row in (0..rows).filter(|row| of_row[*row] == leaf) {
                    let label = if examples[row].label == grade as f64 { 1.0 } else { 0.0 };
                    gradient += label - probability(row);
                    hessian += 1.25 * probability(row) * (1.0 - probability(row));
                }
                let (found, expected) = (leaf as f64 / 1e9, gradient / hessian);
                // Gradients and hessians are single-precision numbers, in units of the round's scale.
                assert!((found - expected).abs() < 1e-4, "class {grade}, round {round}: {found} {expected}");
            }
        }
        scores = after;
    }
}

#[test]
fn a_model_of_classes_is_described_exported_and_blended() {
    let room = room();
    data(room.path());
    train(room.path(), &format!("{QUICK} --data data --model m"));
    train(
        room.path(),
        "--preset igbrt --data data --set stage.1.num_trees=4 --set stage.2.num_trees=4 --model sum",
    );
    let described = described(room.path(), "m");
    let group = &described["groups"][0];
    assert_eq!((group["link"].as_str(), group["parts"].as_u64()), (Some("softmax"), Some(5)));
    let text = run(room.path(), "describe m").ok().stdout;
    assert!(text.contains("group name    link"), "{text}");
    // JSON has everything; other formats refuse by name.
    run(room.path(), "export m --format json --output m.json").ok();
    run(room.path(), "import m.json --output back").ok();
    let scores = |model: &str| -> Vec<f64> {
        predict(room.path(), model, "vali").iter().map(|row| row.score).collect()
    };
    assert_eq!(scores("back"), scores("m"));
    let ran = run(room.path(), "export m --format lightgbm --output m.txt");
    assert_refused("export", &ran, 1, &["group 0 (classes) is a softmax over its parts", "--format json"]);
    let explained =
        sql::sql_in(room.path(), "--format csv", "SELECT * FROM explain_score('m', 'vali') LIMIT 1", &[]);
    assert!(
        explained.stderr.contains("group 0 (classes) is a softmax over its parts"),
        "{}",
        explained.stderr
    );
    // SQL scores rows and datasets.
    let sql = "SELECT abs((SELECT sum(score) FROM score('m', 'vali')) - (SELECT sum(score) FROM 'p.parquet')) < 1e-9 AS same";
    drop(columns_of(room.path(), "m")); // predicts, which must not fail
    assert_eq!(sql::sql_in(room.path(), "--format csv", sql, &[]).ok().stdout.trim(), "same\ntrue");
    // A blend normalises the expected grade, and the sum of the parts of another model.
    run(room.path(), "--quiet blend m sum --normalise z,minmax --weights 0.25,2 --output b").ok();
    let queries: Vec<String> = predict(room.path(), "m", "vali").into_iter().map(|row| row.query).collect();
    let normalised = |model: &str, normalise: &dyn Fn(&[f64]) -> Vec<f64>| -> Vec<f64> {
        let scores = scores(model);
        let mut all = Vec::new();
        for query in queries.chunk_by(|one, other| one == other) {
            all.extend(normalise(&scores[all.len()..all.len() + query.len()]));
        }
        all
    };
    let z = normalised("m", &|scores| {
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        let deviation =
            (scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / scores.len() as f64).sqrt();
        scores.iter().map(|score| (score - mean) / deviation).collect()
    });
    let minmax = normalised("sum", &|scores| {
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        scores.iter().map(|score| (score - least) / (most - least)).collect()
    });
    let expected: Vec<f64> = z.iter().zip(&minmax).map(|(z, minmax)| 0.25 * z + 2.0 * minmax).collect();
    for (found, expected) in scores("b").iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
    // A blend is a start model like any other.
    train(room.path(), "--preset mart --data data --start-model b --set num_trees=2 --model more");
    let more = scores("more");
    run(room.path(), "--quiet predict --model more --data vali --parts --output p.parquet").ok();
    let boosted = columns_of(room.path(), "more")("part.boosting");
    let sums: Vec<f64> = scores("b").iter().zip(&boosted).map(|(start, boosted)| start + boosted).collect();
    assert_close(&more, &sums, "start model");
}

#[test]
fn threads_partitions_and_interruptions_do_not_change_a_byte() {
    let room = room();
    same_rows(room.path());
    for plan in [QUICK.to_owned(), format!("{QUICK} --set bagging_fraction=0.5 --set runs=2")] {
        let expected = trained_bytes(room.path(), &format!("{plan} --data one --threads 1"));
        for (data, threads) in [("one", 2), ("many", 1), ("many", 4), ("few", 2)] {
            let found = trained_bytes(room.path(), &format!("{plan} --data {data} --threads {threads}"));
            assert!(found == expected, "{plan}: {data}, {threads} threads");
        }
    }
    let other = crate::support::room();
    data(other.path());
    let arguments =
        "--preset mcrank --set num_trees=40 --data data --valid vali --set early_stopping_rounds=30";
    killed_and_resumed(other.path(), arguments, 3);
}

#[test]
fn what_classes_of_a_softmax_cannot_do_is_refused() {
    let room = room();
    data(room.path());
    odd_datasets(room.path());
    train(room.path(), "--data data --set num_trees=2 --model start");
    assert_trainings_refused(
        room.path(),
        &[
            ("--preset mcrank --data real", "objective = softmax_classes: the label"),
            ("--preset mcrank --data same", "fewer than two different labels"),
            ("--preset mcrank --data data --set target=ordinal", "classes are learned by squared error"),
            ("--preset mcrank --data data --set class_weights=ols:train", "only target=ordinal uses it"),
            (
                "--preset mcrank --data data --set class_scores=1,2",
                "2 numbers, but the training data have 5 grades",
            ),
            ("--preset mcrank --data data --set base_score=feature:f1", "every class has a score of its own"),
            (
                "--preset igbrt --data data --set stage.2.objective=softmax_classes",
                "the classes are trained together, in a single stage",
            ),
            ("--preset mcrank --data data --start-model start", "conflicts with --start-model"),
            ("--preset rf --data data --set objective=softmax_classes", "objective"),
        ],
    );
}
