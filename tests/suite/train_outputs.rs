//! The training log agrees with the predictions of the model, and other tools read the same values from its files.

use crate::support::*;
use arrow::array::Array;
use std::fs;
use std::path::Path;

const KINDS: [&str; 5] = [
    "--preset planet",
    "--preset planet --set num_leaves=12 --set max_depth=-1 --set max_bin=31",
    "--preset pgbrt-grouped --set max_bin=25",
    "--preset pgbrt",
    "--preset gbrt",
];

/// Asserts that the errors of the model `m` on `data` and `vali` are those of the last round in the log.
fn assert_errors_as_logged(directory: &Path, context: &str) {
    let log = rounds_of(&directory.join("rounds"));
    let last = |split: &str, metric: &str| *course(&log, split, metric).last().unwrap();
    assert_close(rmse(&predict(directory, "m", "data")), last("train", "rmse"), 1e-9, context);
    let scored = predict(directory, "m", "vali");
    assert_close(rmse(&scored), last("valid", "rmse"), 1e-9, context);
    assert_close(ndcg(&scored), last("valid", "ndcg@10"), 1e-9, context);
}

#[test]
fn predictions_have_the_errors_that_the_trainer_logged() {
    let room = room();
    dataset(room.path(), "data", &graded(51, 60, 20), "--partition-rows 500");
    dataset(room.path(), "vali", &graded(52, 30, 20), "--partition-rows 170");
    for kind in KINDS {
        for missing in ["learned", "zero", "mean", "median", "one"] {
            let settings = format!("--set missing={missing} --set num_trees=12 --set learning_rate=0.3");
            let outputs = "--data data --valid vali --model m --rounds rounds";
            train(room.path(), &format!("{kind} {outputs} {settings}"));
            assert_errors_as_logged(room.path(), &format!("{kind}, missing {missing}"));
        }
    }
    if let Some(found) = reference(room.path(), "sql_rmse m-of-data") {
        let log = rounds_of(&room.path().join("rounds"));
        let last = *course(&log, "train", "rmse").last().unwrap();
        assert_close(found.parse().unwrap(), last, 1e-9, "the error computed in SQL");
    }
}

#[test]
fn predictions_of_real_data_have_the_errors_that_the_trainer_logged() {
    let Some(data) = shared("data/OHSUMED/Feature-null") else { return };
    let room = room();
    real_dataset(room.path(), "data", &data, "S[12]");
    real_dataset(room.path(), "vali", &data, "S3");
    for kind in KINDS {
        for missing in ["learned", "zero"] {
            let settings = format!("--set missing={missing} --set num_trees=10");
            train(
                room.path(),
                &format!("{kind} --data data --valid vali --model m --rounds rounds {settings}"),
            );
            assert_errors_as_logged(room.path(), &format!("{kind}, missing {missing}"));
        }
    }
}

#[test]
fn weights_count_in_the_error_and_in_every_leaf() {
    let room = room();
    // A row of weight 2 counts like two rows.
    let mut examples = untied(53, 700, 5);
    examples.iter_mut().enumerate().for_each(|(row, example)| example.weight = (row % 3) as f64);
    let repeated: Vec<&Example> =
        examples.iter().flat_map(|example| vec![example; example.weight as usize]).collect();
    weighted_dataset(room.path(), "weighted", &examples, "");
    let text: String = repeated.iter().map(|example| as_letor(std::slice::from_ref(*example))).collect();
    fs::write(room.path().join("repeated.txt"), text).unwrap();
    run(room.path(), "convert repeated.txt --output repeated").ok();
    // Leaves of one row, because minimum leaf sizes count rows, not weights; distinct values, so that bins agree.
    let settings = "--preset gbrt --set num_trees=15 --set learning_rate=0.2 --set max_depth=3";
    let course_of = |data: &str| {
        train(room.path(), &format!("{settings} --data {data} --model {data}.model --rounds rounds"));
        course(&rounds_of(&room.path().join("rounds")), "train", "rmse")
    };
    let (weighted, repeated) = (course_of("weighted"), course_of("repeated"));
    assert_eq!((weighted.len(), repeated.len()), (15, 15));
    for (weighted, repeated) in weighted.iter().zip(repeated) {
        assert_close(*weighted, repeated, 1e-6, "the weighted error");
    }
    let score = |model: &str| predict(room.path(), model, "repeated");
    let worst = score("weighted.model")
        .iter()
        .zip(score("repeated.model"))
        .map(|(one, other)| (one.score - other.score).abs())
        .fold(0.0, f64::max);
    assert!(worst < 1e-5, "{worst}");
}

#[test]
fn importance_computed_in_sql_is_that_of_describe() {
    let room = room();
    dataset(room.path(), "data", &graded(54, 60, 20), "");
    for kind in KINDS {
        train(room.path(), &format!("{kind} --data data --model m --set num_trees=10"));
        let Some(rows) = reference(room.path(), "importance m") else { return };
        let described = described(room.path(), "m");
        let importance = described["importance"].as_array().unwrap();
        assert!(!importance.is_empty(), "{kind}");
        assert_eq!(rows.lines().count(), importance.len(), "{kind}");
        for (row, feature) in rows.lines().zip(importance) {
            let fields: Vec<&str> = row.split(' ').collect();
            assert_eq!(feature["feature"], fields[0], "{kind}: {row}");
            for (name, field) in ["gain", "cover", "splits"].iter().zip(&fields[1..]) {
                let found: f64 = field.parse().unwrap();
                assert_close(feature[name].as_f64().unwrap(), found, 1e-9, &format!("{kind}: {row}"));
            }
        }
    }
}

#[test]
fn the_log_has_one_row_per_round_split_and_metric() {
    let room = room();
    dataset(room.path(), "data", &graded(55, 40, 20), "");
    dataset(room.path(), "vali", &graded(56, 20, 20), "");
    dataset(room.path(), "late", &graded(57, 20, 20), "");
    let sets = "--data data --valid vali --valid holdout=late";
    train(
        room.path(),
        &format!("{sets} --model m --rounds rounds --set num_trees=4 --set metric=err@5,ndcg,rmse"),
    );
    let table = table_of(&room.path().join("rounds"));
    let schema = table.schema();
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(columns, ["round", "split", "metric", "value", "seconds"]);
    assert!(table.columns().iter().all(|column| column.null_count() == 0));
    let keys: Vec<String> = rounds_of(&room.path().join("rounds"))
        .iter()
        .map(|row| format!("{} {} {}", row.round, row.split, row.metric))
        .collect();
    let expected: Vec<String> = (1..=4)
        .flat_map(|round| {
            [
                "train rmse",
                "vali err@5",
                "vali ndcg",
                "vali rmse",
                "holdout err@5",
                "holdout ndcg",
                "holdout rmse",
            ]
            .map(|key| format!("{round} {key}"))
        })
        .collect();
    assert_eq!(keys, expected);
}

#[test]
fn early_stopping_keeps_the_best_round() {
    let room = room();
    dataset(room.path(), "data", &graded(58, 25, 20), "");
    dataset(room.path(), "vali", &graded(59, 25, 20), "");
    dataset(room.path(), "late", &graded(60, 20, 20), "");
    for kind in KINDS {
        for metric in ["rmse", "ndcg@10"] {
            let settings = format!("--set num_trees=500 --set learning_rate=0.4 --set metric={metric},err");
            let sets = "--data data --valid vali --valid late --set early_stopping_rounds=7";
            let outputs = "--model m --rounds rounds --stats stats.json";
            let stderr = run(room.path(), &format!("train {kind} {sets} {outputs} {settings}")).ok().stderr;
            let values = course(&rounds_of(&room.path().join("rounds")), "vali", metric);
            let better = |one: f64, other: f64| if metric == "rmse" { one < other } else { one > other };
            let best = (0..values.len())
                .fold(0, |best, round| if better(values[round], values[best]) { round } else { best })
                + 1;
            assert_eq!(values.len(), best + 7, "{kind} {metric}: training stops seven rounds after the best");
            assert_eq!(trees_in(&room.path().join("m")), best, "{kind} {metric}");
            let note = format!("stopped early: the best round is {best} of {}", best + 7);
            assert!(stderr.contains(&note), "{stderr}");
            let stats = json_of(&room.path().join("stats.json"));
            assert_eq!(stats["best_round"].as_u64(), Some(best as u64));
            assert_eq!(stats["trees"].as_u64(), Some(best as u64));
            let metrics = stats["metrics"].as_array().unwrap();
            let of_vali =
                metrics.iter().find(|each| each["split"] == "vali" && each["metric"] == metric).unwrap();
            assert_eq!(of_vali["best"]["round"].as_u64(), Some(best as u64));
            assert_close(of_vali["best"]["value"].as_f64().unwrap(), values[best - 1], 1e-12, metric);
            assert_eq!(of_vali["last"]["round"].as_u64(), Some(best as u64 + 7));
            assert_close(of_vali["last"]["value"].as_f64().unwrap(), values[best + 6], 1e-12, metric);
            let scored = predict(room.path(), "m", "vali");
            let found = if metric == "rmse" { rmse(&scored) } else { ndcg(&scored) };
            assert_close(found, values[best - 1], 1e-9, &format!("{kind} {metric}"));
        }
    }
}

#[test]
fn training_continues_from_a_start_model() {
    let room = room();
    dataset(room.path(), "data", &graded(61, 60, 20), "");
    dataset(room.path(), "vali", &graded(62, 20, 20), "");
    for kind in KINDS {
        let common = format!("{kind} --data data --valid vali --set learning_rate=0.2 --rounds rounds");
        let log = || rounds_of(&room.path().join("rounds"));
        train(room.path(), &format!("{common} --model half --set num_trees=10"));
        let first = log();
        train(room.path(), &format!("{common} --model whole --set num_trees=20"));
        let whole = log();
        train(room.path(), &format!("{common} --model more --set num_trees=10 --start-model half"));
        let then = log();
        let (half, more) = (table_of(&room.path().join("half")), table_of(&room.path().join("more")));
        assert_eq!(trees_in(&room.path().join("more")), 20, "{kind}");
        assert!(more.slice(0, half.num_rows()) == half, "{kind}: the trees of the start model changed");
        for (split, metric) in [("train", "rmse"), ("valid", "rmse")] {
            let (before, after) = (course(&first, split, metric), course(&then, split, metric));
            assert_close(
                after[0],
                before[9],
                1e-9,
                &format!("{kind} {split} {metric}: the start model alone"),
            );
            let joined = [&before[..], &after[1..]].concat();
            assert_eq!(joined.len(), 20, "{kind} {split} {metric}");
            for (found, expected) in joined.iter().zip(course(&whole, split, metric)) {
                assert_close(*found, expected, 1e-9, &format!("{kind} {split} {metric}"));
            }
            assert!(split != "train" || joined.is_sorted_by(|one, next| one > next), "{kind}: {joined:?}");
        }
        for data in ["data", "vali"] {
            let (more, whole) = (predict(room.path(), "more", data), predict(room.path(), "whole", data));
            assert_eq!(more.len(), whole.len(), "{kind} {data}");
            for (one, other) in more.iter().zip(&whole) {
                assert!((one.score - other.score).abs() < 1e-9, "{kind} {data}");
            }
        }
    }
}

/// Rounds that only make it worse are dropped: the start model alone is round 0.
#[test]
fn early_stopping_may_keep_the_start_model_alone() {
    let room = room();
    let good = graded(63, 40, 20);
    let reversed: Vec<Example> =
        good.iter().map(|example| Example { label: 4.0 - example.label, ..example.clone() }).collect();
    dataset(room.path(), "good", &good, "");
    dataset(room.path(), "reversed", &reversed, "");
    train(room.path(), "--preset planet --data good --model start --set num_trees=20");
    let ran = run(
        room.path(),
        "train --preset planet --data reversed --valid good --start-model start --model kept --rounds rounds \
         --set num_trees=10 --set early_stopping_rounds=3 --set metric=rmse",
    )
    .ok();
    let note = "stopped early: none of 3 rounds is better than the start model";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    assert_eq!(trees_in(&room.path().join("kept")), 20);
    assert_eq!(table_of(&room.path().join("kept")), table_of(&room.path().join("start")));
    assert_eq!(rounds_of(&room.path().join("rounds")).iter().map(|entry| entry.round).max(), Some(3));
}

#[test]
fn a_start_model_keeps_its_treatment_of_missing_values() {
    let room = room();
    dataset(room.path(), "data", &graded(63, 60, 20), "");
    let mut shifted = graded(64, 60, 20);
    for value in shifted.iter_mut().flat_map(|example| example.features.iter_mut().flatten()) {
        *value += 2.5; // so that the means differ
    }
    dataset(room.path(), "other", &shifted, "");
    for (first, then) in [
        ("zero", "zero"),
        ("learned", "learned"),
        ("mean", "mean"),
        ("zero", "mean"),
        ("learned", "zero"),
        ("zero", "learned"),
    ] {
        for preset in ["planet", "pgbrt", "gbrt"] {
            let common = format!("--preset {preset} --set num_trees=6 --set learning_rate=0.5");
            train(room.path(), &format!("{common} --data data --model start --set missing={first}"));
            let arguments = format!(
                "--quiet train {common} --data other --valid data --model m --rounds rounds \
                 --start-model start --set missing={then}"
            );
            let ran = run(room.path(), &arguments);
            // A model has one replacement per feature: neither different means nor two treatments fit into it.
            if first != then || first == "mean" {
                assert_refused(&arguments, &ran, 2, &["the start model replaces missing values of f"]);
                continue;
            }
            ran.ok();
            let log = rounds_of(&room.path().join("rounds"));
            let context = format!("{preset}: missing {first}, then {then}");
            for (data, split) in [("other", "train"), ("data", "valid")] {
                let last = *course(&log, split, "rmse").last().unwrap();
                assert_close(rmse(&predict(room.path(), "m", data)), last, 1e-9, &context);
            }
        }
    }
}
