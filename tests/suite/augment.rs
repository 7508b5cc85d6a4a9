//! Datasets with scores as features and with samples of queries.

use crate::support::*;
use std::collections::HashMap;
use std::fs;

const QUICK: &str = "--set num_trees=6 --set min_data_in_leaf=5";

#[test]
fn scores_become_features() {
    let room = room();
    weighted_dataset(room.path(), "data", &graded(41, 40, 9), "--partition-rows 50");
    train(room.path(), &format!("--preset mart --data data {QUICK} --model mart.parquet"));
    train(room.path(), &format!("--preset rf-pair --data data {QUICK} --model pairs.parquet"));
    let options = "--data data --model mart.parquet p=pairs.parquet --output more --json";
    let ran = run(room.path(), &format!("--quiet augment {options}")).ok();
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["new_features"], serde_json::json!(["mart_score", "p_score"]));
    let (before, after) = (rows_of(&room.path().join("data")), rows_of(&room.path().join("more")));
    let scores = ["mart.parquet", "pairs.parquet"].map(|model| predict(room.path(), model, "data"));
    assert_eq!(before.len(), after.len());
    for (row, (before, after)) in before.iter().zip(&after).enumerate() {
        let width = before.features.len();
        assert_eq!((&before.query, before.label), (&after.query, after.label));
        assert_eq!(before.features, after.features[..width]);
        let expected: Vec<Option<f32>> = scores.iter().map(|scores| Some(scores[row].score as f32)).collect();
        assert_eq!(after.features[width..], expected);
    }
    // The same rows give the same dataset, whatever the number of threads and partitions.
    run(
        room.path(),
        "--quiet augment --data data --model mart.parquet p=pairs.parquet --output again --threads 1",
    )
    .ok();
    assert_same_files(&room.path().join("more"), &room.path().join("again"));
    weighted_dataset(room.path(), "whole", &graded(41, 40, 9), "");
    run(room.path(), "--quiet augment --data whole --model mart.parquet p=pairs.parquet --output whole-more")
        .ok();
    let fingerprint = |name: &str| described(room.path(), name)["fingerprint"].clone();
    assert_eq!(fingerprint("more"), fingerprint("whole-more"));
    assert_ne!(fingerprint("more"), fingerprint("data"));
    // The new feature is used like any other.
    train(room.path(), &format!("--preset lambdamart --data more {QUICK} --model second.parquet"));
    let importance = described(room.path(), "second.parquet")["importance"].clone();
    let used: Vec<&str> =
        importance.as_array().unwrap().iter().map(|feature| feature["feature"].as_str().unwrap()).collect();
    assert!(used.contains(&"mart_score"), "{used:?}");
    let ran = run(room.path(), "predict --model second.parquet --data data --output p").failed();
    assert!(ran.stderr.contains("mart_score"), "{}", ran.stderr);
}

#[test]
fn class_probabilities_become_features() {
    let room = room();
    dataset(room.path(), "data", &graded(43, 40, 9), "");
    train(room.path(), &format!("--preset sgbrt --data data {QUICK} --set target=ordinal --model o.parquet"));
    let columns = "--columns score,cumulative,classes";
    let ran = run(
        room.path(),
        &format!("--quiet augment --data data --model o.parquet {columns} --output more --json"),
    )
    .ok();
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let names: Vec<String> = serde_json::from_value(json["new_features"].clone()).unwrap();
    assert_eq!(names[..2], ["o_score", "o_cumulative_0"], "{names:?}");
    // The values are those of `predict --parts`, rounded to float32.
    run(room.path(), "--quiet predict --model o.parquet --data data --parts --output p.csv").ok();
    let text = fs::read_to_string(room.path().join("p.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let place = |name: &String| {
        let source = name.trim_start_matches("o_").replace('_', ".");
        header
            .iter()
            .position(|column| *column == source)
            .unwrap_or_else(|| panic!("no {source} in {header:?}"))
    };
    let places: Vec<usize> = names.iter().map(place).collect();
    let rows = rows_of(&room.path().join("more"));
    assert_eq!(rows.len(), text.lines().count() - 1);
    for (row, line) in rows.iter().zip(lines) {
        let expected: Vec<Option<f32>> =
            places.iter().map(|place| Some(line[*place].parse::<f64>().unwrap() as f32)).collect();
        assert_eq!(row.features[row.features.len() - names.len()..], expected);
    }
}

#[test]
fn samples_of_queries_follow_their_queries() {
    let room = room();
    dataset(room.path(), "data", &graded(42, 50, 10), "");
    run(room.path(), "--quiet augment --data data --documents 0.5 --seed 3 --output half").ok();
    let (before, after) = (rows_of(&room.path().join("data")), rows_of(&room.path().join("half")));
    let mut by_query: HashMap<&str, Vec<&DatasetRow>> = HashMap::new();
    before.iter().for_each(|row| by_query.entry(&row.query).or_default().push(row));
    let mut samples = 0;
    let mut originals = Vec::new();
    for query in after.chunk_by(|one, other| one.query == other.query) {
        match query[0].query.strip_suffix(":sample") {
            None => originals.extend(query.iter().cloned()),
            Some(name) => {
                assert_eq!((query.len(), originals.last().unwrap().query.as_str()), (5, name));
                let mut rest = by_query[name].iter();
                for row in query {
                    let same =
                        |other: &&&DatasetRow| (other.label, &other.features) == (row.label, &row.features);
                    assert!(rest.any(|other| same(&other)), "in order: {name}");
                }
                samples += 1;
            }
        }
    }
    assert!(originals == before && samples == 50);
    run(room.path(), "--quiet augment --data data --documents 0.5 --seed 4 --output other").ok();
    assert!(rows_of(&room.path().join("other")) != after, "another seed draws other documents");
    dataset(room.path(), "pieces", &graded(42, 50, 10), "--partition-rows 30");
    run(
        room.path(),
        "--quiet augment --data pieces --documents 0.5 --seed 3 --output half-pieces --threads 3",
    )
    .ok();
    assert!(rows_of(&room.path().join("half-pieces")) == after);
    train(room.path(), &format!("--preset lambdamart --data half {QUICK} --model m"));
    let ran = run(room.path(), "augment --data half --documents 0.5 --output twice").failed();
    assert!(ran.stderr.contains("is a sample already"), "{}", ran.stderr);
}

#[test]
fn bad_input_is_refused() {
    let room = room();
    dataset(room.path(), "data", &graded(43, 12, 8), "");
    train(room.path(), &format!("--preset mart --data data {QUICK} --model mart"));
    run(room.path(), "--quiet augment --data data --model mart --output more").ok();
    fs::write(room.path().join("theirs"), "mine").unwrap();
    for (arguments, code, texts) in [
        ("--data data", 2, &["--model"][..]),
        (
            "--data data --model mart --columns classes",
            2,
            &["--columns classes: mart has no class probabilities"],
        ),
        ("--data data --model mart --columns cumulative", 2, &["--columns cumulative"]),
        ("--data data --model mart --columns score,score", 2, &["--columns lists score twice"]),
        ("--data data --documents 0", 2, &["--documents 0: expected a share above 0"]),
        ("--data data --documents 1.5", 2, &["at most 1"]),
        ("--data more --model mart", 1, &["there is already a feature mart_score", "NAME=FILE"]),
        ("--data data --model a=mart a=mart", 2, &["two models have the column a_score"]),
        ("--data nowhere --model mart", 1, &["nowhere"]),
        ("--data data --model nowhere", 1, &["nowhere"]),
    ] {
        let ran = run(room.path(), &format!("augment {arguments} --output out"));
        assert_refused(arguments, &ran, code, texts);
        assert!(!room.path().join("out").exists(), "{arguments}: left something behind");
    }
    let ran = run(room.path(), "augment --data data --model mart --output data --overwrite");
    assert_refused("the output is the input", &ran, 2, &["data is both the input and the output"]);
    let ran = run(room.path(), "augment --data data --model mart --output ./data --overwrite");
    assert_refused("another spelling", &ran, 2, &["./data is both the input and the output"]);
    let ran = run(room.path(), "augment --data data --model mart --output more").failed();
    assert!(ran.stderr.contains("--overwrite"), "{}", ran.stderr);
    run(room.path(), "--quiet augment --data data --model mart --output more --overwrite").ok();
    assert!(
        run(room.path(), "augment --data data --model mart --output theirs")
            .failed()
            .stderr
            .contains("theirs")
    );
}
