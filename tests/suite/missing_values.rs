//! Missing values: which side of a split they go to, and zeros that mean missing.

use crate::support::*;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Float32Type;
use std::fs;

/// Examples with a number in place of missing values.
fn with_fill(examples: &[Example], fill: f32) -> Vec<Example> {
    let filled = |example: &Example| Example {
        features: example.features.iter().map(|value| Some(value.unwrap_or(fill))).collect(),
        ..example.clone()
    };
    examples.iter().map(filled).collect()
}

#[test]
fn low_and_high_are_below_and_above_all_values() {
    let room = room();
    let examples = graded(71, 20, 10); // so few rows that every value has a bin
    dataset(room.path(), "data", &examples, "--partition-rows 60");
    dataset(room.path(), "low", &with_fill(&examples, -1e9), "");
    dataset(room.path(), "high", &with_fill(&examples, 1e9), "");
    let quick = "--set num_trees=8 --set min_data_in_leaf=2";
    for learner in [
        "--preset mart --set candidates=static",
        "--preset mart --set candidates=exact",
        "--preset gbrt --set max_depth=4",
        "--preset rf --set features_per_node=all",
        "--preset rf --set features_per_node=all --set candidates=exact",
    ] {
        let scores = |data: &str, missing: &str| {
            train(room.path(), &format!("{learner} {quick} --set missing={missing} --data {data} --model m"));
            predict(room.path(), "m", data).iter().map(|row| row.score).collect::<Vec<f64>>()
        };
        for side in ["low", "high"] {
            assert_eq!(scores("data", side), scores(side, "zero"), "{learner}, missing={side}");
        }
        assert_ne!(scores("data", "low"), scores("data", "high"), "{learner}");
    }
}

#[test]
fn every_split_sends_missing_values_to_the_side_of_the_policy() {
    let room = room();
    dataset(room.path(), "data", &graded(72, 40, 12), "");
    let presets = ["mart", "pgbrt", "pgbrt-grouped", "rf-point", "rf-rand", "rf-list", "rf-pair"];
    for (preset, side) in presets.iter().flat_map(|preset| [(preset, "left"), (preset, "right")]) {
        let missing = if side == "left" { "low" } else { "high" };
        let settings = format!("--preset {preset} --set missing={missing} --set num_trees=4");
        train(room.path(), &format!("{settings} --data data --model m.parquet"));
        let table = table_of(&room.path().join("m.parquet"));
        let sides = table.column_by_name("missing").unwrap().as_string::<i32>();
        let thresholds = table.column_by_name("threshold").unwrap().as_primitive::<Float32Type>();
        let splits: Vec<usize> = (0..table.num_rows()).filter(|row| sides.is_valid(*row)).collect();
        assert!(splits.len() > 4, "{preset}");
        for row in splits {
            // A split at the largest number separates missing values from all others.
            let apart = thresholds.value(row) == f32::MAX;
            assert!(sides.value(row) == side || apart, "{preset}, missing={missing}, node {row}");
        }
        let scores = predict(room.path(), "m.parquet", "data");
        assert!(scores.iter().any(|row| row.score != scores[0].score), "{preset}");
    }
}

#[test]
fn bytes_depend_only_on_rows_and_parameters() {
    let variants = [
        "--preset mart --set missing=low",
        "--preset pgbrt --set missing=high --set workers=3",
        "--preset rf-point --set missing=low",
        "--preset rf-list --set missing=high --set max_depth=4",
    ];
    assert_same_forests(&variants, &[("many", 2), ("few", 4)]);
}

#[test]
fn linear_models_need_a_number() {
    let room = room();
    dataset(room.path(), "data", &graded(73, 10, 5), "");
    assert_trainings_refused(
        room.path(),
        &[(
            "--preset linear --data data --set missing=low",
            "missing=low, missing=high and missing=branch are for trees",
        )],
    );
}

#[test]
fn zeros_become_missing() {
    let room = room();
    let text = "2 qid:1 1:0 2:0.5 3:-0\n0 qid:1 1:1 2:0 3:2\n1 qid:2 1:0.0 2:7\n";
    fs::write(room.path().join("t.txt"), text).unwrap();
    let values = |options: &str| -> Vec<Vec<Option<f32>>> {
        run(room.path(), &format!("convert t.txt --output d --overwrite {options}")).ok();
        rows_of(&room.path().join("d")).into_iter().map(|row| row.features).collect()
    };
    let all = [vec![None, Some(0.5), None], vec![Some(1.0), None, Some(2.0)], vec![None, Some(7.0), None]];
    for options in ["", "--threads 1", "--sort-queries"] {
        assert_eq!(values(&format!("--zero-as-missing {options}")), all);
    }
    let second = [
        vec![Some(0.0), Some(0.5), Some(0.0)],
        vec![Some(1.0), None, Some(2.0)],
        vec![Some(0.0), Some(7.0), None],
    ];
    assert_eq!(values("--zero-as-missing=f2"), second);
    assert_eq!(values("--zero-as-missing=f1,f2,f3"), all);
    assert_ne!(values(""), all);
    // The codes of categories start at 0, which is not a missing value.
    let table = "query_id,label,site,clicks\n1,0,a,0\n1,1,b,3\n2,1,a,0\n2,0,,1\n";
    fs::write(room.path().join("t.csv"), table).unwrap();
    run(room.path(), "convert t.csv --zero-as-missing --output c").ok();
    let features: Vec<Vec<Option<f32>>> =
        rows_of(&room.path().join("c")).into_iter().map(|row| row.features).collect();
    let expected =
        [vec![Some(0.0), None], vec![Some(1.0), Some(3.0)], vec![Some(0.0), None], vec![None, Some(1.0)]];
    assert_eq!(features, expected);
    run(room.path(), "convert c --zero-as-missing --output again").ok();
    let again: Vec<Vec<Option<f32>>> =
        rows_of(&room.path().join("again")).into_iter().map(|row| row.features).collect();
    assert_eq!(again, expected, "a dataset with categories");
    for (options, message) in [
        ("t.txt --zero-as-missing=f4", "--zero-as-missing f4: there is no such feature"),
        ("t.txt --zero-as-missing=clicks", "the features of a text without names are f1, f2"),
        ("t.csv --zero-as-missing=click", "did you mean clicks?"),
        ("t.csv --zero-as-missing=site", "the feature is categorical"),
    ] {
        let ran = run(room.path(), &format!("convert {options} --output refused"));
        assert_refused(options, &ran, 2, &[message]);
        assert!(!room.path().join("refused").exists());
    }
}

#[cfg(feature = "cluster")]
#[test]
fn clusters_train_the_same_models() {
    let room = room();
    dataset(room.path(), "data", &graded(74, 60, 12), "--partition-rows 100");
    for settings in [
        "--preset mart --set missing=low",
        "--preset pgbrt --set workers=3 --set missing=high",
        "--preset rf-point --set missing=low",
    ] {
        let bytes = |options: &str| {
            trained_bytes(room.path(), &format!("{settings} --set num_trees=4 --data data {options}"))
        };
        assert!(bytes("") == bytes("--cluster local:2"), "{settings}");
    }
}
