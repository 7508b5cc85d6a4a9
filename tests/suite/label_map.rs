//! Labels that are replaced in training, in evaluation and in cross-validation.

use crate::support::*;
use serde_json::Value;
use std::fs;

const QUICK: &str = "--set num_trees=8 --set min_data_in_leaf=5";
const MAP: &str = "0,1,2=0;3,4=1";

/// Examples with grades, and the same ones with the labels of [`MAP`].
fn both(seed: u64, queries: usize) -> [Vec<Example>; 2] {
    let grades = graded(seed, queries, 9);
    let binary = grades
        .iter()
        .map(|example| Example { label: f64::from(u8::from(example.label > 2.0)), ..example.clone() })
        .collect();
    [grades, binary]
}

#[test]
fn training_on_mapped_labels_is_training_on_a_mapped_dataset() {
    let room = room();
    let [grades, binary] = both(51, 60);
    let [more, more_binary] = both(52, 30);
    for (name, examples) in
        [("grades", &grades), ("binary", &binary), ("v", &more), ("v-binary", &more_binary)]
    {
        dataset(room.path(), name, examples, "--partition-rows 100");
    }
    for preset in ["mart", "lambdamart", "rf-point", "rf-list"] {
        let rounds = |name: &str| rounds_of(&room.path().join(name));
        let options = format!("--preset {preset} {QUICK} --set metric=ndcg@10,map");
        train(
            room.path(),
            &format!("{options} --data grades --valid v --set label_map={MAP} --rounds r1 --model m1"),
        );
        train(room.path(), &format!("{options} --data binary --valid v-binary --rounds r2 --model m2"));
        assert_eq!(
            predict(room.path(), "m1", "v-binary"),
            predict(room.path(), "m2", "v-binary"),
            "{preset}"
        );
        let values = |name: &str| rounds(name).iter().map(|row| row.value).collect::<Vec<f64>>();
        assert_eq!(values("r1"), values("r2"), "{preset}: metrics are those of the new labels");
    }
    let configuration = described(room.path(), "m1")["configuration"].as_str().unwrap().to_owned();
    assert!(configuration.contains(&format!("label_map = \"{MAP}\"")), "{configuration}");
    let configuration = described(room.path(), "m2")["configuration"].as_str().unwrap().to_owned();
    assert!(!configuration.contains("label_map"), "{configuration}");
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_maps_labels() {
    let room = room();
    dataset(room.path(), "data", &graded(53, 60, 9), "--partition-rows 100");
    for preset in ["lambdamart", "planet", "rf-point"] {
        let options = format!("--preset {preset} {QUICK} --data data --set label_map={MAP}");
        let here = trained_bytes(room.path(), &options);
        assert!(here == trained_bytes(room.path(), &format!("{options} --cluster local:2")), "{preset}");
    }
}

#[test]
fn evaluation_maps_labels() {
    let room = room();
    let [grades, binary] = both(54, 40);
    dataset(room.path(), "grades", &grades, "");
    dataset(room.path(), "binary", &binary, "");
    train(room.path(), &format!("--preset mart {QUICK} --data grades --model m"));
    train(room.path(), &format!("--preset lambdamart {QUICK} --data grades --model n"));
    for (model, data) in [("m", "grades"), ("m", "binary"), ("n", "grades")] {
        predict(room.path(), model, data);
    }
    let metrics = "--metrics ndcg@10,map,p@5,rmse,auc";
    let evaluated = |options: &str| -> Value {
        let ran = run(room.path(), &format!("evaluate {options} {metrics} --json")).ok();
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let mapped = evaluated(&format!("--predictions x=m-of-grades --label-map {MAP} --output mapped"));
    let expected = evaluated("--predictions x=m-of-binary --output plain");
    assert_eq!(mapped["systems"][0]["metrics"], expected["systems"][0]["metrics"]);
    assert_eq!((&mapped["label_map"], &expected["label_map"]), (&MAP.into(), &Value::Null));
    // Labels of a dataset and of text predictions are mapped, too.
    run(room.path(), "predict --model m --data grades --output p.csv --scores s.txt").ok();
    for ranking in ["--predictions x=p.csv", "--scores x=s.txt --data grades"] {
        let other = evaluated(&format!("{ranking} --label-map {MAP}"));
        assert_eq!(other["systems"][0]["metrics"], expected["systems"][0]["metrics"], "{ranking}");
    }
    assert_eq!(described(room.path(), "mapped")["label_map"], MAP);
    // Comparisons use one map.
    let compared = |options: &str| -> Value {
        let ran = run(room.path(), &format!("compare {options} --json")).ok();
        serde_json::from_str(&ran.stdout).unwrap()
    };
    evaluated(&format!("--predictions n-of-grades --label-map {MAP} --output mapped-n"));
    let by_tables = compared("mapped mapped-n");
    for options in ["mapped n-of-grades", &format!("m-of-grades n-of-grades --label-map {MAP}")] {
        let other = compared(options);
        assert_eq!(
            (&other["label_map"], &other["pairs"][0]["p"]),
            (&MAP.into(), &by_tables["pairs"][0]["p"])
        );
    }
    for (arguments, code, texts) in [
        ("compare mapped plain", 1, &["label maps differ: 0,1,2=0;3,4=1 and none"][..]),
        ("compare plain n-of-grades --label-map 0=0", 1, &["label maps differ: 0=0 and none"]),
        ("compare m-of-grades n-of-grades --label-map 0=0;1=1", 1, &["has the label", "does not list"]),
        (
            "evaluate --predictions m-of-grades --label-map 0,1,2=0",
            1,
            &["which label_map 0,1,2=0 does not list"],
        ),
        ("evaluate --predictions m-of-grades --label-map 0,0=1", 2, &["label 0 is listed twice"]),
        ("evaluate --predictions m-of-grades --label-map x", 2, &["is not of the form"]),
        ("train --data grades --set label_map=0,1=0 --model no", 1, &["which label_map 0,1=0 does not list"]),
        ("train --data grades --set label_map=0,1 --model no", 2, &["--set label_map=0,1"]),
        ("train --data grades --set label_map=0,1,2,3,4=1 --model no", 1, &["every label is 1"]),
    ] {
        assert_refused(arguments, &run(room.path(), arguments), code, texts);
    }
    assert!(!room.path().join("no").exists());
}

#[test]
fn cross_validation_maps_labels_of_all_parts() {
    let room = room();
    let [grades, binary] = both(55, 45);
    dataset(room.path(), "grades", &grades, "");
    dataset(room.path(), "binary", &binary, "");
    let options = format!("--folds 3 {QUICK} --metrics ndcg@10,map");
    let values = |data: &str, extra: &str, output: &str| -> Value {
        let ran =
            run(room.path(), &format!("--quiet cv --data {data} {options} {extra} --output {output} --json"));
        serde_json::from_str::<Value>(&ran.ok().stdout).unwrap()["folds"].clone()
    };
    let mapped = values("grades", &format!("--set label_map={MAP}"), "mapped");
    let expected = values("binary", "", "plain");
    for (one, other) in mapped.as_array().unwrap().iter().zip(expected.as_array().unwrap()) {
        assert_eq!(
            (&one["test"], &one["valid"], &one["trees"]),
            (&other["test"], &other["valid"], &other["trees"])
        );
    }
    assert_eq!(described(room.path(), "mapped/metrics.parquet")["label_map"], MAP);
    assert!(fs::read(room.path().join("mapped/predictions.parquet")).is_ok());
}
