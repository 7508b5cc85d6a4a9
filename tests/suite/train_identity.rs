//! The bytes of a model depend only on the rows and the parameters.

use crate::support::*;
use std::fs;
use std::path::Path;

/// Every way to sample, handle missing values and grow trees; each is tested with all kinds of candidates.
const VARIANTS: [&str; 7] = [
    "",
    "--set bagging_fraction=0.6 --set seed=5",
    "--set query_fraction=0.5 --set seed=6",
    "--set feature_fraction=0.5 --set features_per_node=3 --set seed=7",
    "--set missing=learned",
    "--set missing=mean --set num_leaves=9 --set max_depth=-1",
    "--set missing=learned --set bagging_fraction=0.7 --set feature_fraction=0.8 --set features_per_node=log2",
];

fn model(directory: &Path, arguments: &str) -> Vec<u8> {
    trained_bytes(directory, &format!("--set num_trees=8 --set learning_rate=0.3 {arguments}"))
}

#[test]
fn threads_do_not_change_a_byte() {
    let room = room();
    same_rows(room.path());
    for preset in ["planet", "pgbrt", "pgbrt --set workers=3", "pgbrt-grouped", "gbrt"] {
        for (number, variant) in VARIANTS.iter().enumerate() {
            let data = ["many", "weighted-many"][number % 2];
            let with = |threads: u32| {
                model(room.path(), &format!("--preset {preset} --data {data} {variant} --threads {threads}"))
            };
            let expected = with(1);
            for threads in [2, 4] {
                assert!(with(threads) == expected, "{preset} {data} {variant}: {threads} threads");
            }
        }
    }
}

/// A partition of this many rows is divided among several threads.
#[test]
fn dividing_a_partition_among_threads_does_not_change_a_byte() {
    let room = room();
    let mut examples = untied(43, 40_000, 8);
    examples.iter_mut().enumerate().for_each(|(row, example)| example.weight = 1.0 + (row % 3) as f64);
    for (name, options) in [("one", "--partition-rows 50000"), ("many", "--partition-rows 3000")] {
        dataset(room.path(), name, &examples, options);
        weighted_dataset(room.path(), &format!("weighted-{name}"), &examples, options);
    }
    for (variant, data) in [
        ("planet", ""),
        ("planet --set bagging_fraction=0.8", ""),
        ("planet --set num_leaves=12 --set max_depth=-1", "weighted-"),
        ("planet --set query_fraction=0.7", "weighted-"),
        ("ranknet", ""),
    ] {
        let arguments = format!("--preset {variant} --data {data}");
        let expected = model(room.path(), &format!("{arguments}many --threads 1"));
        for threads in [1, 2, 4] {
            let other = model(room.path(), &format!("{arguments}one --threads {threads}"));
            assert!(other == expected, "{arguments}: {threads} threads");
        }
    }
}

/// Within a training, the root histogram of a tree is derived from the previous tree where possible. The first tree after
/// a start model is built from all rows; it must be the same tree.
#[test]
fn a_root_histogram_derived_from_the_previous_tree_changes_nothing() {
    let room = room();
    dataset(room.path(), "data", &untied(41, 20_000, 12), "--partition-rows 3000");
    let variants = [
        ("planet --set max_depth=3", 5),
        ("pgbrt-grouped --set max_depth=3", 5),
        ("planet --set num_leaves=6", 5),
        ("planet --set max_depth=3 --set learning_rate=1.5", 5),
        ("planet --set max_depth=3 --set base_score=0.1", 0), // not a multiple of any fixed-point unit
        ("planet --set max_depth=3 --set bagging_fraction=0.9", 0),
    ];
    for (variant, derived) in variants {
        let common = format!("--preset {variant} --data data --set max_bin=31");
        let derived_roots = |arguments: &str| {
            let ran = run(room.path(), &format!("train --log debug {common} {arguments}")).ok();
            ran.stderr.matches("root histogram derived from the previous tree").count()
        };
        // The fixed-point scale may change a few times; then the root is built from all rows.
        let found = derived_roots("--set num_trees=6 --model whole");
        let is_plausible = found <= derived && found + 3 >= derived && (found > 0) == (derived > 0);
        assert!(is_plausible, "{variant}: {found} derived roots, expected about {derived}");
        for threads in [1, 3] {
            derived_roots(&format!("--set num_trees=6 --model other --threads {threads}"));
            assert_same_bytes(room.path(), "whole", "other", &format!("{variant}: {threads} threads"));
        }
        if variant.contains("base_score") || variant.contains("bagging") {
            continue; // a start model has its own base score, and sampling depends on the tree's number
        }
        assert_eq!(derived_roots("--set num_trees=1 --model so-far"), 0);
        for tree in 2..=6 {
            assert_eq!(derived_roots("--set num_trees=1 --start-model so-far --model next"), 0, "{variant}");
            fs::rename(room.path().join("next"), room.path().join("so-far")).unwrap();
            assert_eq!(trees_in(&room.path().join("so-far")), tree);
        }
        let [whole, one_by_one] = ["whole", "so-far"].map(|model| table_of(&room.path().join(model)));
        assert!(whole.num_rows() > 6 * 10, "{variant}: only {} nodes", whole.num_rows());
        assert!(whole == one_by_one, "{variant}");
    }
}

#[test]
fn threads_do_not_change_the_log() {
    let room = room();
    same_rows(room.path());
    for preset in ["planet", "pgbrt", "gbrt"] {
        let log = |threads: u32| {
            let outputs = format!("--valid vali --rounds rounds --threads {threads}");
            model(room.path(), &format!("--preset {preset} --data many {outputs}"));
            rounds_of(&room.path().join("rounds"))
        };
        let expected = log(1);
        assert_eq!(course(&expected, "valid", "rmse").len(), 8, "{preset}");
        assert_eq!(log(4), expected, "{preset}");
    }
}

#[test]
fn partitions_do_not_change_a_byte() {
    let room = room();
    same_rows(room.path());
    let presets = [
        "planet",
        "pgbrt",
        "pgbrt --set workers=5",
        "pgbrt-grouped",
        "pgbrt-grouped --set workers=3",
        "gbrt",
    ];
    for preset in presets {
        for variant in VARIANTS {
            for kind in ["", "weighted-"] {
                let with = |partitions: &str| {
                    model(room.path(), &format!("--preset {preset} --data {kind}{partitions} {variant}"))
                };
                let expected = with("one");
                let nodes = table_of(&room.path().join("m")).num_rows();
                assert!(nodes > 8, "{preset} {variant}: the trees have no splits");
                for partitions in ["many", "few"] {
                    assert!(with(partitions) == expected, "{preset} {variant}: {kind}{partitions}");
                }
            }
        }
    }
}

#[test]
fn compact_bins_do_not_change_a_byte() {
    let room = room();
    mslr_dataset(room.path());
    run(room.path(), "convert text/vali.txt --output msvali").ok();
    same_rows(room.path());
    let variants = [
        ("planet", "--data data"),
        ("planet", "--data data --set missing=branch --set bagging_fraction=0.5 --set features_per_node=0.3"),
        ("lambdamart", "--data data --valid msvali --set max_bin=15"), // codes of several features share a lane
        ("lambdamart", "--data data --set max_bin=60 --set missing=zero --set max_depth=3"),
        ("pgbrt-grouped", "--data data --set max_bin=20"),
        ("mart", "--data one --valid many"),
        ("mart", "--data many --valid few"),
        ("rf-point", "--data one"), // forests and linear models ignore the option
        ("linear", "--data one"),
    ];
    for (preset, variant) in variants {
        let arguments = format!("--preset {preset} {variant} --set num_trees=3");
        train(room.path(), &format!("{arguments} --model twice"));
        for options in ["--threads 1", "--threads 3", "--memory-limit 2GiB"] {
            train(room.path(), &format!("{arguments} --model once --compact {options}"));
            assert_same_bytes(room.path(), "once", "twice", &format!("{arguments} {options}"));
        }
    }
}

#[test]
fn binned_data_on_disk_do_not_change_a_byte() {
    let room = room();
    mslr_dataset(room.path());
    let cache = room.path().join("data.bins");
    for (preset, variant) in [
        ("planet", ""),
        ("planet", "--set missing=learned --set bagging_fraction=0.5 --set features_per_node=0.3"),
        ("pgbrt-grouped", "--set max_bin=20"),
    ] {
        let arguments = format!("--preset {preset} --data data {variant} --set num_trees=3");
        let (limit, expected) = assert_same_outputs_from_disk(room.path(), &arguments, &[]);
        // A damaged cache does not change the model: it is reported, or rebuilt.
        let codes = names_in(&cache).into_iter().find(|name| name.ends_with(".arrow")).unwrap();
        let mut bytes = fs::read(cache.join(&codes)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        fs::write(cache.join(&codes), bytes).unwrap();
        let ran = run(room.path(), &format!("train {arguments} --model m --memory-limit {limit}MiB"));
        if ran.code == 0 {
            let model = fs::read(room.path().join("m")).unwrap();
            assert!(model == expected[0], "{arguments}: the damaged cache changed the model");
            fs::remove_file(room.path().join("m")).unwrap();
        } else {
            assert_refused(&arguments, &ran, 1, &[&codes]);
        }
        fs::remove_dir_all(&cache).unwrap();
    }
    // With one bin per value, the smallest limit leaves room for the codes.
    for variant in [
        "--preset pgbrt --set max_bin=20 --set max_depth=3",
        "--preset pgbrt --set workers=3 --set max_depth=3",
        "--preset gbrt --set max_depth=3",
    ] {
        let arguments = format!("{variant} --data data --set num_trees=3");
        train(room.path(), &format!("{arguments} --model free"));
        let limit = least_memory(room.path(), &arguments);
        train(room.path(), &format!("{arguments} --model limited --memory-limit {limit}MiB"));
        assert_same_bytes(room.path(), "limited", "free", variant);
    }
}

#[test]
fn repeating_a_training_gives_the_same_bytes_and_another_seed_another_model() {
    let room = room();
    same_rows(room.path());
    let with =
        |seed: u32| model(room.path(), &format!("--data one --set bagging_fraction=0.5 --set seed={seed}"));
    assert!(with(1) == with(1));
    let seeded = |seed: u32| {
        with(seed);
        table_of(&room.path().join("m"))
    };
    assert!(seeded(1) != seeded(2));
}
