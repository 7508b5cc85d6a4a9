//! Rows that resemble those of another dataset.

use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

const QUICK: &str = "--set num_trees=30";

/// Adds a number to the first features.
fn moved(mut examples: Vec<Example>, by: f32) -> Vec<Example> {
    for example in &mut examples {
        example.features[..3].iter_mut().flatten().for_each(|value| *value += by);
    }
    examples
}

/// A source of which queries 0 to 9 of 50 are drawn like those of `like`.
fn datasets(directory: &Path) {
    let mut source = moved(graded(81, 10, 12), 6.0);
    source.extend(graded(82, 50, 12).into_iter().filter(|example| example.query >= 10));
    dataset(directory, "source", &source, "--partition-rows 100");
    dataset(directory, "whole", &source, "");
    dataset(directory, "like", &moved(graded(83, 30, 8), 6.0), "");
}

#[test]
fn the_rows_that_are_most_alike_are_selected() {
    let room = room();
    datasets(room.path());
    let options = format!("--source source --like like --share 5,15,100 {QUICK}");
    let ran = run(room.path(), &format!("--quiet select {options} --output out --json")).ok();
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let names: Vec<&str> = json["datasets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|dataset| dataset["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["like", "top-5", "top-15", "top-100"]);
    // 600 rows, of which 120 are drawn like the others.
    let source = rows_of(&room.path().join("source"));
    let ours: HashSet<String> = (0..10).map(|query| query.to_string()).collect();
    let is_like = |row: &DatasetRow| ours.contains(row.query.trim_end_matches(":source"));
    for (name, rows) in [("top-5", 30), ("top-15", 90), ("top-100", 600)] {
        let selected = rows_of(&room.path().join("out").join(name));
        assert_eq!(selected.len(), rows, "{name}");
        let right = selected.iter().filter(|row| is_like(row)).count();
        assert!(right as f64 >= 0.95 * rows.min(120) as f64, "{name}: {right} of {rows}");
        // Rows keep their labels, features and order.
        let mut rest = source.iter();
        for row in &selected {
            let same = |other: &&DatasetRow| (other.label, &other.features) == (row.label, &row.features);
            assert!(rest.any(|other| same(&other)), "{name}: {row:?}");
        }
    }
    // Both datasets have queries 0 to 29, so these get other names.
    train(room.path(), "--preset mart --set num_trees=3 --data out/like --data out/top-15 --model m");
    // The selection follows from the table of likeness.
    let table = table_of(&room.path().join("out/likeness.parquet"));
    let likeness = table.column_by_name("likeness").unwrap().as_primitive::<Float64Type>();
    let ranks = table.column_by_name("rank").unwrap().as_primitive::<Int64Type>();
    let mut order: Vec<usize> = (0..table.num_rows()).collect();
    order.sort_by(|one, other| likeness.value(*other).total_cmp(&likeness.value(*one)));
    assert!(order.iter().zip(1..).all(|(row, rank)| ranks.value(*row) == rank));
    let mut best: Vec<usize> = order[..30].to_vec();
    best.sort_unstable();
    let selected = rows_of(&room.path().join("out/top-5"));
    assert!(best.iter().zip(&selected).all(|(row, selected)| source[*row].features == selected.features));
    // Queries are in one fold each, and folds have about equally many of them.
    let folds = table.column_by_name("fold").unwrap().as_primitive::<Int32Type>();
    let mut fold_of: BTreeMap<&str, i32> = BTreeMap::new();
    for (row, fold) in source.iter().zip(folds.values()) {
        assert_eq!(*fold_of.entry(&row.query).or_insert(*fold), *fold);
    }
    assert!((1..=5).all(|fold| fold_of.values().filter(|other| **other == fold).count() == 10));
    assert_eq!(described(room.path(), "out/likeness.parquet")["rows"], 600);
    // Threads and partitions change nothing.
    run(room.path(), &format!("--quiet select {options} --output again --threads 1")).ok();
    run(
        room.path(),
        &format!("--quiet select {} --output whole-out", options.replace("source source", "source whole")),
    )
    .ok();
    for name in ["like", "top-5", "top-15", "top-100"] {
        assert_same_files(&room.path().join("out").join(name), &room.path().join("again").join(name));
        let fingerprint =
            |output: &str| described(room.path(), &format!("{output}/{name}"))["fingerprint"].clone();
        assert_eq!(fingerprint("out"), fingerprint("whole-out"));
    }
    assert_same_bytes(room.path(), "out/likeness.parquet", "again/likeness.parquet", "likeness");
}

#[test]
fn density_ratios_become_weights() {
    let room = room();
    datasets(room.path());
    run(
        room.path(),
        &format!("--quiet select --source source --like like --as-weights {QUICK} --output out"),
    )
    .ok();
    let table = |name: &str| {
        let files = names_in(&room.path().join("out").join(name));
        let file = files.into_iter().find(|file| file.ends_with(".parquet")).unwrap();
        table_of(&room.path().join("out").join(name).join(file))
    };
    let weights = table("weighted");
    let weights = weights.column_by_name("weight").unwrap().as_primitive::<arrow::datatypes::Float32Type>();
    let mean = |rows: std::ops::Range<usize>| {
        rows.clone().map(|row| f64::from(weights.value(row))).sum::<f64>() / rows.len() as f64
    };
    assert_eq!(weights.len(), 600);
    assert_close(mean(0..600), 1.0, 1e-5, "the mean weight");
    assert!(mean(0..120) > 3.0 && mean(120..600) < 0.3, "{} {}", mean(0..120), mean(120..600));
    assert!(table("like").column_by_name("weight").is_some());
    train(room.path(), "--preset mart --set num_trees=3 --data out/like --data out/weighted --model m");
}

#[test]
fn only_common_features_are_used() {
    let room = room();
    std::fs::write(room.path().join("a.csv"), csv("a,b,c", 7)).unwrap();
    std::fs::write(room.path().join("b.csv"), csv("c,a,d", 8)).unwrap();
    std::fs::write(room.path().join("x.csv"), csv("x,y,z", 9)).unwrap();
    for name in ["a", "b", "x"] {
        run(room.path(), &format!("convert {name}.csv --output {name}")).ok();
    }
    let ran = run(room.path(), &format!("select --source a --like b --share 50 {QUICK} --output out")).ok();
    assert!(ran.stderr.contains("1 of 3 features are only in a"), "{}", ran.stderr);
    let features = |name: &str| {
        let described = described(room.path(), name);
        let features = described["features"].as_array().unwrap().clone();
        features.iter().map(|feature| feature["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (features("out/top-50"), features("out/like")),
        (vec!["a".into(), "c".into()], vec!["a".into(), "c".into()])
    );
    // Training and conversion can be restricted to them, too.
    let quick = "--preset mart --set num_trees=3 --set min_data_in_leaf=2";
    train(room.path(), &format!("{quick} --data a --data out/like --common-features --model m.parquet"));
    let model = described(room.path(), "m.parquet");
    let used: HashSet<&str> =
        model["importance"].as_array().unwrap().iter().map(|f| f["feature"].as_str().unwrap()).collect();
    assert!(used.is_subset(&HashSet::from(["a", "c"])), "{used:?}");
    run(room.path(), "convert b --common-features a --output b2").ok();
    assert_eq!(features("b2"), ["c", "a"]);
    for (arguments, code, message) in [
        (format!("select --source a --like x --share 1 {QUICK} --output o"), 1, "no common feature"),
        (
            format!("{} --data a --data x --common-features --model o", "train --preset mart"),
            1,
            "no common feature",
        ),
        (
            "train --preset mart --data a --data b --model o".to_owned(),
            1,
            "pass --common-features to use only the features that all datasets have",
        ),
        ("convert a --common-features x --output o".to_owned(), 2, "no common feature"),
        ("convert a.csv b.csv - --common-features x --output o".to_owned(), 2, "standard input"),
        (format!("select --source a --like b --share 0 {QUICK} --output o"), 2, "above 0 and at most 100"),
        (format!("select --source a --like b --share 101 {QUICK} --output o"), 2, "above 0 and at most 100"),
        (
            format!("select --source a --like b --share 0.1 {QUICK} --output o"),
            2,
            "--share 0.1 selects nothing",
        ),
        (format!("select --source a --like b --share 5,5 {QUICK} --output o"), 2, "lists 5 twice"),
        (format!("select --source a --like b --share 50 {QUICK} --output out"), 1, "exists already"),
        (
            format!("select --source out/like --like b --share 50 {QUICK} --output out --overwrite"),
            2,
            "both an input and an output",
        ),
        (format!("select --source a --like b --share 50 --folds 500 {QUICK} --output o"), 2, "500 folds"),
        ("select --source a --like b --share 5 --set ensemble=boost --output o".to_owned(), 2, "error: "),
        ("select --source a --like b --output o".to_owned(), 2, "--share"),
    ] {
        assert_refused(&arguments, &run(room.path(), &arguments), code, &[message]);
        assert!(!room.path().join("o").exists(), "{arguments}");
    }
    // Datasets of an earlier selection that this one does not replace are removed; others stay.
    let select = format!("select --source a --like b {QUICK} --output out --overwrite");
    run(room.path(), &format!("{select} --share 20,50 --as-weights")).ok();
    run(room.path(), "convert a.csv --output out/top-mine").ok();
    let refused = run(
        room.path(),
        &format!("select --source out/top-20 --like b --share 50 {QUICK} --output out --overwrite"),
    );
    assert_refused("an older dataset", &refused, 2, &["top-20 is both an input and an output"]);
    run(room.path(), &format!("{select} --share 50")).ok();
    for (name, stays) in
        [("like", true), ("top-50", true), ("top-mine", true), ("top-20", false), ("weighted", false)]
    {
        assert_eq!(room.path().join("out").join(name).exists(), stays, "{name}");
    }
}

/// A table of 200 rows in 20 queries.
fn csv(features: &str, seed: usize) -> String {
    let value = |row: usize, feature: usize| (row * (feature + seed) * 37 % 101) as f64 / 10.0;
    let row = |row: usize| {
        let values: Vec<String> = (0..3).map(|feature| value(row, feature).to_string()).collect();
        format!("{},{},{}\n", seed * 1000 + row / 10, row % 3, values.join(","))
    };
    format!("query_id,label,{features}\n{}", (0..200).map(row).collect::<String>())
}
