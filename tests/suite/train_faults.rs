//! A training that cannot work ends in one message with the problem and a remedy, and leaves no files.

use crate::support::*;
use arrow::array::{ArrayRef, Float32Array, RecordBatch};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Asserts that a command fails with an exit code and messages, prints no result and leaves no files.
fn refused(directory: &Path, arguments: &str, code: i32, messages: &[&str]) {
    let before = names_in(directory);
    let ran = run(directory, arguments);
    assert_refused(arguments, &ran, code, messages);
    assert_refused(arguments, &ran, code, &["error: ", "\n  help: "]);
    assert_eq!(ran.stdout, "", "{arguments}");
    assert_eq!(names_in(directory), before, "{arguments}: files were left behind");
}

fn text_dataset(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join("text"), text).unwrap();
    run(directory, &format!("convert text --output {name}")).ok();
    fs::remove_file(directory.join("text")).unwrap();
}

#[test]
fn invalid_parameters_are_usage_errors() {
    let room = room();
    dataset(room.path(), "data", &graded(41, 10, 10), "");
    for (options, messages) in [
        (
            "--set learning_rat=0.1",
            &["unknown parameter \"learning_rat\"", "did you mean learning_rate?"][..],
        ),
        ("--set max_dept=3", &["unknown parameter \"max_dept\"", "max_depth"]),
        ("--set xyzzy=3", &["unknown parameter \"xyzzy\"", "--help"]),
        ("--set num_trees", &["--set num_trees", "key=value"]),
        ("--set num_trees=many", &["num_trees=many"]),
        ("--set num_trees=0", &["num_trees=0"]),
        ("--set num_trees=-5", &["num_trees=-5"]),
        ("--set learning_rate=0", &["learning_rate=0"]),
        ("--set learning_rate=nan", &["learning_rate=nan"]),
        ("--set lambda_l2=-1", &["lambda_l2=-1"]),
        ("--set bagging_fraction=1.5", &["bagging_fraction=1.5"]),
        ("--set max_bin=256", &["max_bin=256", "2 to 255"]),
        ("--set max_bin=1", &["max_bin=1"]),
        ("--set missing=guess", &["missing=guess"]),
        ("--set candidates=statik", &["candidates=statik", "static"]),
        ("--set objective=lambdarnak", &["objective=lambdarnak", "lambdarank"]),
        ("--set objective=squared --set sigma=2", &["sigma=2", "objective squared does not use sigma"]),
        ("--preset lambdamart --set lambda_metric=rmse", &["rmse does not depend on the ranking"]),
        ("--preset lambdamart --set label_gain=0,x", &["label_gain"]),
        ("--preset lambdamart --set convention=lightgmb", &["lightgbm"]),
        ("--set max_depth=0", &["a tree needs a limit"]),
        ("--set num_trees=5 --set n_estimators=6", &["set twice", "num_trees"]),
        ("--set query_fraction=0.5 --set bagging_fraction=0.7", &["conflicts with bagging_fraction"]),
        ("--preset gbrt --set max_bin=255", &["exact candidates do not use bins"]),
        ("--preset planet --set value_groups=100", &["value_groups=100", "candidates=streaming"]),
        ("--preset pgbrt --set value_groups=1", &["value_groups=1"]),
        ("--preset planet --set workers=4", &["workers=4", "candidates=streaming"]),
        ("--preset plane", &["unknown preset \"plane\"", "planet"]),
        ("--set early_stopping_rounds=5", &["early_stopping_rounds = 5", "--valid"]),
        ("--set metric=ncdg@10", &["ncdg@10", "ndcg"]),
        ("--set metric=ndcg@0", &["ndcg@0"]),
        ("--valid train=data", &["two datasets are called \"train\""]),
        ("--valid a=data --valid a=data", &["two datasets are called \"a\""]),
    ] {
        refused(room.path(), &format!("train --data data --model m {options}"), 2, messages);
    }
    fs::write(room.path().join("p.toml"), "num_trees = 5\nlearning_rat = 0.1\n").unwrap();
    let messages = ["p.toml:2", "unknown parameter \"learning_rat\"", "did you mean learning_rate?"];
    refused(room.path(), "train --data data --model m --config p.toml", 2, &messages);
}

#[test]
fn data_without_anything_to_learn_are_refused() {
    let room = room();
    let rows = |label: &dyn Fn(usize) -> String, value: &dyn Fn(usize) -> String| -> String {
        (0..60).map(|row| format!("{} qid:{} 1:{} 2:7\n", label(row), row / 6, value(row))).collect()
    };
    let graded = |row: usize| (row % 3).to_string();
    let counted = |row: usize| row.to_string();
    text_dataset(room.path(), "same-labels", &rows(&|_| "2".to_owned(), &counted));
    text_dataset(room.path(), "same-values", &rows(&graded, &|_| "4".to_owned()));
    text_dataset(room.path(), "unlabelled", &rows(&|row| (row as i64 % 3 - 1).to_string(), &counted));
    text_dataset(room.path(), "small", &rows(&graded, &counted));
    text_dataset(room.path(), "one-row", "1 qid:1 1:1\n");
    for preset in ["planet", "pgbrt", "gbrt"] {
        for (data, options, messages) in [
            ("same-labels", "", &["same-labels: every label is 2: there is nothing to learn"][..]),
            ("same-values", "", &["same-values: all features are constant"]),
            ("unlabelled", "", &["unlabelled: 20 of 60 rows have no label"]),
            ("small", "--set min_data_in_leaf=31", &["there are 60 rows", "min_data_in_leaf = 31"]),
            ("small", "--set min_gain=1e9", &["no split was possible", "min_gain = 1000000000"]),
            ("one-row", "", &["one-row: "]),
            ("nowhere", "", &["nowhere"]),
        ] {
            let command = format!("train --preset {preset} --data {data} --model m --rounds r {options}");
            refused(room.path(), &command, 1, messages);
        }
        let command = format!("train --preset {preset} --data small --valid unlabelled --model m");
        refused(room.path(), &command, 1, &["unlabelled: 20 of 60 rows have no label"]);
    }
}

#[test]
fn rows_without_any_weight_are_refused() {
    let room = room();
    let row = |row: usize| format!("{},{},{},0\n", row / 6, row % 3, row);
    let text: String = (0..60).map(row).collect();
    fs::write(room.path().join("in.csv"), format!("query_id,label,f,w\n{text}")).unwrap();
    run(room.path(), "convert in.csv --weight-column w --output data").ok();
    for preset in ["planet", "gbrt", "rf", "rf-point"] {
        let command = format!("train --preset {preset} --data data --model m");
        refused(room.path(), &command, 1, &["data: ", "the weights of all rows are 0"]);
    }
}

#[test]
fn a_feature_missing_from_the_other_data_is_named() {
    let room = room();
    let csv = |names: &str, width: usize| -> String {
        let row = |row: usize| {
            let values: Vec<String> =
                (0..width).map(|place| format!("{}", (row * 7 + place * 5) % 11)).collect();
            format!("{},{},{}\n", row / 5, row % 3, values.join(","))
        };
        format!("query_id,label,{names}\n{}", (0..100).map(row).collect::<String>())
    };
    for (name, names, width) in
        [("data", "title,body,age", 3), ("lacking", "title,age", 2), ("more", "age,extra,title,body", 4)]
    {
        fs::write(room.path().join("in.csv"), csv(names, width)).unwrap();
        run(room.path(), &format!("convert in.csv --output {name}")).ok();
    }
    refused(room.path(), "train --data data --valid lacking --model m", 1, &["lacking: ", "body"]);
    train(room.path(), "--data data --valid more --model m --set num_trees=3");
    refused(room.path(), "predict --model m --data lacking --output p", 1, &["lacking: ", "body"]);
    let start = "train --data lacking --start-model m --model n";
    refused(room.path(), start, 1, &["lacking: ", "body"]);
    // Features are matched by name: the order does not matter, and neither do additional columns.
    assert_eq!(predict(room.path(), "m", "more").len(), 100);
    let start = "train --data more --start-model m --model n --set num_trees=2";
    let note = "the start model does not have 1 feature of the data, which are not used: extra";
    let ran = run(room.path(), start).ok();
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let ran = run(room.path(), &start.replace("more", "data")).ok();
    assert!(!ran.stderr.contains("not used"), "{}", ran.stderr);
    // In numbered data, an absent feature is one that no row has.
    for (name, width) in [("wide", 3), ("narrow", 2)] {
        let mut examples = graded(44, 10, 10);
        examples.iter_mut().for_each(|example| example.features.truncate(width));
        dataset(room.path(), name, &examples, "");
    }
    train(room.path(), "--data wide --model m --set num_trees=3");
    let ran = run(room.path(), &start.replace("more", "narrow")).ok();
    let note = "narrow: 1 feature is not in the data and treated as missing: f3";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
}

#[test]
fn a_file_that_is_not_a_model_is_refused() {
    let room = room();
    dataset(room.path(), "data", &graded(42, 10, 10), "");
    train(room.path(), "--data data --model good --rounds rounds --set num_trees=3");
    run(room.path(), "predict --model good --data data --output predictions").ok();
    let good = fs::read(room.path().join("good")).unwrap();
    let place = |name: &str| room.path().join(name);
    let column: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0]));
    let batch = RecordBatch::try_from_iter([("threshold", column)]).unwrap();
    let file = fs::File::create(place("foreign")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    fs::write(place("text"), "tree\n").unwrap();
    fs::write(place("empty"), "").unwrap();
    fs::write(place("short"), &good[..good.len() - 9]).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 4;
    fs::write(place("flipped"), flipped).unwrap();
    for (name, problem) in [
        ("foreign", "not a planetree model"),
        ("text", "not a planetree model: it is not a Parquet file"),
        ("empty", "not a planetree model"),
        ("short", ""),
        ("flipped", "damaged"),
        ("data", "not a planetree model: it is a directory"),
        ("rounds", "this is a training log, not a model"),
        ("predictions", "this is predictions, not a model"),
        ("nowhere", ""),
    ] {
        let messages = [&*format!("error: {name}: "), problem];
        refused(
            room.path(),
            &format!("predict --model {name} --data data --output p --scores s"),
            1,
            &messages,
        );
        let arguments = format!("train --data data --start-model {name} --model m --rounds r");
        refused(room.path(), &arguments, 1, &messages);
    }
}

#[test]
fn files_that_planetree_did_not_write_are_refused_before_the_first_round_and_kept() {
    let room = room();
    dataset(room.path(), "data", &graded(43, 10, 10), "");
    fs::write(room.path().join("notes"), "mine").unwrap();
    fs::create_dir(room.path().join("folder")).unwrap();
    let ran = run(room.path(), "train --data data --model m --set num_trees=2").ok();
    assert!(ran.stderr.contains("[1] "), "a round is reported: {}", ran.stderr);
    fs::remove_file(room.path().join("m")).unwrap();
    for arguments in [
        "--model notes",
        "--model folder",
        "--model m --rounds notes",
        "--model m --rounds folder",
        "--model m --checkpoint notes --checkpoint-every 1",
    ] {
        let arguments = format!("train --data data {arguments} --set num_trees=2");
        refused(room.path(), &arguments, 1, &[]);
        assert_eq!(fs::read_to_string(room.path().join("notes")).unwrap(), "mine");
        let stderr = run(room.path(), &arguments).failed().stderr;
        assert!(!stderr.contains("[1] "), "{arguments}: trained before the refusal\n{stderr}");
    }
}

#[test]
fn a_memory_limit_that_is_too_small_is_refused_with_the_memory_needed() {
    let room = room();
    dataset(room.path(), "data", &graded(44, 100, 20), "--partition-rows 500");
    for preset in ["planet", "pgbrt", "gbrt"] {
        let arguments = format!("--preset {preset} --data data --set num_trees=3");
        let messages = ["--memory-limit 8.0 MiB is too small", "needs about", "MiB", "raise --memory-limit"];
        refused(room.path(), &format!("train {arguments} --model m --memory-limit 8MiB"), 2, &messages);
        // The memory that the message asks for is enough.
        let enough = wanted_memory(room.path(), &arguments, 8).unwrap();
        let (stderr, peak) =
            peak_of(room.path(), &format!("train {arguments} --model m --memory-limit {enough}MiB"));
        assert!(room.path().join("m").exists(), "{preset}: {stderr}");
        assert!(peak <= enough, "{preset}: {peak} MiB used, {enough} MiB allowed");
        fs::remove_file(room.path().join("m")).unwrap();
        let _ = fs::remove_dir_all(room.path().join("data.bins")); // exists if the limit required it
    }
}

#[test]
fn queries_of_one_document_and_of_a_hundred_thousand_train() {
    let room = room();
    let single: Vec<Example> = graded(45, 300, 1);
    dataset(room.path(), "single", &single, "");
    dataset(room.path(), "huge", &graded(46, 1, 100_000), "");
    for preset in ["planet", "pgbrt", "gbrt"] {
        for data in ["single", "huge"] {
            let outputs = "--model m --rounds rounds";
            let settings = "--set num_trees=3 --set query_fraction=0.9 --set max_depth=3";
            train(
                room.path(),
                &format!("--preset {preset} --data {data} --valid {data} {outputs} {settings}"),
            );
            let log = rounds_of(&room.path().join("rounds"));
            let error = course(&log, "train", "rmse");
            assert!(error[2] < error[0], "{preset} {data}: {error:?}");
            let scored = predict(room.path(), "m", data);
            let last = course(&log, "valid", "ndcg@10")[2];
            assert!((ndcg(&scored) - last).abs() < 1e-9, "{preset} {data}");
        }
    }
}
