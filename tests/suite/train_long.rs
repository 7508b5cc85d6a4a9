//! Long trainings, for `make test-all`.

use crate::support::*;
use std::fs;

#[test]
#[ignore = "trains on sixteen folds: make test-all"]
fn test_ndcg_is_near_that_of_lightgbm() {
    let Some(data) = shared("data") else { return };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for set in ["MQ2008", "MQ2007-85pct", "OHSUMED/QueryLevelNorm", "MSLR-sample"] {
        let room = room();
        let (mut our_sum, mut their_sum) = (0.0, 0.0);
        for fold in 0..4u32 {
            // As in LETOR: test on one part, leave out the one before it (for validation), train on the rest.
            let rest: String = (0..4)
                .filter(|part| ![fold, (fold + 3) % 4].contains(part))
                .map(|p| (p + 1).to_string())
                .collect();
            let (train_set, test_set) = (format!("train{fold}"), format!("test{fold}"));
            real_dataset(room.path(), &train_set, &data.join(set), &format!("S[{rest}]"));
            real_dataset(room.path(), &test_set, &data.join(set), &format!("S{}", fold + 1));
            let settings = ["num_trees=100", "learning_rate=0.1", "max_depth=5", "min_data_in_leaf=20"];
            let set_each: String = settings.iter().map(|setting| format!(" --set {setting}")).collect();
            train(room.path(), &format!("--data {train_set} --model m{set_each}"));
            predict(room.path(), "m", &test_set);
            let check = format!(
                "test_ndcg {train_set} {test_set} m-of-{test_set} {} num_leaves=32 max_bin=255",
                settings.join(" ")
            );
            let Some(found) = reference(room.path(), &check) else { return };
            let values: Vec<f64> = found.split(' ').map(|value| value.parse().unwrap()).collect();
            our_sum += values[0] / 4.0;
            their_sum += values[1] / 4.0;
        }
        eprintln!("{set}: NDCG@10 {our_sum:.4}, LightGBM {their_sum:.4}");
        ours.push(our_sum);
        theirs.push(their_sum);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (our_mean, their_mean) = (mean(&ours), mean(&theirs));
    eprintln!("mean: NDCG@10 {our_mean:.4}, LightGBM {their_mean:.4}");
    assert!((our_mean - their_mean).abs() < 0.005, "{our_mean}, LightGBM {their_mean}");
}

#[test]
#[ignore = "kills sixty trainings: make test-all"]
fn a_training_killed_at_twenty_moments_ends_in_the_same_bytes() {
    let room = room();
    run(room.path(), "sample --shape mslr --rows 60000 --output text").ok();
    run(room.path(), "convert text/train.txt --output data --partition-rows 5000").ok();
    run(room.path(), "convert text/vali.txt --output vali").ok();
    for arguments in [
        "--data data --set num_trees=100 --set bagging_fraction=0.7",
        "--preset pgbrt --data data --valid vali --set num_trees=20 --set max_bin=20",
        "--data data --valid vali --set num_trees=500 --set learning_rate=0.3 --set early_stopping_rounds=10",
    ] {
        let resumed = killed_and_resumed(room.path(), arguments, 20);
        assert!(resumed >= 5, "{arguments}: {resumed} runs resumed from a checkpoint");
        assert_eq!(names_in(room.path()), ["data", "text", "vali"], "{arguments}");
    }
}

#[test]
#[ignore = "trains on 900,000 rows: make test-all"]
fn a_training_from_disk_stays_within_its_memory_limit_and_has_the_same_bytes() {
    let room = room();
    run(room.path(), "sample --shape letor --rows 1500000 --output text").ok();
    run(room.path(), "convert text/train.txt --output data").ok();
    fs::remove_dir_all(room.path().join("text")).unwrap();
    let arguments = "--data data --set num_trees=5";
    train(room.path(), &format!("{arguments} --model whole"));
    let limit = least_memory(room.path(), arguments);
    fs::remove_dir_all(room.path().join("data.bins")).unwrap();
    for number in 0..2 {
        let (stderr, peak) =
            peak_of(room.path(), &format!("--quiet train {arguments} --model m --memory-limit {limit}MiB"));
        eprintln!("run {number}: {peak} MiB of {limit} MiB {stderr}");
        assert!(room.path().join("data.bins").exists(), "{stderr}");
        assert_same_bytes(room.path(), "m", "whole", &format!("run {number}"));
        assert!(peak <= limit, "{peak} MiB used, {limit} MiB allowed");
    }
}

#[test]
#[ignore = "streams 36,000 wide rows: make test-all"]
fn streaming_is_as_good_with_more_workers_on_more_data() {
    let room = room();
    run(room.path(), "sample --shape yahoo --rows 60000 --seed 9 --output text").ok();
    run(room.path(), "convert text/vali.txt --output vali").ok();
    run(room.path(), "convert text/train.txt --output data --partition-rows 1000").ok();
    let mut errors = Vec::new();
    for workers in [1, 4, 32] {
        for bins in [20, 50, 100] {
            let settings = format!("--set max_bin={bins} --set workers={workers} --set num_trees=60");
            let outputs = "--data data --valid vali --model m --rounds rounds";
            train(room.path(), &format!("--preset pgbrt {outputs} {settings}"));
            let log = rounds_of(&room.path().join("rounds"));
            let last = |metric: &str| *course(&log, "valid", metric).last().unwrap();
            let (rmse, ndcg) = (last("rmse"), last("ndcg@10"));
            eprintln!("{workers} workers, {bins} bins: rmse {rmse:.5} ndcg@10 {ndcg:.5}");
            errors.push((rmse, ndcg));
        }
    }
    for (rmse, ndcg) in &errors {
        assert_close(*rmse, errors[0].0, 0.01, "rmse");
        assert!((ndcg - errors[0].1).abs() < 0.005, "ndcg@10 {ndcg}, {} with one worker", errors[0].1);
    }
}
