//! Missing values filled by forests.

use crate::support::*;
use std::fs;
use std::path::Path;

/// Features 2 and 3 follow from features 1 and 4, which all rows have; the last one is noise.
fn complete(seed: u64, rows: usize) -> Vec<Example> {
    let mut examples = untied(seed, rows, 3);
    for example in &mut examples {
        let value = |feature: usize| example.features[feature].unwrap();
        let (one, four, noise) = (value(0), value(1), value(2));
        example.features = vec![Some(one), Some(one * one), Some(one - four), Some(four), Some(noise)];
    }
    examples
}

/// Removes features 2, 3 and 5 of some rows.
fn masked(examples: &[Example]) -> Vec<Example> {
    let mut masked = examples.to_vec();
    for (row, example) in masked.iter_mut().enumerate() {
        for (feature, every) in [(1, 5), (2, 4), (4, 3)] {
            if row % every == 0 {
                example.features[feature] = None;
            }
        }
    }
    masked
}

fn filled(directory: &Path, options: &str, output: &str) -> serde_json::Value {
    let ran = run(directory, &format!("--quiet impute {options} --output {output} --json")).ok();
    serde_json::from_str(&ran.stdout).unwrap()
}

/// The root mean square distance of filled values from the true ones, and that of their mean.
fn errors(rows: &[DatasetRow], truth: &[Example], masked: &[Example], feature: usize) -> (f64, f64) {
    let cells =
        || rows.iter().zip(truth).zip(masked).filter(move |(_, masked)| masked.features[feature].is_none());
    let pairs: Vec<(f64, f64)> = cells()
        .map(|((row, truth), _)| {
            (row.features[feature].unwrap().into(), truth.features[feature].unwrap().into())
        })
        .collect();
    let mean = pairs.iter().map(|(_, truth)| truth).sum::<f64>() / pairs.len() as f64;
    let rms = |distance: &dyn Fn(&(f64, f64)) -> f64| {
        (pairs.iter().map(|pair| distance(pair).powi(2)).sum::<f64>() / pairs.len() as f64).sqrt()
    };
    (rms(&|(filled, truth)| filled - truth), rms(&|(_, truth)| truth - mean))
}

#[test]
fn filled_values_are_near_the_true_ones() {
    let room = room();
    let truth = complete(91, 600);
    let data = masked(&truth);
    dataset(room.path(), "data", &data, "--partition-rows 90");
    let json = filled(room.path(), "--data data --filled filled.parquet", "out");
    let rows = rows_of(&room.path().join("out"));
    for (row, example) in rows.iter().zip(&data) {
        for (feature, (after, before)) in row.features.iter().zip(&example.features).enumerate() {
            assert!(after.is_some(), "feature {feature} is filled");
            assert!(before.is_none() || after == before, "values that were there stay");
        }
    }
    for (feature, share) in [(1, 0.15), (2, 0.3)] {
        let (error, spread) = errors(&rows, &truth, &data, feature);
        assert!(error < share * spread, "feature {feature}: {error} of {spread}");
    }
    // The out-of-bag error tells how sure a value is: noise cannot be predicted.
    let features = json["features"].as_array().unwrap();
    let of = |place: usize, key: &str| features[place][key].as_f64().unwrap();
    assert_eq!([0, 1, 2].map(|place| features[place]["feature"].as_str().unwrap()), ["f2", "f3", "f5"]);
    assert_eq!([0, 1, 2].map(|place| of(place, "missing")), [120.0, 150.0, 200.0]);
    assert!(of(0, "r2") > 0.95 && of(1, "r2") > 0.9 && of(2, "r2") < 0.2, "{features:?}");
    for (place, feature) in [(0, 1), (1, 2)] {
        let (error, _) = errors(&rows, &truth, &data, feature);
        assert!((0.5..2.0).contains(&(of(place, "error") / error)), "{error} {features:?}");
    }
    let described = described(room.path(), "filled.parquet");
    assert_eq!(described["values"], 470);
    // Threads and partitions change nothing.
    filled(room.path(), "--data data --threads 1", "again");
    assert_same_files(&room.path().join("out"), &room.path().join("again"));
    dataset(room.path(), "whole", &data, "");
    let other = filled(room.path(), "--data whole", "whole-out");
    assert_eq!(other["fingerprint"], json["fingerprint"]);
}

#[test]
fn test_data_are_filled_by_forests_of_the_training_data() {
    let room = room();
    let (train, truth) = (complete(92, 500), complete(93, 200));
    let mut test = masked(&truth);
    // So few rows have feature 2 that nothing can be learned from them.
    test.iter_mut().for_each(|example| example.features[1] = None);
    test[0].features[1] = truth[0].features[1];
    dataset(room.path(), "train", &masked(&train), "");
    dataset(room.path(), "test", &test, "");
    filled(room.path(), "--data test --like train", "like");
    filled(room.path(), "--data test", "alone");
    let error =
        |name: &str, feature: usize| errors(&rows_of(&room.path().join(name)), &truth, &test, feature);
    for feature in [1, 2] {
        let (error, spread) = error("like", feature);
        assert!(error < 0.3 * spread, "feature {feature}: {error} of {spread}");
    }
    assert!(error("alone", 1).0 > 3.0 * error("like", 1).0);
    // A feature that only the test data lack is filled, too.
    dataset(room.path(), "complete", &train, "");
    let json = filled(room.path(), "--data test --like complete", "other");
    assert_eq!(json["features"].as_array().unwrap().len(), 3);
    assert!(rows_of(&room.path().join("other")).iter().all(|row| row.features.iter().all(Option::is_some)));
}

#[test]
fn odd_data_and_options() {
    let room = room();
    let truth = complete(94, 60);
    let mut empty = masked(&truth);
    empty.iter_mut().for_each(|example| example.features[2] = None);
    dataset(room.path(), "empty", &empty, "");
    dataset(room.path(), "data", &masked(&truth), "");
    dataset(room.path(), "complete", &truth, "");
    for (arguments, code, message) in [
        ("--data empty --output o", 1, "feature f3 has no value in any row"),
        ("--data data --like empty --output o", 1, "empty: feature f3 has no value in any row"),
        ("--data data --output data", 2, "both the input and the output"),
        ("--data data --like complete --output complete", 2, "both the input and the output"),
        ("--data data --tolerance -1 --output o", 2, "error: "),
        ("--data data --tolerance nan --output o", 2, "expected a number from 0"),
        ("--data data --set ensemble=boost --output o", 2, "error: "),
        (
            "--data data --set bootstrap=false --output o",
            2,
            "set bootstrap=true, or a bagging_fraction below 1",
        ),
    ] {
        let arguments = format!("impute {arguments}");
        assert_refused(&arguments, &run(room.path(), &arguments), code, &[message]);
        assert!(!room.path().join("o").exists(), "{arguments}");
    }
    // An output that exists is found before the first sweep.
    let exists = "--log info impute --data data --output complete";
    let ran = run(room.path(), exists);
    assert_refused(exists, &ran, 1, &["complete: output already exists"]);
    assert!(!ran.stderr.contains("sweep"), "{}", ran.stderr);
    // A feature with too few values for a split is filled with its mean.
    let mut rare = masked(&truth);
    rare.iter_mut().enumerate().for_each(|(row, example)| {
        example.features[2] = (row < 2).then_some(row as f32);
    });
    dataset(room.path(), "rare", &rare, "");
    filled(room.path(), "--data rare", "rare-filled");
    assert_eq!(rows_of(&room.path().join("rare-filled"))[5].features[2], Some(0.5));
    // One tree that sees all four rows of a feature says nothing about its error.
    let mut few = masked(&truth);
    few.iter_mut().enumerate().for_each(|(row, example)| {
        example.features[2] = (row < 4).then_some(row as f32);
    });
    dataset(room.path(), "few", &few, "");
    let whole = "--set num_trees=1 --set bagging_fraction=0.9 --set bootstrap=false --set min_data_in_leaf=1";
    let json =
        filled(room.path(), &format!("--data few {whole} --sweeps 1 --filled few.parquet"), "few-filled");
    let unknown =
        json["features"].as_array().unwrap().iter().find(|feature| feature["feature"] == "f3").unwrap();
    assert!(unknown["error"].is_null() && unknown["r2"].is_null(), "{unknown}");
    assert!(run(room.path(), "describe few.parquet").ok().stdout.contains("f3"));
    // Nothing is missing: the rows are the same.
    let json = filled(room.path(), "--data complete", "same");
    assert_eq!((json["sweeps"].as_u64(), json["features"].as_array().unwrap().len()), (Some(0), 0));
    assert!(rows_of(&room.path().join("same")) == rows_of(&room.path().join("complete")));
    // Every feature has missing values: the first is filled with its mean, the next ones from those before.
    let text: String = (0..90)
        .map(|row| {
            let value = |feature: usize| {
                if row % 9 == feature { String::new() } else { format!(" {}:{}", feature + 1, row % 10) }
            };
            format!("{} qid:{}{}{}{}\n", row % 3, row / 10, value(0), value(1), value(2))
        })
        .collect();
    fs::write(room.path().join("t.txt"), text).unwrap();
    run(room.path(), "convert t.txt --output all").ok();
    filled(room.path(), "--data all --sweeps 4", "all-filled");
    assert!(
        rows_of(&room.path().join("all-filled")).iter().all(|row| row.features.iter().all(Option::is_some))
    );
    // Categorical features and constant ones.
    let table: String = (0..60)
        .map(|row| {
            let site = if row % 7 == 0 { "" } else { ["a", "b"][row % 2] };
            let constant = if row % 5 == 0 { "" } else { "3" };
            format!("{},{},{site},{constant},{row}\n", row / 10, row % 2)
        })
        .collect();
    fs::write(room.path().join("t.csv"), format!("query_id,label,site,constant,row\n{table}")).unwrap();
    run(room.path(), "convert t.csv --output words").ok();
    let ran = run(room.path(), "impute --data words --output words-filled").ok();
    assert!(ran.stderr.contains("categorical features keep their missing values"), "{}", ran.stderr);
    for (row, after) in rows_of(&room.path().join("words-filled")).iter().enumerate() {
        assert_eq!((after.features[0].is_none(), after.features[1]), (row % 7 == 0, Some(3.0)));
    }
}

#[test]
fn masked_values_are_filled_about_as_well_as_by_scikit_learn() {
    let Some(folder) = shared("data/OHSUMED/Feature-null") else { return };
    let room = room();
    real_dataset(room.path(), "data", &folder, "S1");
    let Some(masked) = reference_script(room.path(), "impute.py", "mask data masked.csv truth.npz") else {
        return;
    };
    run(room.path(), "convert masked.csv --output masked").ok();
    filled(room.path(), "--data masked", "out");
    let Some(found) = reference_script(room.path(), "impute.py", "compare masked out truth.npz") else {
        return;
    };
    eprintln!("{masked}; {found}");
}

#[test]
fn steps_of_a_pipeline_replace_their_datasets() {
    let room = room();
    fs::write(room.path().join("t.txt"), as_letor(&masked(&complete(95, 200)))).unwrap();
    fs::write(
        room.path().join("p.toml"),
        r#"
[pipeline]
name = "p"
[parameters]
trees = 3
[step.data]
kind = "convert"
input = "t.txt"
zero_as_missing = ["f1"]
[step.filled]
kind = "impute"
data = "data"
filled = "filled.csv"
set = { num_trees = "{trees}" }
[step.alike]
kind = "select"
source = "data"
like = "filled"
share = [50]
set = { num_trees = "{trees}" }
[step.model]
kind = "train"
data = "alike/top-50"
set = { num_trees = "{trees}" }
[step.more]
kind = "augment"
data = "data"
model = "model"
"#,
    )
    .unwrap();
    let fingerprints = |trees: u32| {
        run(room.path(), &format!("--quiet run p.toml --set trees={trees}")).ok();
        ["filled", "more"]
            .map(|name| described(room.path(), &format!("runs/p/{name}"))["fingerprint"].clone())
    };
    let first = fingerprints(3);
    let second = fingerprints(4);
    assert!(first[0] != second[0] && first[1] != second[1]);
    assert_eq!(fingerprints(3), first);
}
