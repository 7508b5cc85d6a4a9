//! Linear models: the weights of scikit-learn, bytes that depend only on rows and parameters, and all commands that use
//! models.

use crate::support::sql::sql_in;
use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use std::fs;

/// Every loss, normalisation and way to handle missing values.
const VARIANTS: [&str; 10] = [
    "--preset linear",
    "--preset linear --set normalise_features=z --set missing=mean",
    "--preset linear --set normalise_features=none --set lambda_l2=3",
    "--preset logistic",
    "--preset logistic --set normalise_features=minmax --set missing=learned --set relevant_from=3",
    "--preset logistic --set normalise_features=none --set missing=median --set lambda_l2=0.1",
    "--preset svm --set svm_c=3 --set relevant_from=2",
    "--preset svm --set svm_c=3 --set relevant_from=3 --set undersample=1 --set normalise_features=z",
    "--preset ranksvm",
    "--preset ranksvm --set normalise_features=z --set missing=mean --set svm_c=20",
];

#[test]
fn weights_are_those_of_scikit_learn() {
    let room = room();
    let examples = graded(31, 60, 20);
    dataset(room.path(), "data", &examples, "--partition-rows 300");
    weighted_dataset(room.path(), "weighted", &examples, "--partition-rows 300");
    for data in ["data", "weighted"] {
        for normalise in ["none", "query", "z", "minmax"] {
            for (preset, lambda) in
                [("linear", "1e-10"), ("linear", "20"), ("logistic", "1.0"), ("logistic", "0.01")]
            {
                let settings = format!("--set normalise_features={normalise} --set lambda_l2={lambda}");
                train(room.path(), &format!("--preset {preset} --data {data} --model m {settings}"));
                run(room.path(), &format!("predict --model m --data {data} --scores scores.txt")).ok();
                let check = format!("{preset} {data} m scores.txt {normalise} {lambda}");
                let Some(found) = reference_script(room.path(), "linear.py", &check) else { return };
                eprintln!("{data}, {normalise}, {preset}, lambda {lambda}: {found}");
            }
        }
    }
}

#[test]
fn objectives_of_svms_are_those_of_scikit_learn() {
    let room = room();
    let examples = graded(33, 40, 15);
    dataset(room.path(), "data", &examples, "--partition-rows 200");
    weighted_dataset(room.path(), "weighted", &examples, "--partition-rows 200");
    for (data, normalise, cost) in [
        ("data", "query", "1"),
        ("data", "z", "100"),
        ("weighted", "minmax", "10"),
        ("weighted", "query", "0.01"),
    ] {
        for preset in ["svm", "ranksvm"] {
            let settings = format!("--set normalise_features={normalise} --set svm_c={cost}");
            train(room.path(), &format!("--preset {preset} --data {data} --model m {settings}"));
            run(room.path(), &format!("predict --model m --data {data} --scores scores.txt")).ok();
            let check = format!("{preset} {data} m scores.txt {normalise} {cost}");
            let Some(found) = reference_script(room.path(), "linear.py", &check) else { return };
            eprintln!("{data}, {normalise}, {preset}, cost {cost}: {found}");
        }
    }
}

#[test]
fn bytes_depend_only_on_rows_and_parameters() {
    assert_bytes_depend_only_on_rows(&VARIANTS, &["", "weighted-"]);
}

#[test]
fn a_memory_limit_does_not_change_the_model() {
    let room = room();
    dataset(room.path(), "data", &graded(35, 300, 40), "--partition-rows 2000");
    for variant in ["--preset linear", "--preset logistic --set normalise_features=z"] {
        assert_a_memory_limit_keeps_the_bytes(room.path(), &format!("{variant} --data data"));
    }
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_trains_the_same_bytes() {
    let room = room();
    same_rows(room.path());
    let cluster = crate::support::cluster::Cluster::start(2, &[]);
    assert_a_cluster_trains_the_same_bytes(room.path(), &VARIANTS, "weighted-many", &cluster.url());
    for options in ["--preset logistic", "--preset linear --set label_map=0,1,2=0;3,4=1"] {
        let expected = trained_bytes(room.path(), &format!("{options} --data many"));
        let remote = trained_bytes(room.path(), &format!("{options} --data many --cluster local:2"));
        assert!(remote == expected, "{options}");
    }
}

#[test]
fn all_commands_take_linear_models() {
    let room = room();
    same_rows(room.path());
    train(room.path(), "--preset linear --data many --valid vali --model m --stats stats.json");
    let json = described(room.path(), "m");
    let part = &json["parts"][0];
    assert_eq!((part["kind"].as_str(), part["normalise_features"].as_str()), (Some("linear"), Some("query")));
    assert_eq!(
        (part["rows"].as_u64(), json["trees"].as_u64(), json["rounds"].as_u64()),
        (Some(14), Some(0), Some(1))
    );
    let text = run(room.path(), "describe m").ok().stdout;
    for expected in [
        "rounds trained        1\n",
        "linear: query",
        "weights of part 0 (linear), features normalised by query",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
    }
    let refused = run(room.path(), "describe m --tree 0");
    assert_refused("--tree", &refused, 2, &["part 0 (linear)", "no trees"]);

    let predicted = run(room.path(), "predict --model m --data vali --output p --parts").ok();
    assert!(predicted.stderr.contains("rows scored with 14 weights"), "{}", predicted.stderr);
    let table = table_of(&room.path().join("p"));
    let column =
        |name: &str| table.column_by_name(name).unwrap().as_primitive::<Float64Type>().values().to_vec();
    assert_eq!(column("part.linear"), column("score"));
    run(room.path(), "evaluate --predictions p --metrics ndcg@10").ok();
    run(room.path(), "describe m --permutation vali").ok();
    run(room.path(), "report . --output report.html").ok();

    // The model table, scores and explanations in SQL.
    let ask = |query: &str| sql_in(room.path(), "--format csv", query, &[]);
    let weights = ask("select count(*), count(distinct feature), sum(abs(value)) > 0 from 'm'").ok().stdout;
    assert!(weights.ends_with("14,14,true\n"), "{weights}");
    assert_sql_scores_and_explains(room.path());
    let refused = ask("select planetree_score('m', f1) from 'vali'");
    assert_refused(
        "planetree_score",
        &refused,
        1,
        &["part 0 (linear)", "normalises features over the documents"],
    );
    let refused = ask("select bin_of(1.0, 'm', 'f1')");
    assert_refused("bin_of", &refused, 1, &["has no trees"]);
    for format in ["lightgbm", "xgboost", "json"] {
        let refused = run(room.path(), &format!("export m --format {format} --output exported"));
        assert_refused(format, &refused, 1, &["part 0 (linear) has no trees"]);
    }

    // With constants of the training data, single rows are scored.
    train(room.path(), "--preset linear --data many --model z --set normalise_features=z");
    let names: Vec<String> = (1..=14).map(|number| format!("v.f{number}")).collect();
    let call = format!("select max(abs(planetree_score('z', {}) - s.score)) < 1e-12", names.join(", "));
    let rows = "from (select *, row_number() over () as place from 'vali') v join \
                (select *, row_number() over () as place from score('z', 'vali')) s using (place)";
    assert!(ask(&format!("{call} {rows}")).ok().stdout.ends_with("true\n"));
    run(room.path(), "cv --data many --preset linear --folds 3 --output folds").ok();
}

#[test]
fn dependent_and_constant_features_do_not_matter() {
    let room = room();
    let mut examples = graded(33, 40, 12);
    dataset(room.path(), "data", &examples, "");
    for example in &mut examples {
        let (first, second) = (example.features[0], example.features[6]);
        example.features.push(first);
        example.features.push(first.zip(second).map(|(first, second)| 2.0 * first - second));
        example.features.push(Some(-3.0));
    }
    dataset(room.path(), "more", &examples, "");
    for settings in ["", "--set normalise_features=z", "--set normalise_features=none"] {
        train(room.path(), &format!("--preset linear --data data --model plain {settings}"));
        train(room.path(), &format!("--preset linear --data more --model all {settings}"));
        run(room.path(), "predict --model plain --data data --scores plain.txt").ok();
        run(room.path(), "predict --model all --data more --scores all.txt").ok();
        let scores = |file: &str| -> Vec<f64> {
            let text = fs::read_to_string(room.path().join(file)).unwrap();
            text.lines().map(|line| line.parse().unwrap()).collect()
        };
        for (one, other) in scores("plain.txt").iter().zip(scores("all.txt")) {
            // Query normalisation makes the sum of two features a new feature, which may help.
            assert!(
                (one - other).abs() < if settings.is_empty() { 0.5 } else { 1e-6 },
                "{settings}: {one}, {other}"
            );
        }
    }
}

#[test]
fn bad_input_is_refused() {
    let room = room();
    odd_datasets(room.path());
    assert_trainings_refused(
        room.path(),
        &[
            ("--preset linear --data same", "every label is 2"),
            (
                "--preset logistic --data real --set relevant_from=100",
                "no label is at least relevant_from = 100",
            ),
            ("--preset linear --data real --set max_depth=4", "a linear model does not use max_depth"),
            (
                "--preset linear --data real --set objective=lambdarank",
                "a linear model has no objective lambdarank",
            ),
            (
                "--preset linear --data real --set normalise_features=rank",
                "expected query, z, minmax or none",
            ),
            ("--preset linear --data real --set lambda_l2=-1", "expected a number from 0"),
            ("--preset ranksvm --data same --set svm_c=1", "every label is 2"),
            ("--preset ranksvm --data real", "svm_c = auto: there is no validation set to choose it on"),
            ("--preset ranksvm --data real --set svm_c=0", "expected auto, or a number above 0"),
            (
                "--preset ranksvm --data real --set svm_c=1 --set svm_tolerance=0",
                "expected a number above 0, at most 1",
            ),
            (
                "--preset ranksvm --data real --set svm_c=1 --set undersample=1",
                "a ranking SVM does not use undersample",
            ),
            ("--preset svm --data real --set svm_c=1 --set undersample=-1", "expected a number from 0"),
            (
                "--preset svm --data real --set svm_c=1 --set relevant_from=100",
                "no label is at least relevant_from = 100",
            ),
            (
                "--preset linear --data real --valid real --model-for err=e",
                "--model-for err: every round of a linear model replaces the previous one",
            ),
        ],
    );
}

#[test]
fn weights_that_did_not_converge_are_reported() {
    let room = room();
    dataset(room.path(), "data", &graded(91, 40, 10), "");
    let short = run(room.path(), "train --preset logistic --set num_trees=2 --data data --model m").ok();
    assert!(short.stderr.contains("did not converge in 2 rounds"), "{}", short.stderr);
    for enough in ["--preset logistic", "--preset linear --set num_trees=1"] {
        let ran = run(room.path(), &format!("train {enough} --data data --model m")).ok();
        assert!(!ran.stderr.contains("did not converge"), "{enough}: {}", ran.stderr);
    }
}

#[test]
fn a_penalty_that_overflows_is_blamed_on_its_parameter() {
    let room = room();
    dataset(room.path(), "data", &graded(92, 20, 10), "");
    for preset in ["linear", "logistic"] {
        let arguments = format!("train --preset {preset} --set lambda_l2=1e308 --data data --model m");
        assert_refused(preset, &run(room.path(), &arguments), 2, &["lambda_l2 = 1e308 is too large"]);
    }
}

#[test]
fn the_step_limit_of_the_chosen_svm_is_reported() {
    let room = room();
    // Features that are almost the same, at a scale at which every value of svm_c is large.
    let mut state = 12345u64;
    let mut draw = || {
        state = (state * 1_103_515_245 + 12345) % (1 << 31);
        state as f64 / (1u64 << 31) as f64 - 0.5
    };
    let mut text = String::new();
    for query in 0..20 {
        for _ in 0..10 {
            let label = ((draw() + 0.5) * 3.0) as u32;
            let first = draw() + 0.3 * f64::from(label);
            text.push_str(&format!("{label} qid:{query} 1:{:.6}", 1e6 * first));
            for feature in 2..22 {
                let value = first + draw() * 10f64.powf(-f64::from(feature - 2) / 5.0);
                text.push_str(&format!(" {feature}:{:.6}", 1e6 * value));
            }
            text.push('\n');
        }
    }
    fs::write(room.path().join("data.txt"), text).unwrap();
    run(room.path(), "convert data.txt --output data").ok();
    let train = "train --preset ranksvm --data data --valid data --set normalise_features=none --model m";
    let limited = run(room.path(), &format!("{train} --set svm_tolerance=1e-15")).ok().stderr;
    assert!(limited.contains("the search ended after 100 steps"), "{limited}");
    let ended = run(room.path(), &format!("{train} --set svm_tolerance=0.5")).ok().stderr;
    assert!(!ended.contains("the search ended after"), "{ended}");
}
