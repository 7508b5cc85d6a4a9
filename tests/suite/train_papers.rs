//! Presets that follow their papers, and the parameters that distinguish them: the same bytes on any number of threads
//! and partitions, models at the best round of each metric, and clear errors.

use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use std::path::Path;

/// Every score of splits and value of leaves, with few and many features per node.
const BOOSTED: [&str; 6] = [
    "--preset lambdamart-paper",
    "--preset ranknet",
    "--preset ranknet --set leaf=mean --set learning_rate=0.01 --set min_data_to_split=60",
    "--preset lambdamart --set split_by=gradient --set max_depth=4 --set num_leaves=0",
    "--preset lambdamart --set leaf=mean --set candidates=exact --set missing=learned",
    "--preset mart --set features_per_node=0.3 --set min_data_to_split=80",
];

#[test]
fn neither_threads_nor_partitions_change_a_boosted_model() {
    let room = room();
    same_rows(room.path());
    for variant in BOOSTED {
        for kind in ["", "weighted-"] {
            let with = |data: &str, threads: u32| {
                let arguments = format!("{variant} --data {kind}{data} --threads {threads}");
                trained_bytes(room.path(), &format!("--set num_trees=6 {arguments}"))
            };
            let expected = with("one", 1);
            assert!(table_of(&room.path().join("m")).num_rows() > 20, "{variant}: trees without splits");
            for (data, threads) in [("one", 4), ("many", 2), ("few", 1)] {
                assert!(with(data, threads) == expected, "{variant} {kind}{data}, {threads} threads");
            }
        }
    }
}

/// Every option of forests that a paper has and the defaults do not.
const FORESTS: [&str; 7] = [
    "--preset rf-rand --set redraw_features=true",
    "--preset rf-point --set redraw_features=true --set leaf_score=square",
    "--preset rf-point --set max_bin=0 --set leaf_score=exp2 --set min_data_to_split=20",
    "--preset rf-list --set leaf_order=depth --set queries_per_node=0.4",
    "--preset rf-list --set max_bin=0 --set leaf_score=square",
    "--preset rf-list --set listwise_metric=err --set max_depth=4",
    "--preset rf-hybrid --set listwise_metric=map --set listwise_levels=2 --set min_data_to_split=10",
];

#[test]
fn neither_threads_nor_partitions_change_a_forest() {
    assert_same_forests(&FORESTS, &[("one", 4), ("many", 2), ("few", 1)]);
}

/// Leaves per tree, and the base score.
fn shape(directory: &Path, arguments: &str) -> (usize, f64) {
    train(directory, &format!("{arguments} --data data --set num_trees=1 --model m"));
    let model = described(directory, "m");
    let base = model["parts"][0]["base_score"].as_f64().unwrap();
    let table = table_of(&directory.join("m"));
    let leaves = table.column_by_name("left").unwrap().null_count();
    (leaves, base)
}

#[test]
fn gbrt_starts_at_zero_with_trees_of_eight_leaves_and_mart_at_the_mean() {
    let room = room();
    let examples = untied(81, 900, 6);
    dataset(room.path(), "data", &examples, "");
    assert_eq!(shape(room.path(), "--preset gbrt"), (8, 0.0));
    let (leaves, base) = shape(room.path(), "--preset mart");
    let mean = examples.iter().map(|example| example.label).sum::<f64>() / examples.len() as f64;
    assert_eq!(leaves, 7);
    assert_close(base, mean, 1e-6, "the mean label");
    // A preset's base score is not in the way of a start model.
    train(room.path(), "--preset gbrt --data data --set num_trees=2 --start-model m --model n");
    assert_eq!(trees_in(&room.path().join("n")), 3);
}

#[test]
fn for_the_squared_error_both_scores_of_splits_are_the_same() {
    let room = room();
    same_rows(room.path());
    for data in ["one", "weighted-one"] {
        let [newton, gradient] = ["newton --set leaf=newton", "gradient --set leaf=mean"].map(|steps| {
            train(
                room.path(),
                &format!("--preset planet --data {data} --set num_trees=5 --set split_by={steps} --model m"),
            );
            table_of(&room.path().join("m"))
        });
        assert_eq!(newton, gradient, "{data}");
    }
}

/// All nodes have at least as many rows as a split needs; leaves may have fewer.
#[test]
fn nodes_below_the_minimum_are_not_split() {
    let room = room();
    dataset(room.path(), "data", &graded(82, 60, 20), "");
    for preset in ["planet", "rf-point", "rf-list", "rf-hybrid"] {
        train(
            room.path(),
            &format!(
                "--preset {preset} --data data --set min_rows=100 --set min_data=1 --set num_trees=3 --model m"
            ),
        );
        let table = table_of(&room.path().join("m"));
        let cover = table.column_by_name("cover").unwrap().as_primitive::<Float64Type>().clone();
        let left = table.column_by_name("left").unwrap().clone();
        let (mut split, mut small_leaves) = (0, 0);
        for row in 0..table.num_rows() {
            if left.is_valid(row) {
                assert!(cover.value(row) >= 100.0, "{preset}: a node of {} rows is split", cover.value(row));
                split += 1;
            } else {
                small_leaves += usize::from(cover.value(row) < 50.0);
            }
        }
        assert!(split > 3 && small_leaves > 0, "{preset}: {split} splits, {small_leaves} small leaves");
    }
}

/// The number of features sampled for a node is a share of all features, constant ones included, as in forests.
#[test]
fn a_fraction_of_features_is_one_of_all_features() {
    let room = room();
    let mut examples = untied(83, 600, 4);
    for example in &mut examples {
        example.features.extend([Some(1.0); 4]); // constant
    }
    dataset(room.path(), "data", &examples, "");
    let nodes = |features: &str| {
        train(
            room.path(),
            &format!(
                "--preset planet --data data --set num_trees=5 --set features_per_node={features} --model m"
            ),
        );
        table_of(&room.path().join("m"))
    };
    assert_eq!(nodes("0.5"), nodes("4"), "half of 8 features are 4, of which none is constant");
    assert_eq!(nodes("0.25"), nodes("2"));
}

#[test]
fn every_metric_gets_the_model_of_its_best_round() {
    let room = room();
    dataset(room.path(), "data", &graded(84, 40, 15), "");
    dataset(room.path(), "vali", &graded(85, 15, 15), "");
    dataset(room.path(), "other", &graded(86, 15, 15), "");
    for (preset, more) in [
        ("lambdamart --set learning_rate=0.5", ""),
        ("planet --set learning_rate=0.5", "--set early_stopping_rounds=4"),
        ("rf-point", ""),
    ] {
        let common = format!("--preset {preset} --data data --set metric=ndcg@10");
        let outputs =
            "--model m --rounds r --model-for err=of-err --model-for ndcg@10=of-ndcg --model-for p@3=of-p";
        train(
            room.path(),
            &format!("{common} --valid vali=vali --valid other=other --set num_trees=25 {more} {outputs}"),
        );
        let log = rounds_of(&room.path().join("r"));
        for (metric, file) in [("err", "of-err"), ("ndcg@10", "of-ndcg"), ("p@3", "of-p")] {
            let values = course(&log, "vali", metric);
            let best =
                (0..values.len()).fold(0, |best, next| if values[next] > values[best] { next } else { best });
            assert_eq!(trees_in(&room.path().join(file)), best + 1, "{preset} {metric}: {values:?}");
            // It is the model of a training that ends there.
            train(room.path(), &format!("{common} --set num_trees={} --model short", best + 1));
            let [short, cut] = ["short", file].map(|model| table_of(&room.path().join(model)));
            assert_eq!(short, cut, "{preset} {metric}");
            run(room.path(), &format!("predict --model {file} --data vali --output p")).ok();
            let evaluated =
                run(room.path(), &format!("evaluate --predictions p --metrics {metric} --json")).ok().stdout;
            let evaluated: serde_json::Value = serde_json::from_str(&evaluated).unwrap();
            let found = evaluated["systems"][0]["means"][metric].as_f64().unwrap();
            assert_close(found, values[best], 1e-9, &format!("{preset} {metric}"));
        }
        if more.is_empty() {
            assert_eq!(trees_in(&room.path().join("m")), 25, "{preset}: the model has all rounds");
        }
    }
    // The start model alone may be the best.
    train(room.path(), "--preset rf-point --data data --set num_trees=40 --model forest");
    let bad = "--preset planet --set learning_rate=9 --set num_trees=3 --set base_score=auto";
    train(
        room.path(),
        &format!("{bad} --data data --valid vali --start-model forest --model m --model-for rmse=b"),
    );
    assert_eq!(table_of(&room.path().join("b")), table_of(&room.path().join("forest")));
}

#[test]
fn models_for_metrics_need_validation_data_and_files_of_their_own() {
    let room = room();
    dataset(room.path(), "data", &graded(87, 20, 10), "");
    assert_trainings_refused(
        room.path(),
        &[
            ("--data data --model-for err=e", "--model-for err: there is no validation set"),
            ("--data data --valid data --model-for err=m", "two outputs use the same file: m"),
            (
                "--data data --valid data --model-for err=e --model-for ndcg=e",
                "two outputs use the same file: e",
            ),
            ("--data data --valid data --model-for erf=e", "unknown metric"),
            ("--data data --valid data --model-for err", "expected METRIC=FILE"),
        ],
    );
}
