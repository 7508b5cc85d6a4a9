//! Listwise trees: the same bytes on any number of threads and partitions, the best splits according to an independent
//! check, and clear errors.

use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::{Float32Type, Float64Type, Int32Type};
use std::fs;
use std::path::Path;

/// Every way to evaluate splits, sample queries and choose the next leaf.
const VARIANTS: [&str; 6] = [
    "--preset rf-list",
    "--preset rf-list --set leaf_order=random --set missing=learned --set bootstrap=true",
    "--preset rf-list --set leaf_order=biggest --set listwise_discount=power:0.1 --set listwise_truncation=10",
    "--preset rf-list --set leaf_order=most_relevant --set listwise_discount=log2^0.1 --set label_gain=linear",
    "--preset rf-hybrid --set listwise_levels=2 --set missing=learned",
    "--preset rf-hybrid --set criterion=variance --set min_data_in_leaf=3 --set queries_per_tree=30",
];

#[test]
fn neither_threads_nor_partitions_change_a_byte() {
    assert_same_forests(&VARIANTS, &[("one", 4), ("many", 2), ("few", 1)]);
}

#[test]
fn binned_data_on_disk_do_not_change_a_byte() {
    let room = room();
    mslr_dataset(room.path());
    for variant in ["--preset rf-list --set max_depth=8", "--preset rf-hybrid --set listwise_levels=3"] {
        let arguments = format!("{variant} --data data --set num_trees=2");
        assert_same_outputs_from_disk(room.path(), &arguments, &[]);
        fs::remove_dir_all(room.path().join("data.bins")).unwrap();
    }
}

#[test]
fn a_listwise_forest_that_was_killed_and_resumed_has_the_same_bytes() {
    let room = room();
    dataset(room.path(), "data", &graded(31, 60, 20), "--partition-rows 500");
    for arguments in [
        "--preset rf-list --data data --set num_trees=40",
        "--preset rf-hybrid --data data --set num_trees=60",
    ] {
        killed_and_resumed(room.path(), arguments, 4);
    }
}

#[test]
fn no_split_gains_more_than_the_one_that_was_chosen() {
    let room = room();
    dataset(room.path(), "data", &graded(61, 12, 14), "");
    let all = "--set query_fraction=1.0 --set features_per_node=all --set num_trees=1";
    train(room.path(), &format!("--preset rf-list --data data {all} --model m"));
    if let Some(found) = reference_script(room.path(), "listwise.py", "data m 25") {
        assert!(found.starts_with("25 of "), "{found}");
    }
}

/// Expected NDCG of a tree on a dataset after each of its splits, from 0 splits on.
fn strength_of(file: &Path, tree: i32, split: &str) -> Vec<f64> {
    let table = table_of(file);
    let column = |name: &str| table.column_by_name(name).unwrap().clone();
    let (trees, splits) = (column("tree"), column("splits"));
    let (names, values) = (column("split"), column("expected_ndcg"));
    let here = (0..table.num_rows()).filter(|row| {
        trees.as_primitive::<Int32Type>().value(*row) == tree && names.as_string::<i32>().value(*row) == split
    });
    let course: Vec<(i32, f64)> = here
        .map(|row| {
            (splits.as_primitive::<Int32Type>().value(row), values.as_primitive::<Float64Type>().value(row))
        })
        .collect();
    assert!(!course.is_empty(), "no rows of tree {tree} and {split}");
    assert!(course.iter().map(|(splits, _)| *splits).eq(0..course.len() as i32), "{split}");
    course.into_iter().map(|(_, value)| value).collect()
}

/// Expected NDCG of the model `m` on a dataset, as `evaluate` computes it.
fn expected_ndcg(directory: &Path, dataset: &str) -> f64 {
    run(directory, &format!("predict --model m --data {dataset} --output p")).ok();
    let rules = "--metrics ndcg --convention planetree,ties=average,empty=0 --json";
    let json = run(directory, &format!("evaluate --predictions p {rules}")).ok().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    json.pointer("/systems/0/means/ndcg").and_then(serde_json::Value::as_f64).unwrap()
}

#[test]
fn the_strength_of_a_tree_is_the_expected_ndcg_that_evaluate_computes() {
    let room = room();
    dataset(room.path(), "data", &graded(62, 60, 20), "--partition-rows 300");
    dataset(room.path(), "vali", &graded(63, 30, 20), "");
    for preset in ["rf-list", "rf-hybrid", "rf-point"] {
        let arguments = "--data data --valid vali=vali --set query_fraction=1.0 --set num_trees=1 --model m";
        train(room.path(), &format!("--preset {preset} {arguments} --strength s"));
        let [seen, unseen] = ["train", "vali"].map(|split| strength_of(&room.path().join("s"), 1, split));
        for (course, dataset) in [(&seen, "data"), (&unseen, "vali")] {
            assert!(course.len() > 20, "{preset}");
            let last = *course.last().unwrap();
            assert_close(last, expected_ndcg(room.path(), dataset), 1e-9, &format!("{preset} {dataset}"));
        }
        if preset == "rf-list" {
            assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "a split gained nothing: {seen:?}");
        }
        assert!(unseen[unseen.len() - 1] > unseen[0] + 0.1, "{preset}: the tree learned nothing");
        let described = run(room.path(), "describe s").ok().stdout;
        assert!(described.contains("strength of trees") && described.contains("vali"), "{described}");
    }
    // After few splits, a tree grown for rankings ranks better (figure 7 of the paper).
    let early = |preset: &str| {
        let arguments = "--data data --set num_trees=20 --set seed=5 --model m --strength s";
        train(room.path(), &format!("--preset {preset} {arguments}"));
        (1..=20).map(|tree| strength_of(&room.path().join("s"), tree, "train")[3]).sum::<f64>() / 20.0
    };
    let (list, point) = (early("rf-list"), early("rf-point"));
    assert!(list > point, "{list} {point}");
}

#[test]
fn hybrid_trees_range_from_pointwise_to_listwise() {
    let room = room();
    dataset(room.path(), "data", &graded(64, 60, 15), "");
    let nodes = |arguments: &str| {
        train(room.path(), &format!("{arguments} --data data --set num_trees=3 --model m"));
        table_of(&room.path().join("m"))
    };
    let list = nodes("--preset rf-list");
    assert_eq!(nodes("--preset rf-hybrid --set listwise_levels=1000"), list, "all levels are listwise");
    let point = nodes("--preset rf-point");
    let hybrid = nodes("--preset rf-hybrid --set listwise_levels=1");
    assert_ne!(hybrid, point);
    let root_threshold = |table: &arrow::array::RecordBatch| {
        table.column_by_name("threshold").unwrap().as_primitive::<Float32Type>().value(0)
    };
    assert_eq!(root_threshold(&hybrid), root_threshold(&list), "the first level is listwise");
}

#[test]
fn listwise_trees_on_unsuitable_data_or_options_are_refused() {
    let room = room();
    dataset(room.path(), "data", &graded(65, 30, 10), "");
    odd_datasets(room.path());
    let refused = [
        ("--preset rf-list --data single", "all rows are of one query"),
        ("--preset rf-hybrid --data single", "all rows are of one query"),
        ("--preset rf-list --data data --set query_fraction=0.01", "0.01 of 30 queries rounds to 0"),
        ("--preset rf-list --data unlabelled", "20 of 60 rows have no label"),
        ("--preset rf-hybrid --data unlabelled", "20 of 60 rows have no label"),
        ("--preset rf-list --data flat", "no split was possible"),
        ("--preset rf-list --data data --set label_gain=0,1", "the label 2 has no gain"),
        ("--preset rf-list --data data --set label_gain=l-1", "or its gain is below 0"),
        ("--preset rf-list --data data --set candidates=random", "need static or exact candidates"),
        ("--preset rf-list --data data --set bagging_by=rows", "whole queries"),
        ("--preset rf-point --data data --set leaf_order=random", "only listwise trees use it"),
        (
            "--preset rf-list --data data --set leaf_order=deep",
            "expected breadth, random, biggest, most_relevant or depth",
        ),
        ("--preset planet --data data --strength s", "a boosted tree does not rank by itself"),
        ("--preset rf-pair --data data --strength s", "not available for forests trained on document pairs"),
        ("--preset rf --data data --strength s", "trees must be trained on whole queries"),
        ("--preset rf-list --data data --strength m", "two outputs use the same file: m"),
    ];
    assert_trainings_refused(room.path(), &refused);
}

#[test]
fn real_queries_are_ranked_as_well_as_in_the_paper() {
    let Some(folder) = shared("data/MQ2008") else { return };
    let room = room();
    for part in 1..=4 {
        real_dataset(room.path(), &format!("S{part}"), &folder, &format!("S{part}"));
    }
    let ndcg = |preset: &str| {
        let arguments =
            "--no-valid --set num_trees=40 --set seed=1 --metrics ndcg@10 --convention letor4 --json";
        let cv = format!("cv --data S1 S2 S3 S4 --preset {preset} {arguments} --output {preset}");
        let json: serde_json::Value = serde_json::from_str(&run(room.path(), &cv).ok().stdout).unwrap();
        json.pointer("/test/ndcg@10/mean").and_then(serde_json::Value::as_f64).unwrap()
    };
    let (point, list) = (ndcg("rf-point"), ndcg("rf-list"));
    assert!(list > point, "{list} {point}");
    assert!((list - 0.2326).abs() < 0.015, "the paper has .2326 (Table V): {list}");
}
