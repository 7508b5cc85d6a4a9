//! Nets: gradient descent in numpy, bytes that depend only on rows and parameters, and all commands that use models.

use crate::support::sql::sql_in;
use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use std::fs;

/// Short trainings of every preset, objective, activation and way to handle missing values.
const VARIANTS: [&str; 6] = [
    "--preset ranknet-net --set num_trees=3",
    "--preset lambdarank-net --set num_trees=3 --set restarts=2 --set hidden_layers=6,4 --set activation=relu",
    "--preset lambdarank-net --set num_trees=2 --set lambda_metric=err --set normalise_features=z --set missing=mean",
    "--preset listnet --set num_trees=4 --set batch_queries=0 --set optimiser=sgd",
    "--preset listnet --set num_trees=2 --set objective=xendcg --set hidden_layers=5 --set missing=learned",
    "--preset ranknet-net --set num_trees=2 --set objective=squared --set normalise_features=minmax --set lambda_l2=0.01",
];

#[test]
fn weights_are_those_of_gradient_descent_in_numpy() {
    let room = room();
    let examples = graded(61, 40, 12);
    dataset(room.path(), "data", &examples, "--partition-rows 150");
    weighted_dataset(room.path(), "weighted", &examples, "--partition-rows 150");
    for (data, objective, normalise, hidden, activation, rate) in [
        ("data", "listnet", "query", "none", "tanh", "0.5"),
        ("data", "ranknet", "query", "6", "tanh", "0.05"),
        ("weighted", "listnet", "z", "5,3", "logistic", "0.5"),
        ("weighted", "squared", "minmax", "8", "relu", "0.05"),
    ] {
        let settings = format!(
            "--set objective={objective} --set normalise_features={normalise} --set hidden_layers={hidden} \
             --set activation={activation} --set learning_rate={rate} --set optimiser=sgd --set batch_queries=0 \
             --set lambda_l2=0.01"
        );
        for (model, epochs) in [("first", 1), ("last", 6)] {
            let arguments = format!("--preset ranknet-net --data {data} --model {model} {settings}");
            train(room.path(), &format!("{arguments} --set num_trees={epochs}"));
        }
        run(room.path(), &format!("--quiet predict --model last --data {data} --scores scores.txt")).ok();
        let check =
            format!("{data} first last scores.txt {objective} {normalise} {activation} {rate} 5 0.01");
        let Some(found) = reference_script(room.path(), "nets.py", &check) else { return };
        eprintln!("{data}, {objective}, {hidden}, {activation}: {found}");
    }
}

#[test]
fn bytes_depend_only_on_rows_and_parameters() {
    assert_bytes_depend_only_on_rows(&VARIANTS, &["", "weighted-"]);
}

#[test]
fn a_memory_limit_does_not_change_the_model() {
    let room = room();
    dataset(room.path(), "data", &graded(35, 100, 30), "--partition-rows 1000");
    let arguments = "--preset lambdarank-net --set num_trees=2 --set normalise_features=z --data data";
    assert_a_memory_limit_keeps_the_bytes(room.path(), arguments);
}

#[test]
fn a_resumed_training_has_the_same_bytes() {
    let room = room();
    same_rows(room.path());
    for options in ["--preset lambdarank-net", "--preset ranknet-net --set restarts=2"] {
        let arguments = format!("{options} --data many --valid vali --set early_stopping_rounds=1000");
        assert_resumes_with_the_same_log(room.path(), &arguments);
    }
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_trains_the_same_bytes() {
    let room = room();
    same_rows(room.path());
    let cluster = crate::support::cluster::Cluster::start(2, &[]);
    assert_a_cluster_trains_the_same_bytes(room.path(), &VARIANTS, "weighted-many", &cluster.url());
}

#[test]
fn all_commands_take_nets() {
    let room = room();
    same_rows(room.path());
    train(room.path(), "--preset lambdarank-net --data many --valid vali --model m --set num_trees=5");
    let json = described(room.path(), "m");
    let part = &json["parts"][0]; // one of the 14 features is constant
    assert_eq!((part["kind"].as_str(), part["normalise_features"].as_str()), (Some("net"), Some("query")));
    assert_eq!((part["rows"].as_u64(), json["rounds"].as_u64()), (Some(10 * 14 + 11), Some(5)));
    assert_eq!((part["activation"].as_str(), part["layers"].to_string().as_str()), (Some("tanh"), "[10,1]"));
    let text = run(room.path(), "describe m").ok().stdout;
    for expected in
        ["rounds trained        5\n", "net: query", "13 features normalised by query -> 10 tanh -> 1"]
    {
        assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
    }
    let predicted = run(room.path(), "predict --model m --data vali --output p --parts").ok();
    assert!(predicted.stderr.contains("rows scored with 151 weights"), "{}", predicted.stderr);
    let table = table_of(&room.path().join("p"));
    let column =
        |name: &str| table.column_by_name(name).unwrap().as_primitive::<Float64Type>().values().to_vec();
    assert_eq!(column("part.net"), column("score"));
    run(room.path(), "--quiet evaluate --predictions p --metrics ndcg@10").ok();
    run(room.path(), "--quiet describe m --permutation vali").ok();

    // The model table, scores and explanations in SQL.
    let ask = |query: &str| sql_in(room.path(), "--format csv", query, &[]);
    let layers =
        ask("select tree, count(distinct node), count(*) from 'm' group by tree order by tree").ok().stdout;
    assert!(layers.ends_with("0,10,140\n1,1,11\n"), "{layers}");
    assert_sql_scores_and_explains(room.path());
    let refused = ask("select planetree_score('m', f1) from 'vali'");
    assert_refused(
        "planetree_score",
        &refused,
        1,
        &["part 0 (net)", "normalises features over the documents"],
    );
    for format in ["lightgbm", "json"] {
        let refused = run(room.path(), &format!("export m --format {format} --output exported"));
        assert_refused(format, &refused, 1, &["part 0 (net) has no trees"]);
    }

    // A blend of a net, a linear model and trees.
    train(room.path(), "--preset ranksvm --data many --model svm --set svm_c=1");
    train(room.path(), "--preset lambdamart --data many --model trees --set num_trees=5");
    run(room.path(), "--quiet blend m svm trees --data vali --normalise z --weights ols --output blended")
        .ok();
    let predicted = run(room.path(), "predict --model blended --data vali --output blended.parquet").ok();
    assert!(predicted.stderr.contains("5 trees and 165 weights"), "{}", predicted.stderr);
    run(room.path(), "--quiet cv --data many --preset listnet --set num_trees=3 --folds 3 --output folds")
        .ok();
    run(room.path(), "--quiet report . --output report.html").ok();
}

#[test]
fn a_net_is_a_stage_a_class_and_a_run() {
    let room = room();
    same_rows(room.path());
    let at = room.path();
    let plan = "[[stage]]\npreset = \"linear\"\n[[stage]]\npreset = \"ranknet-net\"\nobjective = \"squared\"\nnum_trees = 3\n";
    fs::write(at.join("stages.toml"), plan).unwrap();
    train(at, "--config stages.toml --data many --valid vali --model staged");
    assert_eq!(described(at, "staged")["parts"].as_array().map(Vec::len), Some(2));
    train(at, "--preset ranknet-net --set num_trees=2 --set runs=2 --data many --model averaged");
    assert_eq!(described(at, "averaged")["parts"].as_array().map(Vec::len), Some(2));
    let classes = "--preset ranknet-net --set objective=squared --set num_trees=2 --set target=ordinal";
    train(at, &format!("{classes} --data many --model classes"));
    for model in ["staged", "averaged", "classes"] {
        run(at, &format!("--quiet predict --model {model} --data vali --output p-{model}")).ok();
    }
}

#[test]
fn more_restarts_are_no_worse_on_the_validation_set() {
    let room = room();
    same_rows(room.path());
    let best = |restarts: u32| {
        let settings = format!("--set num_trees=6 --set early_stopping_rounds=50 --set restarts={restarts}");
        let files = "--data many --valid vali --model m --rounds rounds";
        train(room.path(), &format!("--preset ranknet-net {files} {settings}"));
        let log = rounds_of(&room.path().join("rounds"));
        course(&log, "valid", "ndcg@10").into_iter().fold(0.0, f64::max)
    };
    assert!(best(4) >= best(1));
}

#[test]
fn a_net_that_diverges_says_so_and_keeps_the_best_epoch() {
    let room = room();
    same_rows(room.path());
    let settings = "--set objective=squared --set optimiser=sgd --set hidden_layers=none --set metric=rmse";
    let slowly =
        "--set learning_rate=0.6 --set batch_queries=0 --set num_trees=400 --set normalise_features=z";
    let files = "--data many --valid vali --model m --rounds rounds";
    let ran = run(room.path(), &format!("train --preset ranknet-net {files} {settings} {slowly}")).ok();
    assert!(ran.stderr.contains("the net diverged in epoch"), "{}", ran.stderr);
    assert!(ran.stderr.contains("lower learning_rate"), "{}", ran.stderr);
    let log = course(&rounds_of(&room.path().join("rounds")), "valid", "rmse");
    let least = log.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(log.len() < 400 && least.is_finite(), "{log:?}");
    assert_eq!(log.last(), Some(&least));
    run(room.path(), "--quiet predict --model m --data vali --output p").ok();
    let at_once = "--set learning_rate=10 --set batch_queries=1 --set normalise_features=none";
    let ran =
        run(room.path(), &format!("train --preset ranknet-net --data many --model n {settings} {at_once}"));
    assert_refused(
        "diverging",
        &ran,
        ran.code,
        &["the net diverged in the first epoch", "lower learning_rate"],
    );
    assert!(ran.code != 0 && !room.path().join("n").exists());
}

#[test]
fn bad_input_is_refused() {
    let room = room();
    odd_datasets(room.path());
    for preset in ["ranknet-net", "lambdarank-net", "listnet"] {
        assert_trainings_refused(
            room.path(),
            &[
                (&format!("--preset {preset} --data same"), "every label is 2"),
                (&format!("--preset {preset} --data flat"), "no query has documents with different labels"),
            ],
        );
    }
    assert_trainings_refused(
        room.path(),
        &[
            ("--preset ranknet-net --data real --set learning_rate=0", "a number above 0, at most 10"),
            ("--preset ranknet-net --data real --set hidden_layers=0,3", "the sizes of at most 8 layers"),
            ("--preset ranknet-net --data real --set hidden_layers=5000", "the sizes of at most 8 layers"),
            ("--preset ranknet-net --data real --set restarts=0", "restarts"),
            ("--preset ranknet-net --data real --set activation=sine", "activation"),
            ("--preset ranknet-net --data real --set unbiased=true", "does not correct for position bias"),
            ("--preset ranknet-net --data real --set max_depth=3", "a net does not use max_depth"),
            (
                "--preset ranknet-net --data real --set objective=rankboost",
                "a net has no objective rankboost",
            ),
            ("--preset ranknet-net --data real --set target=ordinal", "set objective=squared"),
            ("--preset mart --data real --set hidden_layers=3", "boosting does not use hidden_layers"),
        ],
    );
    // Constant features are no inputs, and queries with a single document have no pairs.
    let alone = "1 qid:1 1:3 2:7\n0 qid:2 1:4 2:7\n2 qid:3 1:1 2:7\n";
    fs::write(room.path().join("alone.txt"), alone).unwrap();
    fs::write(room.path().join("mixed.txt"), format!("{alone}0 qid:4 1:1 2:7\n1 qid:4 1:2 2:7\n")).unwrap();
    for name in ["alone", "mixed"] {
        run(room.path(), &format!("convert {name}.txt --output {name}")).ok();
    }
    for preset in ["ranknet-net", "lambdarank-net", "listnet"] {
        let refused = run(room.path(), &format!("train --preset {preset} --data alone --model m"));
        assert_refused(preset, &refused, 1, &["no query has documents with different labels"]);
        train(room.path(), &format!("--preset {preset} --data mixed --model m --set num_trees=2"));
        assert_eq!(described(room.path(), "m")["features_used"], 1);
    }
}
